#!/bin/sh
# When do LogDQN's values run away? The study's LogDQN at high discount factors. 400,000 steps.
set -e
log-dqn train-vectorized --agent=log_dqn --games=minatar5 --seeds=2 \
  --results_dir=results/study/runaway --scan=VectorizedLogDQNAgent.gamma=0.9,0.96,0.99 \
  --gin_bindings=VectorizedRunner.num_iterations=8 "$@"
