#!/bin/sh
# LogLinDQN in the study: five games, five discount factors and five seeds, as main.sh.
set -e
for game in Asterix Freeway Breakout SpaceInvaders Seaquest; do
  log-dqn train-vectorized --agent=loglin_dqn --games=MinAtar/$game --seeds=5 \
    --results_dir=results/study/loglin_main \
    --scan=VectorizedLogDQNAgent.gamma=0.5,0.8,0.9,0.96,0.99 "$@"
done
