"""One contestant of `benchmark.py peers`, in a process and an environment of its own.

    python peer_worker.py NAME SEEDS CAPACITY [FOLDER OF MODULES]

It prints a line when it is compiled and learns. From then on it plays a block for each line that it
reads, and prints the agent steps of all seeds together per second of processor time.
"""

import functools
import sys
import time
import types
from collections.abc import Callable
from typing import Any

GAME = "Freeway"
STEPS = 2000
"""Agent steps of a seed in a block, and before the first."""


def _here(agent: str, seeds: int, capacity: int) -> Callable[[], object]:
    """Returns what trains runs of this package one after the other, as on a CPU's core."""
    from benchmarks import minatar

    minatar.on_one_core()
    players = [
        minatar.Player(f"MinAtar/{GAME}", agent, [seed], STEPS, capacity) for seed in range(seeds)
    ]

    def play() -> None:
        for player in players:
            player.play(STEPS)

    return play


def _dopamine(seeds: int, capacity: int) -> Callable[[], object]:
    """Returns what trains Dopamine's JaxDQNAgent, one seed."""
    from log_dqn import compat

    with compat.quiet():
        from log_dqn.dopamine_run import agents as dopamine_agents
        from log_dqn.dopamine_run import runner  # noqa: F401  It registers what gin files name.

    from benchmarks import agents
    from log_dqn import minatar
    from log_dqn.cli import gin_files

    capacity_line = f"ReplayBuffer.max_capacity = {capacity}"
    gin_files.read(gin_files.parse(["jax_dqn_minatar.gin"], [capacity_line]))
    environment = minatar.create_environment(f"MinAtar/{GAME}", seed=1)
    agent = dopamine_agents.create_agent(None, environment, seed=1)
    agent.begin_episode(environment.reset())
    agents.play(agent, environment, 0, 1200)
    return lambda: agents.play(agent, environment, 0, STEPS)


def _network(game: Any) -> Any:
    """Returns the network as a module of flax for a game of gymnax, whose boards may be flat."""
    from flax import linen as nn
    from jax import numpy as jnp

    class Network(nn.Module):
        action_dim: int

        @nn.compact
        def __call__(self, boards: Any) -> Any:
            x = boards.reshape(-1, *game.obs_shape).astype(float)
            x = nn.relu(nn.Conv(16, (3, 3))(x))
            return nn.Dense(self.action_dim)(x.reshape(len(x), -1))

        def take(self, boards: Any, actions: Any) -> Any:  # rejax asks for it.
            return jnp.take_along_axis(self(boards), actions[:, None], axis=-1)[:, 0]

    return Network


def _rejax(seeds: int, capacity: int) -> Callable[[], object]:
    """Returns what trains rejax' DQN, whose updates follow a step of four environments."""
    import gymnax
    import jax
    from rejax import get_algo
    from rejax.networks import EpsilonGreedyPolicy

    game, params = gymnax.make(f"{GAME}-MinAtar")
    algo = get_algo("dqn").create(
        env=game, env_params=params, num_envs=4, num_epochs=1, batch_size=32, buffer_size=capacity,
        fill_buffer=1000, total_timesteps=STEPS, eval_freq=STEPS, skip_initial_evaluation=True,
        target_update_freq=1000, polyak=0.0, ddqn=False, learning_rate=0.00025,
    )  # fmt: skip
    policy = EpsilonGreedyPolicy(_network(game))(algo.action_dim)
    algo = algo.replace(agent=policy, eval_callback=lambda algo, state, key: ())
    train = jax.jit(jax.vmap(lambda state: algo.train(train_state=state)[0]), donate_argnums=0)
    state = jax.jit(jax.vmap(algo.init_state))(jax.random.split(jax.random.PRNGKey(0), seeds))

    def play() -> None:
        nonlocal state
        state = jax.block_until_ready(train(state))

    return play


def _purejaxrl(seeds: int, capacity: int) -> Callable[[], object]:
    """Returns what trains purejaxrl's DQN, from its first step on."""
    sys.modules["wandb"] = types.ModuleType("wandb")  # Imported, and not used unless told to.
    import dqn
    import gymnax
    import jax

    dqn.QNetwork = _network(gymnax.make(f"{GAME}-MinAtar")[0])
    train = dqn.make_train(
        {
            "NUM_ENVS": 1, "BUFFER_SIZE": capacity, "BUFFER_BATCH_SIZE": 32,
            "TOTAL_TIMESTEPS": STEPS, "EPSILON_START": 1.0, "EPSILON_FINISH": 0.01,
            "EPSILON_ANNEAL_TIME": 250_000, "TARGET_UPDATE_INTERVAL": 1000, "LR": 0.00025,
            "LEARNING_STARTS": 0, "TRAINING_INTERVAL": 4, "GAMMA": 0.99, "TAU": 1.0,
            "ENV_NAME": f"{GAME}-MinAtar",
        }
    )  # fmt: skip
    run = jax.jit(jax.vmap(train))
    keys = jax.random.split(jax.random.PRNGKey(0), seeds)
    return lambda: jax.block_until_ready(run(keys))


WORKERS: dict[str, Callable[[int, int], Callable[[], object]]] = {
    "dqn": functools.partial(_here, "dqn"),
    "log_dqn": functools.partial(_here, "log_dqn"),
    "dopamine": _dopamine,
    "rejax": _rejax,
    "purejaxrl": _purejaxrl,
}


def main(name: str, seeds: str, capacity: str, *paths: str) -> None:
    """Trains a block for each line of the standard input; see the top."""
    sys.path[:1] = paths  # In this folder lies another minatar.
    play = WORKERS[name](int(seeds), int(capacity))
    play()  # Compiles, and fills the memory.
    print(f"JAX {sys.modules['jax'].__version__}", flush=True)
    for _ in sys.stdin:
        began = time.process_time()
        play()
        print(STEPS * int(seeds) / (time.process_time() - began), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
