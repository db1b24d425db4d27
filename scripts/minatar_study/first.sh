#!/bin/sh
# LogDQN with the settings that were chosen first, by what they do at 0.8 and 0.99.
set -e
log-dqn train-vectorized --agent=log_dqn --games=minatar5 --seeds=1 --results_dir=results/study/first \
  --scan=VectorizedLogDQNAgent.gamma=0.5,0.8,0.9,0.96,0.99 \
  --gin_bindings=VectorizedLogDQNAgent.beta_log=0.001 \
  --gin_bindings=VectorizedLogDQNAgent.beta_reg=1.0 \
  --gin_bindings=VectorizedLogDQNAgent.c=2.0 "$@"
