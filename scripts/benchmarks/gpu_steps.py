"""What is found out about a GPU, a step at a time: is it right, how fast, where the time goes."""

import functools
import gzip
import json
import pathlib
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import gin
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import measuring, minatar, vectorized
from log_dqn import log_space
from log_dqn.cli import threads, words
from log_dqn.jax import devices
from log_dqn.vectorized import agents, networks, pool, replay, timeline, training

_NUM_ACTIONS = 6
SMALL_GAME = "MinAtar/Breakout"
# Of a layer's gradient, relative to its norm. Units that are nearly 0 can be on the other side of
# it, which is most of the difference.
_LARGEST_ERROR = {"float32": 0.01, "tf32": 0.05, "bfloat16": 0.2}
# Of an array of weights after 125 updates in `twin`, relative to its norm. On a CPU, where initial
# weights that are 1e-5 off are as far off then, it is 0.01 to 0.07 in bfloat16, and 0.02 to 0.09
# with a gamma that is 0.01 off. Later, actions that are nearly as good as others decide.
_LARGEST_DIFFERENCE, _TWIN_STEPS = 0.001, 1500


class Size(NamedTuple):
    """How much is done.

    Attributes:
        runs: numbers of Atari runs at once, beside as many as fit.
        precise_runs: runs at once in other precisions than float32.
        most_runs: more than these are not tried.
        small_runs: numbers of MinAtar runs at once.
        capacity: transitions that a measured run remembers.
        seconds: of each step's measurements.
        traced_steps: steps of all runs that are traced.
    """

    runs: tuple[int, ...]
    precise_runs: int
    most_runs: int
    small_runs: tuple[int, ...]
    capacity: int
    seconds: float
    traced_steps: int


FULL = Size((1, 4, 16, 64), 16, 512, (1, 25, 125), 100_000, 10.0, 200)
DRY = Size((1,), 1, 2, (1,), 300, 0.5, 8)


def steps(size: Size) -> dict[str, Callable[[], dict[str, Any]]]:
    """Returns the steps by their names, in their order."""
    found: dict[str, Callable[[], dict[str, Any]]] = {
        "device": device, "gradients": gradients, "reads": reads, "twin": twin,
    }  # fmt: skip
    for num_runs in size.runs:
        found["Atari, " + words.counted(num_runs, "run")] = functools.partial(atari, size, num_runs)
    found["Atari, as many as fit"] = functools.partial(most, size)
    for precision in log_space.PRECISIONS[1:]:
        name = f"Atari, {words.counted(size.precise_runs, 'run')} in {precision}"
        found[name] = functools.partial(atari, size, size.precise_runs, precision)
    for num_runs in size.small_runs:
        name = f"MinAtar, {words.counted(num_runs, 'run')}"
        found[name] = functools.partial(small, size, num_runs)
    found["trace"] = functools.partial(trace, size)
    return found


