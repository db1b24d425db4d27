#!/bin/sh
# What decides the claim: LogLinDQN and DQN, each at the discount factor that was best over games
# in the study, with seeds that chose nothing.
set -e
log-dqn train-vectorized --agent=loglin_dqn --games=minatar5 --seeds=9-13 \
  --results_dir=results/study/confirm --scan=VectorizedLogDQNAgent.gamma=0.96 "$@"
log-dqn train-vectorized --agent=dqn --games=minatar5 --seeds=9-13 \
  --results_dir=results/study/confirm --scan=VectorizedDQNAgent.gamma=0.96 \
  --gin_bindings=VectorizedDQNAgent.learning_rate=0.0005 "$@"
