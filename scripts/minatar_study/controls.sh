#!/bin/sh
# The paper's settings, and the Atari baseline's optimizer.
set -e
three=MinAtar/Freeway,MinAtar/Breakout,MinAtar/Asterix
log-dqn train-vectorized --agent=log_dqn --games=$three --seeds=5 \
  --results_dir=results/study/controls \
  --scan=VectorizedLogDQNAgent.gamma=0.5,0.8,0.9,0.96,0.99 \
  --gin_bindings="VectorizedLogDQNAgent.optimizer='rmsprop_tf'" \
  --gin_bindings=VectorizedLogDQNAgent.beta_log=0.0025 \
  --gin_bindings=VectorizedLogDQNAgent.beta_reg=0.1 \
  --gin_bindings=VectorizedLogDQNAgent.c=0.5 "$@"
log-dqn train-vectorized --agent=dqn --games=$three --seeds=5 --results_dir=results/study/controls \
  --scan=VectorizedDQNAgent.gamma=0.5,0.8,0.9,0.96,0.99 \
  --gin_bindings="VectorizedDQNAgent.optimizer='rmsprop_tf'" \
  --gin_bindings=VectorizedDQNAgent.learning_rate=0.00025 "$@"
