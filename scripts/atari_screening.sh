#!/bin/sh
# Why does LogDQN lag in Atari's first steps? Seed 1, beside the runs of atari_study.sh: DQN with LogDQN's
# discount factor, and with Adam; LogDQN with another first value, with LogLinDQN's step-size and
# average, that with LogLinDQN's Adam, and that with its c, so that only the line differs; LogLinDQN with
# RMSProp; all three with another epsilon of RMSProp. 500,000 agent steps (by 350,000 DQN hardly learns
# on Asterix), about two hours of a core and 4 GB a run, 21 runs.
set -e
screen() {
  log-dqn sweep --games=Asterix,Alien --seeds=1 --results_dir=results/atari --cpus_per_run=1 \
    --gin_files=short.gin "$@"
}
adam() {
  agent=$1 class=$2
  shift 2
  # beta1, which is Adam's 0.9 anyway, tells in the folder's name that it is Adam.
  screen --agents="$agent" --gin_bindings="$class.optimizer=@tf.train.AdamOptimizer()" \
    --gin_bindings=AdamOptimizer.epsilon=0.00015 --scan=AdamOptimizer.beta1=0.9 "$@" \
    --scan=AdamOptimizer.learning_rate=0.0000625
}
screen --agents=dqn --scan=DQNAgent.gamma=0.96 "$@"
screen --agents=log_dqn --scan=LogDQNAgent.q_init_plus=0.1 "$@"
screen --agents=log_dqn --scan=LogDQNAgent.beta_reg=1.0 \
  --scan=tf.train.RMSPropOptimizer.learning_rate=0.00025 "$@"
screen --agents=loglin_dqn "$@"
screen --agents=dqn,log_dqn,loglin_dqn --scan=RMSPropOptimizer.epsilon=0.0000001 "$@"
# Asterix chose LogLinDQN's epsilon: another game judges it.
screen --agents=loglin_dqn --games=Breakout --scan=RMSPropOptimizer.epsilon=0.0000001 "$@"
adam dqn DQNAgent "$@"
adam log_dqn LogDQNAgent --scan=LogDQNAgent.beta_reg=1.0 "$@"
adam log_dqn LogDQNAgent --scan=LogDQNAgent.beta_reg=1.0 --scan=LogDQNAgent.c=0.1 "$@"
