"""The command `log-dqn`, and its programs that have no module of their own in the root."""