def device() -> dict[str, Any]:
    """Returns what this is measured on."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        answer = ""
    kind = devices.backend()
    return {
        "device": jax.devices()[0].device_kind,
        "kind": kind,
        # After a plugin's own name.
        "platform": jax.devices()[0].client.platform_version.splitlines()[-1],
        "driver": (answer.splitlines() or ["none"])[0],
        "JAX": jax.__version__,
        "precision": "float32 where no other is named",
        "JAX's own precision": str(jax.config.jax_default_matmul_precision),  # type: ignore[attr-defined]
        "CPU cores": threads.cores(),
    }


def _gradients(
    agent: agents.Agent, params: Any, precision: str, dtype: Any
) -> dict[str, np.ndarray]:
    """Returns the gradients of one update from made transitions, by layer."""
    rng = np.random.default_rng(0)
    network = networks.create("nature", precision)
    cast = jax.tree.map(lambda x: np.asarray(x, dtype), params)
    frames = rng.integers(0, 256, (2, 32, 84, 84, 4)).astype(np.uint8)
    batch = (
        rng.integers(0, _NUM_ACTIONS, 32).astype(np.int32), rng.integers(-1, 2, 32).astype(dtype),
        rng.random(32) < 0.1,
    )  # fmt: skip
    # The network in float64 has no `create`, which returns float32.
    network = networks.nature if dtype is np.float64 else network
    constants = jax.tree.map(dtype, agent.constants)

    def loss(params: Any, target_params: Any, frames: Any, batch: Any) -> jax.Array:
        outputs, next_outputs = (
            agent.outputs(network, params, states, _NUM_ACTIONS)
            for params, states in ((params, frames[0]), (target_params, frames[1]))
        )
        return agent.batch_loss(constants)(outputs, next_outputs, *batch)[0]

    target_params = jax.tree.map(lambda x: x * dtype(0.9), cast)
    found = jax.jit(jax.grad(loss))(cast, target_params, frames, batch)
    return {layer: np.asarray(leaves["kernel"]) for layer, leaves in found.items()}


def gradients() -> dict[str, Any]:
    """Compares updates with float64's on the CPU: relative errors of each layer's gradient."""
    result: dict[str, Any] = {}
    for name, create in agents.AGENTS.items():
        agent = create()
        of_network = (84, 84, 4), _NUM_ACTIONS, _NUM_ACTIONS
        params = agents.initial_params(
            agent.head_inits, networks.nature, jax.random.key(1), *of_network
        )
        jax.config.update("jax_enable_x64", True)
        with jax.default_device(jax.devices("cpu")[0]):
            exact = _gradients(agent, params, "float32", np.float64)
        jax.config.update("jax_enable_x64", False)
        for precision in log_space.PRECISIONS:
            found = _gradients(agent, params, precision, np.float32)
            errors = {layer: _distance(found[layer], kernel) for layer, kernel in exact.items()}
            result[f"{name} in {precision}"] = errors
            if not all(error <= _LARGEST_ERROR[precision] for error in errors.values()):
                result["failed"] = f"{name} in {precision}: above {_LARGEST_ERROR[precision]}"
    return result


def reads() -> dict[str, Any]:
    """Compares what is drawn and read from a replay memory with the CPU's.

    All is the same bit for bit, but for sums of rewards, which a device may add in another order.
    """
    rng = np.random.default_rng(2)
    memory = replay.Memory(
        rng.integers(0, 256, (1000, 84, 84)).astype(np.uint8),
        rng.integers(0, 4, 1000).astype(np.uint8),
        rng.integers(0, _NUM_ACTIONS, 1000).astype(np.int8),
        rng.normal(size=1000).astype(np.float32),
        rng.random(1000) < 0.05,
    )
    found = []
    for place in (jax.devices()[0], jax.devices("cpu")[0]):
        with jax.default_device(place):
            slots = replay.draw(jax.random.key(3), 17, 900, 1000, 32, 4, 3)
            read = replay.read(jax.tree.map(jnp.asarray, memory), slots)
            transitions = replay.transitions(read, 4, 0.9)
            found.append({"slots": slots, **transitions._asdict()})
    here, there = ({name: np.asarray(x) for name, x in of.items()} for of in found)
    result: dict[str, Any] = {
        name: bool(
            np.allclose(value, there[name], 1e-6, 1e-6)
            if value.dtype == np.float32
            else (value == there[name]).all()
        )
        for name, value in here.items()
    }
    if not all(result.values()):
        result["failed"] = "not the CPU's"
    return result


def twin() -> dict[str, Any]:
    """Trains LogDQN on a small game here and on the CPU, and compares what comes out.

    Play at random gives both the same transitions, so that returns are the same and weights nearly.
    Where the network plays, rounding decides sooner or later: how long not, is only said.
    """
    found = []
    for place in (jax.devices()[0], jax.devices("cpu")[0]):
        with jax.default_device(place):
            player = minatar.Player(SMALL_GAME, "log_dqn", [1], _TWIN_STEPS, epsilon_train=1.0)
            weights = jax.tree_util.tree_leaves_with_path(player.learner.weights.params)
            layers = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in weights}
            playing = minatar.Player(SMALL_GAME, "log_dqn", [1], epsilon_decay_period=1)
            found.append((player.returns, layers, playing.returns))
    (returns, layers, played), (expected, exact, cpu_played) = found
    errors = {name: _distance(layers[name], leaf) for name, leaf in exact.items()}
    same = [our == their for our, their in zip(played, cpu_played, strict=False)]
    result = {
        f"returns of {_TWIN_STEPS} agent steps at random are the CPU's": returns == expected,
        "relative differences of the weights after them": errors,
        f"episodes of {minatar.STEPS} agent steps by the network": len(cpu_played),
        "of them before the first other return": [*same, False].index(False),
    }
    if returns != expected:
        result["failed"] = "other returns at random"
    elif not all(error <= _LARGEST_DIFFERENCE for error in errors.values()):
        result["failed"] = f"weights differ by more than {_LARGEST_DIFFERENCE}"
    return result


def _distance(found: np.ndarray, exact: np.ndarray) -> float:
    """Returns how far an array is from the exact one, relative to its norm."""
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def _seconds(blocks: dict[str, Callable[[], float]], size: Size) -> dict[str, float]:
    """Returns the median time of each block of work."""
    times = measuring.interleave(blocks, 10**6, "measuring", seconds=size.seconds)
    return {name: float(np.median(took)) for name, took in times.items()}


def _speeds(trainer: training.HostTrainer, num_runs: int, size: Size) -> dict[str, float]:
    """Returns the agent steps per second of all runs together, and those of each part alone."""
    rng, games, learner = np.random.default_rng(0), trainer._environments, trainer.learner
    # The trainer has sent actions already, and expects that they are.
    outcome = games.receive()
    games.send(np.zeros(num_runs, np.int32))
    nothing = timeline.begin(num_runs), outcome, outcome.ended & False
    _, plan = timeline.advance(learner.rules, *nothing, np)

    def step_games() -> None:
        games.receive()
        games.send(rng.integers(0, 4, num_runs))

    period = trainer._runs[0].agent.update_period
    blocks = {
        "agent steps/s": measuring.timed(vectorized.play, trainer, period),
        "environments alone, agent steps/s": measuring.timed(step_games),
        "acting alone, agent steps/s": measuring.timed(
            learner.act, outcome.frame, outcome.reward, plan.choice
        ),
        "updates alone, agent steps/s": measuring.timed(vectorized.learn, trainer, 1),
    }
    steps = (period, 1, 1, period)
    return {
        name: number * num_runs / took
        for number, (name, took) in zip(steps, _seconds(blocks, size).items(), strict=True)
    }


def atari(size: Size, num_runs: int, precision: str = "float32") -> dict[str, Any]:
    """Measures some Atari runs at once; returns the figures by their name."""
    gin.clear_config()
    agent = agents.VectorizedLogDQNAgent()
    problem = vectorized.create_problem(size.capacity)
    planned = pool.RESERVE + num_runs * sum(pool.needed(agent, problem, _NUM_ACTIONS))
    with tempfile.TemporaryDirectory() as folder:
        trainer = vectorized.create_trainer("log_dqn", num_runs, size.capacity, folder, precision)
        speeds = _speeds(trainer, num_runs, size)
    whole, games, _, updates = speeds.values()
    used = jax.devices()[0].memory_stats()
    return {
        "runs": num_runs,
        **speeds,
        "of the lower of environments and updates": whole / min(games, updates),
        "memory planned, GB": planned / 1e9,
        **({"used, GB": used["peak_bytes_in_use"] / 1e9} if used else {}),
    }


def most(size: Size) -> dict[str, Any]:
    """Measures as many Atari runs as fit on the device by what `train_vectorized` plans."""
    agent, problem = agents.VectorizedLogDQNAgent(), vectorized.create_problem(size.capacity)
    free_bytes = pool.free_memory()
    planned = pool.place(agent, problem, _NUM_ACTIONS, size.most_runs, free_bytes, True)
    return atari(size, planned.num_runs)


def small(size: Size, num_runs: int) -> dict[str, Any]:
    """Measures some MinAtar runs at once."""
    player = minatar.Player(SMALL_GAME, "log_dqn", range(num_runs))
    took = _seconds({"whole": measuring.timed(player.play)}, size)["whole"]
    return {"runs": num_runs, "agent steps/s": num_runs * minatar.STEPS / took}


def trace(size: Size) -> dict[str, Any]:
    """Returns the ten longest entries of a trace, in ms a step of all runs."""
    with tempfile.TemporaryDirectory() as folder:
        gin.clear_config()
        trainer = vectorized.create_trainer("log_dqn", size.runs[-1], size.capacity, folder)
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0
        with jax.profiler.trace(folder, create_perfetto_trace=True, profiler_options=options):
            vectorized.play(trainer, size.traced_steps)
        (path,) = pathlib.Path(folder).rglob("perfetto_trace.json.gz")
        with gzip.open(path) as file:
            events = json.load(file)["traceEvents"]
    streams = of_gpu(events)
    if devices.backend() == "gpu" and not streams:
        return {"failed": "the trace has nothing of a GPU's streams"}
    spent, number = Counter[str](), Counter[str]()
    for event in streams or [event for event in events if "dur" in event]:
        spent[event["name"]] += event["dur"] / 1e3
        number[event["name"]] += 1
    return {
        name: {
            "ms a step": took / size.traced_steps,
            "times a step": number[name] / size.traced_steps,
        }
        for name, took in spent.most_common(10)
    }


def of_gpu(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns a trace's events of a GPU's streams: others say the same again.

    Args:
        events: of a trace in the format of Chrome's, with times in microseconds.
    """
    names = [
        (e["name"], e["pid"], e.get("tid"), e["args"]["name"])
        for e in events
        if e.get("ph") == "M" and e["name"] in ("process_name", "thread_name")
    ]
    gpus = {
        pid
        for kind, pid, _, name in names
        if kind == "process_name" and name.startswith("/device:GPU")
    }
    streams = {
        (pid, thread)
        for kind, pid, thread, name in names
        if kind == "thread_name" and pid in gpus and name.startswith("Stream")
    }
    return [e for e in events if "dur" in e and (e["pid"], e.get("tid")) in streams]
