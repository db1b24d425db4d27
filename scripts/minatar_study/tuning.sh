#!/bin/sh
# Step-sizes and settings, with seeds that are not the study's. 400,000 steps.
set -e
short() {
  log-dqn train-vectorized --seeds=6-8 --results_dir=results/study/tuning \
    --gin_bindings=VectorizedRunner.num_iterations=8 "$@"
}
three=MinAtar/Freeway,MinAtar/Breakout,MinAtar/Asterix
short --agent=log_dqn --games=$three --scan=VectorizedLogDQNAgent.gamma=0.8,0.99 \
  --scan=VectorizedLogDQNAgent.beta_log=0.00025,0.001 \
  --scan=VectorizedLogDQNAgent.beta_reg=1.0 --scan=VectorizedLogDQNAgent.c=2.0 "$@"
short --agent=log_dqn --games=$three --scan=VectorizedLogDQNAgent.gamma=0.8,0.99 \
  --scan=VectorizedLogDQNAgent.beta_log=0.00025,0.001,0.0025 \
  --scan=VectorizedLogDQNAgent.beta_reg=0.1 --scan=VectorizedLogDQNAgent.c=0.5 "$@"
short --agent=log_dqn --games=$three --scan=VectorizedLogDQNAgent.gamma=0.8,0.99 \
  --scan=VectorizedLogDQNAgent.beta_log=0.001 \
  --scan=VectorizedLogDQNAgent.beta_reg=1.0 --scan=VectorizedLogDQNAgent.c=0.5 "$@"
short --agent=dqn --games=$three --scan=VectorizedDQNAgent.gamma=0.5,0.8,0.99 \
  --scan=VectorizedDQNAgent.learning_rate=0.00012,0.00025,0.0005,0.001,0.002 "$@"
# Tried later, as the others leave out what happens at 0.5; and DQN with another epsilon.
short --agent=log_dqn --games=$three --scan=VectorizedLogDQNAgent.gamma=0.5 \
  --scan=VectorizedLogDQNAgent.beta_log=0.0025 \
  --scan=VectorizedLogDQNAgent.beta_reg=0.1 --scan=VectorizedLogDQNAgent.c=0.5 "$@"
short --agent=log_dqn --games=MinAtar/Freeway,MinAtar/Asterix \
  --scan=VectorizedLogDQNAgent.gamma=0.5,0.99 \
  --scan=VectorizedLogDQNAgent.beta_log=0.001,0.0025 \
  --scan=VectorizedLogDQNAgent.beta_reg=0.1 --scan=VectorizedLogDQNAgent.c=2.0 "$@"
short --agent=log_dqn --games=$three --scan=VectorizedLogDQNAgent.gamma=0.5,0.8,0.99 \
  --scan=VectorizedLogDQNAgent.beta_log=0.0025 \
  --scan=VectorizedLogDQNAgent.beta_reg=0.3 --scan=VectorizedLogDQNAgent.c=1.0 "$@"
short --agent=dqn --games=$three --scan=VectorizedDQNAgent.gamma=0.5,0.8,0.99 \
  --scan=VectorizedDQNAgent.learning_rate=6.25e-05,0.00025,0.0005 --scan=adam.epsilon=1e-08 "$@"
