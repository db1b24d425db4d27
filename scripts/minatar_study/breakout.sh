#!/bin/sh
# Why LogDQN trails DQN on Breakout at 0.8: one setting is another at a time, and the paper's
# settings. 400,000 steps.
set -e
breakout() {
  log-dqn train-vectorized --games=MinAtar/Breakout --seeds=7-9 \
    --results_dir=results/study/breakout --gin_bindings=VectorizedRunner.num_iterations=8 "$@"
}
breakout --agent=log_dqn --scan=VectorizedLogDQNAgent.gamma=0.8 "$@"
for other in k=10,20,50 c=0.5,2.0 beta_reg=0.1,1.0 q_init_plus=0.1 minus_head=False; do
  breakout --agent=log_dqn --scan=VectorizedLogDQNAgent.gamma=0.8 \
    --scan=VectorizedLogDQNAgent.$other "$@"
done
breakout --agent=dqn --scan=VectorizedDQNAgent.gamma=0.8 \
  --gin_bindings=VectorizedDQNAgent.learning_rate=0.0005 "$@"
for epsilon in 1e-05 1e-09; do  # A job has one optimizer.
  breakout --agent=log_dqn --scan=VectorizedLogDQNAgent.gamma=0.8 \
    --scan=rmsprop_tf.epsilon=$epsilon \
    --gin_bindings="VectorizedLogDQNAgent.optimizer='rmsprop_tf'" \
    --gin_bindings=VectorizedLogDQNAgent.beta_log=0.0025 \
    --gin_bindings=VectorizedLogDQNAgent.beta_reg=0.1 \
    --gin_bindings=VectorizedLogDQNAgent.c=0.5 "$@"
done
