"""Many runs at once: planning, checking, running and showing them. `log_dqn.sweep` is the entry."""
