#!/bin/sh
# A floor gamma^k of about 0.015, near that of k = 100 at 0.96; at 0.5 and 0.8 also one between.
# 400,000 steps.
set -e
for setting in "0.5 6,20" "0.8 20,50" "0.9 40"; do
  log-dqn train-vectorized --agent=log_dqn --games=minatar5 --seeds=3 \
    --results_dir=results/study/floor --gin_bindings=VectorizedRunner.num_iterations=8 \
    --scan=VectorizedLogDQNAgent.gamma=${setting% *} \
    --scan=VectorizedLogDQNAgent.k=${setting#* } "$@"
done
