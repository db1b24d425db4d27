#!/bin/sh
# Is the epsilon of RMSProp what stops LogDQN at high discount factors? 400,000 steps. One command
# for each: a job has one optimizer.
set -e
for epsilon in 1e-05 1e-07 1e-09 1e-11; do
  log-dqn train-vectorized --agent=log_dqn --games=MinAtar/Freeway,MinAtar/Asterix --seeds=1 \
    --results_dir=results/study/epsilon --gin_bindings=VectorizedRunner.num_iterations=8 \
    --scan=VectorizedLogDQNAgent.gamma=0.96,0.99 --scan=rmsprop_tf.epsilon=$epsilon \
    --gin_bindings="VectorizedLogDQNAgent.optimizer='rmsprop_tf'" \
    --gin_bindings=VectorizedLogDQNAgent.beta_log=0.0025 \
    --gin_bindings=VectorizedLogDQNAgent.beta_reg=0.1 \
    --gin_bindings=VectorizedLogDQNAgent.c=0.5 "$@"
done
