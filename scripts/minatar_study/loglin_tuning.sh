#!/bin/sh
# LogLinDQN's settings, and DQN with squared error, with a seed that is not the study's. 400,000
# steps; discount factors at which LogDQN and DQN differ first, then more.
set -e
look() {
  log-dqn train-vectorized --seeds=6-6 --results_dir=results/study/loglin_tuning \
    --gin_bindings=VectorizedRunner.num_iterations=8 "$@"
}
# In parentheses, a function's variables are its own.
dqn() (  # game, discount factors; then other flags
  game=$1 gammas=$2
  shift 2
  look --agent=dqn --games=MinAtar/"$game" --scan=VectorizedDQNAgent.gamma="$gammas" \
    --scan=VectorizedDQNAgent.learning_rate=0.0005 --scan=VectorizedDQNAgent.loss_type="'mse'" "$@"
)
# The order of the scans is that in the names of docs/data's settings.
log_linear() (  # b, which is c too; beta_reg; game, discount factors; then other flags
  b=$1 beta_reg=$2 game=$3 gammas=$4
  shift 4
  look --agent=log_dqn --games=MinAtar/"$game" --scan=VectorizedLogDQNAgent.gamma="$gammas" \
    --scan=VectorizedLogDQNAgent.linear_above="$b" --scan=VectorizedLogDQNAgent.c="$b" \
    --scan=VectorizedLogDQNAgent.beta_log=0.0005 --scan=VectorizedLogDQNAgent.beta_reg="$beta_reg" \
    --scan=VectorizedLogDQNAgent.loss_type="'mse'" "$@"
)
for of in "Asterix 0.96,0.99" "Breakout 0.5,0.96" "Freeway 0.5,0.99"; do
  dqn $of "$@"
  for setting in "1.0 0.3" "0.1 0.3" "0.1 1.0" "0.3 1.0"; do
    log_linear $setting $of "$@"
  done
done
log_linear 0.03 1.0 Asterix 0.96,0.99 "$@"
log_linear 0.03 1.0 Breakout 0.5 "$@"
# A floor of 1e-5.
log_linear 0.1 0.3 Asterix 0.96 --scan=VectorizedLogDQNAgent.k=282 "$@"

# beta_reg 1: Huber's loss, step-sizes, and again a floor of 1e-5, at all discount factors.
averaging() (  # b, which is c too; beta_log; loss; game, discount factor; k; then other flags
  b=$1 beta_log=$2 loss=$3 game=$4 gamma=$5 k=$6
  shift 6
  look --agent=log_dqn --games=MinAtar/"$game" --scan=VectorizedLogDQNAgent.linear_above="$b" \
    --scan=VectorizedLogDQNAgent.c="$b" --scan=VectorizedLogDQNAgent.beta_log="$beta_log" \
    --scan=VectorizedLogDQNAgent.beta_reg=1.0 --scan=VectorizedLogDQNAgent.loss_type="'$loss'" \
    --scan=VectorizedLogDQNAgent.gamma="$gamma" --scan=VectorizedLogDQNAgent.k="$k" "$@"
)
for game in Asterix Breakout Freeway; do
  for gamma in 0.5 0.8 0.96 0.99; do
    averaging 0.1 0.0005 huber $game $gamma 100 "$@"
  done
  for floor in "0.5 17" "0.8 52" "0.96 282" "0.99 1146" "0.8 100"; do
    averaging 0.1 0.0005 mse $game $floor "$@"
  done
done
for of in "Asterix 0.5" "Asterix 0.96" "Asterix 0.99" "Breakout 0.5" "Breakout 0.96"; do
  for setting in "0.1 0.001" "0.1 0.00025" "0.3 0.0005"; do
    averaging $setting huber $of 100 "$@"
  done
done
for of in "Asterix 0.96" "Asterix 0.99" "Breakout 0.5" "Freeway 0.5"; do
  averaging 0.03 0.0005 huber $of 100 "$@"
done
averaging 0.1 0.0005 mse Asterix 0.5 100 "$@"
for of in "Asterix 0.5" "Breakout 0.99" "Freeway 0.96"; do
  dqn $of "$@"
done
