#!/bin/sh
# Which part of LogLinDQN works at low discount factors: the logarithm, the optimistic start or the
# second head. docs/reports/plan.md says what decides. 400,000 steps.
set -e
variant() {  # agent, class; then settings
  agent=$1 class=$2
  shift 2
  log-dqn train-vectorized --agent="$agent" --games=minatar5 --seeds=31-40 \
    --results_dir=results/study/mechanism --gin_bindings=VectorizedRunner.num_iterations=8 \
    --scan="$class".gamma=0.5,0.8,0.9 "$@"
}
loglin() { variant loglin_dqn VectorizedLogDQNAgent "$@"; }
variant dqn VectorizedDQNAgent --gin_bindings=VectorizedDQNAgent.learning_rate=0.0005 "$@"
loglin "$@"
loglin --scan=VectorizedLogDQNAgent.linear_above=1e-9 --scan=VectorizedLogDQNAgent.c=1e-9 "$@"
loglin --scan=VectorizedLogDQNAgent.q_init_plus=0.0 "$@"
loglin --scan=VectorizedLogDQNAgent.minus_head=False "$@"
