#!/bin/sh
# What else was tried for LogDQN and not taken. 400,000 steps.
set -e
short() {
  log-dqn train-vectorized --agent=log_dqn --seeds=6-6 --results_dir=results/study/others \
    --gin_bindings=VectorizedRunner.num_iterations=8 "$@"
}
short --games=MinAtar/Freeway,MinAtar/Breakout,MinAtar/Asterix \
  --scan=VectorizedLogDQNAgent.gamma=0.8 --scan=VectorizedLogDQNAgent.beta_log=0.00025,0.001 \
  --scan=VectorizedLogDQNAgent.beta_reg=0.1 --scan=VectorizedLogDQNAgent.c=0.5 \
  --scan=adam.epsilon=1e-08 "$@"
short --games=MinAtar/Freeway \
  --scan=VectorizedLogDQNAgent.gamma=0.99 --scan=VectorizedLogDQNAgent.beta_log=6e-05 \
  --scan=VectorizedLogDQNAgent.beta_reg=0.1 --scan=VectorizedLogDQNAgent.c=0.5,2.0 \
  --scan=adam.epsilon=1e-08 "$@"
short --games=MinAtar/Asterix \
  --scan=VectorizedLogDQNAgent.gamma=0.99 --scan=VectorizedLogDQNAgent.beta_log=0.00025,0.001 \
  --scan=VectorizedLogDQNAgent.beta_reg=0.1 --scan=VectorizedLogDQNAgent.c=2.0 \
  --scan=adam.epsilon=1e-08 --scan=VectorizedLogDQNAgent.k=400 "$@"
short --games=MinAtar/Asterix \
  --scan=VectorizedLogDQNAgent.gamma=0.99 --scan=VectorizedLogDQNAgent.beta_log=0.0005 \
  --scan=VectorizedLogDQNAgent.beta_reg=0.1 --scan=VectorizedLogDQNAgent.c=5.0 \
  --scan=adam.epsilon=1e-08 --scan=VectorizedLogDQNAgent.k=400 "$@"
short --games=MinAtar/Asterix \
  --scan=VectorizedLogDQNAgent.gamma=0.99 --scan=VectorizedLogDQNAgent.beta_log=0.0005 \
  --scan=VectorizedLogDQNAgent.beta_reg=1.0 --scan=VectorizedLogDQNAgent.c=2.0 \
  --scan=adam.epsilon=1e-08 --scan=VectorizedLogDQNAgent.k=400 "$@"
