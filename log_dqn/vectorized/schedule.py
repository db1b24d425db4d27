"""The settings of a run."""

import dataclasses
from typing import Any

import gin

from log_dqn import log_space
from log_dqn.checks import check, check_count, check_one_of
from log_dqn.vectorized import agents, networks


@gin.configurable(name_or_fn="VectorizedRunner")
@dataclasses.dataclass(frozen=True, kw_only=True)
class RunnerSettings:
    """The settings of a run. Steps are agent steps; the defaults are the paper's.

    Attributes:
        agent: name of the agent, as in `agents.AGENTS`.
        num_iterations: iterations of a run.
        training_steps: steps of an iteration's training phase, at least.
        evaluation_steps: steps of its evaluation phase, at least; 0 for none.
        max_steps_per_episode: steps after which a game's episode ends, as if lost, and another
            environment's is cut off; see `jax_environments.create_environment`.
        replay_capacity: transitions that a run's replay memory holds.
        batch_size: transitions of an update.
        stack_size: observations in a state.
        network: name of the network, as in `networks.NETWORKS`, or 'by_shape'; or a class of flax
            modules that map a batch of states to features.
        precision: of the network's torso, one of `log_space.PRECISIONS`.
        clip_rewards: whether rewards are clipped to [-1, 1] for learning.
    """

    agent: str = "log_dqn"
    num_iterations: int = 200
    training_steps: int = 250000
    evaluation_steps: int = 125000
    max_steps_per_episode: int = 27000
    replay_capacity: int = 1000000
    batch_size: int = 32
    stack_size: int = 4
    network: Any = "nature"
    precision: str = "float32"
    clip_rewards: bool = True

    def __post_init__(self) -> None:
        for name, known in (
            ("agent", agents.AGENTS),
            ("network", (*networks.NETWORKS, networks.BY_SHAPE)),
            ("precision", log_space.PRECISIONS),
        ):
            if name != "network" or not hasattr(self.network, "init_with_output"):
                check_one_of(name, getattr(self, name), known)
        clips = self.clip_rewards
        check("clip_rewards", clips, isinstance(clips, bool), "True or False")
        for field in dataclasses.fields(self):
            if field.type in (int, "int"):
                least = 0 if field.name == "evaluation_steps" else 1
                # The replay memory has a byte for a step's place in its stack.
                most = 256 if field.name == "stack_size" else agents.MAX_COUNT
                check_count(field.name, getattr(self, field.name), least, most)

    @property
    def steps_per_iteration(self) -> int:
        """Planned steps of an iteration."""
        return self.training_steps + self.evaluation_steps
