#!/bin/sh
# A policy that never learns. 400,000 steps.
set -e
log-dqn train-vectorized --agent=dqn --games=minatar5 --seeds=5 --results_dir=results/study/random \
  --gin_bindings=VectorizedRunner.num_iterations=8 \
  --gin_bindings=VectorizedDQNAgent.epsilon_train=1.0 \
  --gin_bindings=VectorizedDQNAgent.min_replay_history=1000000 "$@"
