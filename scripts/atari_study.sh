#!/bin/sh
# DQN, LogDQN and LogLinDQN with Adam in their first 500,000 agent steps, under the protocol of
# Dopamine's baselines but for what short.gin sets; the memory holds all steps, as theirs does by then.
# About two hours of a core and 4 GB a run. First a policy at random, 150,000 steps.
set -e
study() { log-dqn sweep --results_dir=results/atari --cpus_per_run=1 "$@"; }
study --agents=dqn --seeds=1 --gin_files=short.gin --gin_bindings=Runner.num_iterations=3 \
  --scan=DQNAgent.min_replay_history=1000000 --gin_bindings=WrappedReplayBuffer.replay_capacity=1000 "$@"
study --agents=dqn,log_dqn --seeds=2 --gin_files=short.gin "$@"
# beta1, which is Adam's 0.9 anyway, tells in the folder's name that it is Adam.
study --agents=loglin_dqn --seeds=2 --gin_files=loglin_dqn_short.gin --scan=AdamOptimizer.beta1=0.9 \
  --scan=AdamOptimizer.learning_rate=0.0000625 "$@"
