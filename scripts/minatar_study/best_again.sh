#!/bin/sh
# Whether LogLinDQN's best is DQN's, both with squared error and three-step updates, with ten fresh
# seeds. docs/reports/plan.md says what decides.
set -e
decide() {  # agent, class; then settings
  agent=$1 class=$2
  shift 2
  log-dqn train-vectorized --agent="$agent" --games=minatar5 --seeds=41-50 \
    --results_dir=results/study/best_again --scan="$class".gamma=0.96 \
    --scan="$class".update_horizon=3 --scan="$class".loss_type="'mse'" "$@"
}
decide loglin_dqn VectorizedLogDQNAgent "$@"
decide dqn VectorizedDQNAgent --gin_bindings=VectorizedDQNAgent.learning_rate=0.0005 "$@"
