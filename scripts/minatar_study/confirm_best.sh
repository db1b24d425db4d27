#!/bin/sh
# What decides the claim for what the stage `best` found: LogLinDQN with squared error and three-step
# updates, and DQN with squared error and either horizon, with fresh seeds.
set -e
confirm() {
  log-dqn train-vectorized --games=minatar5 --seeds=14-18 --results_dir=results/study/confirm_best "$@"
}
confirm --agent=loglin_dqn --scan=VectorizedLogDQNAgent.gamma=0.96 \
  --scan=VectorizedLogDQNAgent.update_horizon=3 --scan=VectorizedLogDQNAgent.loss_type="'mse'" "$@"
for setting in "" --scan=VectorizedDQNAgent.update_horizon=3; do
  confirm --agent=dqn --scan=VectorizedDQNAgent.gamma=0.96 \
    --gin_bindings=VectorizedDQNAgent.learning_rate=0.0005 $setting \
    --scan=VectorizedDQNAgent.loss_type="'mse'" "$@"
done
