#!/bin/sh
# The study: LogDQN, LogLinDQN and DQN on five games, each with the settings that were tuned for it.
set -e
for agent in log_dqn loglin_dqn; do
  log-dqn train-vectorized --agent=$agent --games=minatar5 --seeds=5 --results_dir=results/study/main \
    --scan=VectorizedLogDQNAgent.gamma=0.5,0.8,0.9,0.96,0.99 "$@"
done
log-dqn train-vectorized --agent=dqn --games=minatar5 --seeds=5 --results_dir=results/study/main \
  --scan=VectorizedDQNAgent.gamma=0.5,0.8,0.9,0.96,0.99 \
  --gin_bindings=VectorizedDQNAgent.learning_rate=0.0005 "$@"
