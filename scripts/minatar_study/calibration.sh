#!/bin/sh
# DQN with the settings of MinAtar's authors, with the step-size that they give and with about that
# which is best on the game in their figures. Their RMSProp, PyTorch's, divides by sqrt(v) + 0.01,
# this one by sqrt(v + 0.0001): steps are the same where v is far from 0.0001, and at most sqrt(2)
# times as large.
set -e
authors() {
  log-dqn train-vectorized --agent=dqn --seeds=5 --results_dir=results/study/calibration \
    --gin_bindings="VectorizedDQNAgent.optimizer='rmsprop_tf'" \
    --gin_bindings=VectorizedDQNAgent.learning_rate=0.00025 \
    --gin_bindings=VectorizedDQNAgent.gamma=0.99 \
    --gin_bindings=VectorizedDQNAgent.update_period=1 \
    --gin_bindings=VectorizedDQNAgent.min_replay_history=5000 \
    --gin_bindings=VectorizedDQNAgent.epsilon_train=0.1 \
    --gin_bindings=VectorizedDQNAgent.epsilon_decay_period=100000 \
    --gin_bindings="VectorizedRunner.network='minatar'" \
    --gin_bindings=rmsprop_tf.epsilon=0.0001 "$@"
}
authors --games=MinAtar/Breakout,MinAtar/Freeway "$@"
authors --games=MinAtar/Breakout --scan=VectorizedDQNAgent.learning_rate=0.002 "$@"
authors --games=MinAtar/Freeway --scan=VectorizedDQNAgent.learning_rate=0.0005 "$@"
