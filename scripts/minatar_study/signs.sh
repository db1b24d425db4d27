#!/bin/sh
# Rewards of both signs, LogDQN with and without the minus head. 80,000 steps.
set -e
catch() {  # the agent's class; then other flags
  agent=$1
  shift
  log-dqn train-vectorized --games=bsuite/Catch --seeds=5 --results_dir=results/study/signs \
    --gin_bindings=VectorizedRunner.num_iterations=8 \
    --gin_bindings=VectorizedRunner.training_steps=10000 \
    --scan=Vectorized$agent.gamma=0.5,0.8,0.9,0.96,0.99 \
    --gin_bindings=Vectorized$agent.epsilon_decay_period=20000 "$@"
}
for minus_head in True False; do  # All runs of a job have one, or none.
  catch LogDQNAgent --agent=log_dqn --scan=VectorizedLogDQNAgent.minus_head=$minus_head "$@"
done
catch LogDQNAgent --agent=loglin_dqn "$@"
catch DQNAgent --agent=dqn --gin_bindings=VectorizedDQNAgent.learning_rate=0.0005 "$@"
