"""LogDQN on Dopamine's JAX agents. Importing it imports nothing.

`update`, `heads` and `optimizers` need neither TensorFlow nor Dopamine; `log_dqn_agent`,
`agent_checkpoint` and `compat` are built on Dopamine, which imports TensorFlow.
"""
