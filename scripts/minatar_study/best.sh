#!/bin/sh
# What makes the best better: squared error, three-step updates, and what else may help LogLinDQN or
# DQN at 0.96, with seeds that are not the study's. 1,000,000 steps: Asterix shows later what it shows.
set -e
look() {  # agent, class, game; then settings, which are scanned, and other flags
  agent=$1 class=$2 game=$3
  shift 3
  for word in "$@"; do
    shift
    case $word in --*) ;; *) word=--scan=$class.$word ;; esac
    set -- "$@" "$word"
  done
  log-dqn train-vectorized --agent="$agent" --games=MinAtar/"$game" --seeds=6-8 \
    --results_dir=results/study/best --scan="$class".gamma=0.96 "$@"
}
loglin() { look loglin_dqn VectorizedLogDQNAgent "$@"; }
dqn() { look dqn VectorizedDQNAgent "$@"; }
rate=--gin_bindings=VectorizedDQNAgent.learning_rate=0.0005
mse="loss_type='mse'"
for setting in "" update_horizon=3; do
  loglin Asterix $setting "$@"
  dqn Asterix $rate $setting "$@"
done
for game in Asterix SpaceInvaders; do
  loglin $game $mse "$@"
  dqn $game $rate update_horizon=3 $mse "$@"
done
for game in Asterix SpaceInvaders Breakout Seaquest Freeway; do
  loglin $game update_horizon=3 $mse "$@"
  dqn $game $rate $mse "$@"
done
loglin Asterix q_init_plus=0.1 "$@"
loglin Asterix q_init_plus=0.0 "$@"
loglin Asterix beta_reg=0.3 k=282 "$@"
loglin Asterix beta_reg=0.3 k=282 $mse "$@"
