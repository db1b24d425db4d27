import log_dqn  # noqa: F401  (makes Dopamine importable)
from log_dqn import compat

# Hold back TensorFlow's start-up notes, so that pytest's output stays readable.
with compat.quiet():
    import dopamine.discrete_domains.run_experiment  # noqa: F401
