"""One run of one of Dopamine's agents, in its own process. `log_dqn.train` is the entry point."""
