#!/bin/sh
# When do values run away? The study's LogDQN and LogLinDQN at high discount factors. 400,000 steps.
set -e
for agent in log_dqn loglin_dqn; do
  log-dqn train-vectorized --agent=$agent --games=minatar5 --seeds=2 \
    --results_dir=results/study/runaway --scan=VectorizedLogDQNAgent.gamma=0.9,0.96,0.99 \
    --gin_bindings=VectorizedRunner.num_iterations=8 "$@"
done
