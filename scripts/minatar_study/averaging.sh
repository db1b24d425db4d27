#!/bin/sh
# scale.sh with beta_reg 1: averages in the log space alone. 400,000 steps.
set -e
log-dqn train-vectorized --agent=log_dqn --games=MinAtar/Freeway,MinAtar/Breakout --seeds=6-6 \
  --results_dir=results/study/averaging --gin_bindings=VectorizedRunner.num_iterations=8 \
  --scan=VectorizedLogDQNAgent.gamma=0.5 --scan=VectorizedLogDQNAgent.beta_log=0.001 \
  --scan=VectorizedLogDQNAgent.beta_reg=1.0 --scan=VectorizedLogDQNAgent.c=2.0 \
  --scan=adam.epsilon=1e-08 "$@"
