"""One run of Dopamine's, in a process of its own. `log_dqn.train` is the entry."""
