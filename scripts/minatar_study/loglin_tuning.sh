#!/bin/sh
# LogLinDQN's settings, and DQN with squared error, with a seed that is not the study's. 400,000
# steps; discount factors at which LogDQN and DQN differ.
set -e
look() {
  log-dqn train-vectorized --seeds=6-6 --results_dir=results/study/loglin_tuning \
    --gin_bindings=VectorizedRunner.num_iterations=8 "$@"
}
log_linear() {  # b, which is c too; beta_reg; then other flags
  b=$1 beta_reg=$2
  shift 2
  look --agent=log_dqn --scan=VectorizedLogDQNAgent.linear_above="$b" \
    --scan=VectorizedLogDQNAgent.c="$b" --scan=VectorizedLogDQNAgent.beta_log=0.0005 \
    --scan=VectorizedLogDQNAgent.beta_reg="$beta_reg" \
    --scan=VectorizedLogDQNAgent.loss_type="'mse'" "$@"
}
for of in MinAtar/Asterix:0.96,0.99 MinAtar/Breakout:0.5,0.96 MinAtar/Freeway:0.5,0.99; do
  game=--games=${of%:*} gammas=${of#*:}
  look --agent=dqn "$game" --scan=VectorizedDQNAgent.gamma="$gammas" \
    --scan=VectorizedDQNAgent.learning_rate=0.0005 --scan=VectorizedDQNAgent.loss_type="'mse'" "$@"
  for setting in "1.0 0.3" "0.1 0.3" "0.1 1.0" "0.3 1.0" "0.03 1.0"; do
    log_linear $setting "$game" --scan=VectorizedLogDQNAgent.gamma="$gammas" "$@"
  done
done
# A floor of 1e-5.
log_linear 0.1 0.3 --games=MinAtar/Asterix --scan=VectorizedLogDQNAgent.gamma=0.96 \
  --scan=VectorizedLogDQNAgent.k=282 "$@"
