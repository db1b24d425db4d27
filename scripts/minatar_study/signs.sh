#!/bin/sh
# Rewards of both signs, with and without the minus head. 80,000 steps.
set -e
catch() {
  log-dqn train-vectorized --games=bsuite/Catch --seeds=5 --results_dir=results/study/signs \
    --gin_bindings=VectorizedRunner.num_iterations=8 \
    --gin_bindings=VectorizedRunner.training_steps=10000 "$@"
}
catch --agent=log_dqn --scan=VectorizedLogDQNAgent.gamma=0.5,0.8,0.9,0.96,0.99 \
  --gin_bindings=VectorizedLogDQNAgent.epsilon_decay_period=20000 \
  --scan=VectorizedLogDQNAgent.minus_head=True,False "$@"
catch --agent=dqn --scan=VectorizedDQNAgent.gamma=0.5,0.8,0.9,0.96,0.99 \
  --gin_bindings=VectorizedDQNAgent.epsilon_decay_period=20000 \
  --gin_bindings=VectorizedDQNAgent.learning_rate=0.0005 "$@"
