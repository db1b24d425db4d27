#!/bin/sh
# How c and the step-size decide whether values stay within their bound. 400,000 steps.
set -e
log-dqn train-vectorized --agent=log_dqn --games=MinAtar/Freeway,MinAtar/Breakout,MinAtar/Asterix \
  --seeds=6-6 --results_dir=results/study/scale \
  --gin_bindings=VectorizedRunner.num_iterations=8 --scan=VectorizedLogDQNAgent.gamma=0.5,0.99 \
  --scan=VectorizedLogDQNAgent.beta_log=0.00025,0.001 --scan=VectorizedLogDQNAgent.beta_reg=0.1 \
  --scan=VectorizedLogDQNAgent.c=0.5,2.0 --scan=adam.epsilon=1e-08 "$@"
