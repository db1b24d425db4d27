"""The loop as one program on MinAtar: a run on a core, two side by side, what it is made of."""

import concurrent.futures
import importlib.util
import resource
from collections.abc import Callable, Sequence
from typing import Any

import gin
import jax
import numpy as np

from benchmarks import measuring
from log_dqn.cli import gin_files, threads
from log_dqn.jax import devices
from log_dqn.vectorized import agents, device_loop, jax_environments, learner, networks, timeline

STEPS = 10 * device_loop.CHUNK_STEPS
_DOPAMINE_STEPS = 200
_ROWS, _PRODUCTS = 1024, 32
_ONE = np.ones(1, np.int32)
_UPDATE = timeline.Update(_ONE, 0 * _ONE, 5000 * _ONE, _ONE > 0, _ONE < 0)


class Player:
    """Plays a run that learns, or several in one program, with a full schedule.

    Attributes:
        learner: weights and memory.
        returns: of the episodes so far.
    """

    def __init__(
        self,
        game: str,
        agent: str,
        seeds: Sequence[int],
        steps: int = STEPS,
        capacity: int = 100_000,
        **settings: float,
    ) -> None:
        """Plays some steps of a run for each seed, until updates have begun.

        `capacity` is of the replay memory; `settings` are of the agent, other than those of its gin
        file.
        """
        gin.clear_config()
        capacity_line = f"VectorizedRunner.replay_capacity = {capacity}"
        gin_files.read(gin_files.parse([f"vectorized_{agent}_minatar.gin"], [capacity_line]))
        for name, value in settings.items():
            gin.parse_config(f"{agents.AGENTS[agent].__name__}.{name} = {value}")
        runner = agents.RunnerSettings(training_steps=10**9)
        run_agents = [agents.AGENTS[agent]()] * len(seeds)
        jax_game = jax_environments.create_game(game)
        problem = learner.Problem(
            networks.create(runner.network, runner.precision), jax_game.frame_shape, "bool",
            runner.stack_size, runner.batch_size, runner.replay_capacity,
        )  # fmt: skip
        num_actions = [jax_game.num_actions] * len(seeds)
        self.learner = learner.Learner(run_agents, problem, runner, num_actions, seeds)
        self._position = timeline.begin(len(seeds))
        self._loop = device_loop.DeviceLoop(self.learner, jax_game)
        self._loop.reset(np.ones(len(seeds), bool), np.array(seeds))
        self.returns: list[float] = []
        self.play(steps)

    def play(self, steps: int = STEPS) -> None:
        """Plays some agent steps of each run."""
        for _ in range(steps // device_loop.CHUNK_STEPS):
            ready = self._position.iteration
            self._position, episodes = self._loop.advance(self._position, ready)
            self.returns += episodes.value[episodes.ended].tolist()

    def update(self) -> None:
        """Runs as many updates as `play` does."""
        for _ in range(STEPS // 4):
            self.learner.learn(_UPDATE)
        jax.block_until_ready(self.learner.weights)

    def arithmetic(self) -> float:
        """Returns the floating-point operations of an update, as JAX counts them.

        From 0.7 on those by the zeros of the kernels of 3 x 4 are among them.
        """
        of_runs = self.learner
        inputs = of_runs.weights, of_runs.summary, of_runs.memory, of_runs.fixed, _UPDATE
        update: Any = jax.jit(of_runs.step_functions.learn).lower(*inputs)
        return update.cost_analysis()["flops"]


def _environment(game: str) -> Callable[[], None]:
    """Returns what plays a game at random for `STEPS` steps."""
    jax_game = jax_environments.create_game(game)

    def step(
        state: jax_environments.State, key: jax.Array
    ) -> tuple[jax_environments.State, jax.Array]:
        action = jax.random.randint(key, (), 0, jax_game.num_actions)
        state, outcome = jax_game.step(state, action)
        return state, outcome.reward

    play = jax.jit(
        lambda state, keys: jax.lax.scan(step, state, keys),
        compiler_options=learner.compiler_options(),
    )
    state, _ = jax_game.reset(jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), STEPS)
    return lambda: jax.block_until_ready(play(state, keys))


def _side_by_side(game: str, cores: int) -> Callable[[], object]:
    """Returns what plays a run on each core."""

    def on_device(device: jax.Device | None, function: Callable[..., Any], *args: Any) -> Any:
        with jax.default_device(device):
            return function(*args)

    of_cores = devices.side_by_side(cores)
    players = [
        on_device(device, Player, game, "log_dqn", [seed]) for seed, device in enumerate(of_cores)
    ]
    executor = concurrent.futures.ThreadPoolExecutor(cores)
    return lambda: list(executor.map(on_device, of_cores, [Player.play] * cores, players))


def _product() -> Callable[[], object]:
    """Returns what multiplies two matrices of `_ROWS` rows and columns `_PRODUCTS` times."""
    matrix = jax.random.normal(jax.random.key(0), (_ROWS, _ROWS))
    multiply = jax.jit(jax.numpy.matmul, compiler_options=learner.compiler_options())
    return lambda: [multiply(matrix, matrix).block_until_ready() for _ in range(_PRODUCTS)]


def dopamine(game: str, steps: int, capacity: int = 100_000, seed: int = 1) -> Callable[[], object]:
    """Returns what trains Dopamine's JaxDQNAgent on a game for some steps."""
    from log_dqn import compat

    with compat.quiet():
        from log_dqn.dopamine_run import agents as dopamine_agents
        from log_dqn.dopamine_run import runner  # noqa: F401  It registers what gin files name.

    from log_dqn import minatar

    gin.clear_config()
    capacity_line = f"ReplayBuffer.max_capacity = {capacity}"
    gin_files.read(gin_files.parse(["jax_dqn_minatar.gin"], [capacity_line]))
    environment = minatar.create_environment(game, seed=seed)
    agent = dopamine_agents.create_agent(None, environment, seed=seed)
    agent.begin_episode(environment.reset())
    measuring.play(agent, environment, 0, 1200)
    return lambda: measuring.play(agent, environment, 0, steps)


def run(game: str, rounds: int) -> None:
    """Prints steps/s of each on one of MinAtar's games, measured in turn."""
    # As train_vectorized does.
    threads.limit(1)
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    print(f"{game}, batch size 32, JAX {jax.__version__} on {jax.devices()[0].device_kind}")
    players = {agent: Player(game, agent, [1]) for agent in agents.AGENTS}
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    idle = Player(game, "log_dqn", [1], min_replay_history=10**9)
    cores = threads.cores()
    blocks: dict[str, Callable[[], object]] = {
        **{agent: of_agent.play for agent, of_agent in players.items()},
        "cores": _side_by_side(game, cores),
        "acting and game": idle.play,
        "game": _environment(game),
        "updates": players["log_dqn"].update,
        "products": _product(),
    }
    steps = dict.fromkeys(blocks, STEPS) | {"cores": cores * STEPS}
    if all(importlib.util.find_spec(name) for name in ("dopamine", "minatar")):
        blocks["Dopamine's JaxDQNAgent"] = dopamine(game, _DOPAMINE_STEPS)
        steps["Dopamine's JaxDQNAgent"] = _DOPAMINE_STEPS
    times = measuring.interleave(blocks, rounds, "MinAtar")
    products = 2e-9 * _PRODUCTS * _ROWS**3 / times.pop("products")
    for name, seconds in times.items():
        low, median, high = np.percentile(steps[name] / seconds, [10, 50, 90])
        shown = f"{cores} runs of log_dqn" if name == "cores" else name
        print(f"{shown:<26}{median:>9.0f} steps/s (10% to 90% of blocks: {low:.0f} to {high:.0f})")
    one, together = (steps[name] / times[name] for name in ("log_dqn", "cores"))
    print(f"{cores} runs side by side against one: {np.median(together / one):.2f} times")
    share = np.median(times["updates"] / times["log_dqn"])
    rest = np.median(times["game"] / times["log_dqn"])
    print(f"of a run's time: updates {share:.0%}, game {rest:.0%}, acting and storing the rest")
    operations = players["log_dqn"].arithmetic()
    rates = 1e-9 * operations * STEPS / 4 / times["updates"]
    print(
        f"an update is {1e-6 * operations:.1f} million operations, and DQN's "
        f"{1e-6 * players['dqn'].arithmetic():.1f}: {np.median(rates):.0f} GFLOP/s, "
        f"and products of matrices of {_ROWS} rows do {np.median(products):.0f} GFLOP/s"
    )
    print(f"peak memory with a run of each agent: {resident:.0f} MiB")
