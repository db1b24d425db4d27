"""Workarounds that let dopamine-rl 4.1.2, the newest release, run beside current libraries.

Each function says what it repairs or is for, why it exists and when it can go. A repair does
nothing where nothing is broken. `apply` is called when `log_dqn` is imported, and does what must be
done before Dopamine's first import; it imports neither TensorFlow nor Dopamine.

One fault is repaired elsewhere: flax needs `tensorboard`, which TensorFlow 2.21 no longer brings
(required in setup.py). The episode cap of Dopamine's Atari factory is dealt with in
`log_dqn.atari`.
"""

import contextlib
import functools
import importlib
import inspect
import os
import pathlib
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Callable, Collection, Iterator
from typing import Any, TextIO

from log_dqn.checks import is_installed

OPTIMIZERS = ("adam", "rmsprop", "sgd")
"""Names that the `create_optimizer` of Dopamine's JAX agents knows."""

ONEDNN = "TF_ENABLE_ONEDNN_OPTS"
"""TensorFlow's variable: 1 if it computes with oneDNN, 0 if not."""


def apply() -> None:
    """Applies every workaround that has to precede the first import of Dopamine."""
    reopen_closed_stderr()
    quiet_tensorflow()
    use_onednn()
    use_legacy_keras()
    provide_baselines()
    silence_gym_notice()
    give_back_pytype_aval_mappings()
    provide_gin_files()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Holds back what other libraries write to standard error while the block runs.

    Reason: importing TensorFlow 2.21 writes up to eight lines (oneDNN, CUDA, CPU instructions)
    from C++, past Python and whatever `TF_CPP_MIN_LOG_LEVEL` says; importing
    tensorflow-probability 0.25 raises two deprecation warnings. If the block fails, the text
    held back is written after all.
    Can go: when both import silently.
    """
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as held_back, warnings.catch_warnings(record=True):
        os.dup2(held_back.fileno(), 2)
        try:
            yield
        except BaseException:
            sys.stderr.flush()
            held_back.seek(0)
            os.write(stderr, held_back.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)


def reopen_closed_stderr() -> None:
    """Opens standard error, where a launcher has closed it (`2>&-`), onto nothing.

    Reason: else the next file to be opened has its number, 2, and libraries write into that file.
    Can go: when Python opens it by itself.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (stays open)


def quiet_tensorflow() -> None:
    """Keeps TensorFlow's C++ warnings off the terminal; its errors still show.

    Reason: without a GPU every start of an agent prints 500 lines on operations that were asked
    onto `/gpu:0` and run on the CPU, as Dopamine's settings mean it.
    Can go: when that is no longer a warning. A value set by the user is kept.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def use_onednn() -> None:
    """Makes TensorFlow compute with oneDNN.

    Reason: by itself TensorFlow 2.21 does so only on CPUs with VNNI, AVX512_BF16 or AMX. On one
    with AVX2 LogDQN on Pong trained 1.46 times as fast with it (`scripts/benchmark.py onednn`).
    Can go: when TensorFlow uses it by itself. A value set by the user is kept.
    """
    os.environ.setdefault(ONEDNN, "1")


def use_legacy_keras() -> None:
    """Makes `tf.keras` Keras 2, which Dopamine's TensorFlow networks are written for.

    Reason: from TensorFlow 2.16 on `tf.keras` is Keras 3, which refuses Dopamine's layers
    (`units` given as a numpy integer, layers without inputs shared between calls).
    Can go: when Dopamine's TensorFlow agents run on Keras 3. A value set by the user is kept.
    """
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")


def check_legacy_keras() -> None:
    """Raises ValueError where it is too late for `use_legacy_keras`. Imports TensorFlow."""
    import tensorflow as tf

    if not issubclass(tf.keras.Model, tf.Module):
        raise ValueError(
            "tf.keras is Keras 3; it must be Keras 2: import log_dqn first, before anything uses "
            "tf.keras, and leave TF_USE_LEGACY_KERAS unset"
        )


def provide_baselines() -> None:
    """Lets `dopamine.discrete_domains.atari_lib` import without OpenAI baselines.

    Reason: atari_lib imports `baselines.common.atari_wrappers`, which only its PPO
    preprocessing uses; baselines is not on PyPI in a version that installs.
    Can go: when atari_lib imports it where it is used. A real `baselines` is left alone.
    """
    if "baselines" in sys.modules or is_installed("baselines"):
        return
    for name in ("baselines", "baselines.common"):
        sys.modules[name] = types.ModuleType(name)
    name = "baselines.common.atari_wrappers"
    # Only Dopamine's PPO uses it; its AttributeError then shows this name.
    sys.modules[name] = types.ModuleType(f"{name} (a stand-in: install OpenAI baselines)")


def silence_gym_notice() -> None:
    """Keeps the end-of-life notice of gym off the terminal.

    Reason: Dopamine imports gym 0.25.2, which prints four lines about NumPy 2 at import.
    Can go: when Dopamine no longer imports gym.
    """
    if not is_installed("gym_notices"):
        return
    from gym_notices import notices

    notices.notices.clear()


def _find_spec(name: str, path: Any, target: Any = None) -> None:
    """Gives a name back to JAX when tensorflow-probability's JAX half is about to be imported."""
    if name == "tensorflow_probability.substrates.jax":
        xla = importlib.import_module("jax.interpreters.xla")
        core = importlib.import_module("jax._src.core")
        # JAX 0.6 has the name still, and warns of whoever asks.
        xla.pytype_aval_mappings = core.pytype_aval_mappings  # type: ignore[attr-defined]


_FINDER: Any = types.SimpleNamespace(find_spec=_find_spec)


def give_back_pytype_aval_mappings() -> None:
    """Lets tensorflow-probability 0.25, which Dopamine's JAX networks import, import with JAX.

    Reason: it reads `jax.interpreters.xla.pytype_aval_mappings`, which JAX 0.7 removed; the table
    itself is still there, under another name. JAX is imported no earlier than by it.
    Can go: when tensorflow-probability has a release that imports with JAX 0.7.
    """
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def config_dir() -> pathlib.Path:
    """Returns the folder of the gin files: in the installed package, or in the checkout."""
    package = pathlib.Path(__file__).resolve().parent
    installed = package / "configs"
    return installed if installed.is_dir() else package.parent / "configs"


def is_shipped(gin_file: str) -> bool:
    """Returns whether a gin file is one of the package's."""
    return pathlib.Path(gin_file).resolve().parent == config_dir().resolve()


def provide_gin_files() -> None:
    """Lets gin find the package's gin files by name, with or without `configs/` before it.

    Reason: Dopamine's wheel ships no gin files, so that ours also hold its baselines' settings. And
    gin opens files in the locale's encoding, where a byte order mark is taken for a name; and what
    ours include it looks for in the working directory, where edited copies may lie.
    Can go: never for LogDQN's own files.
    """
    import gin

    reading: list[str] = []
    folders = [str(config_dir()), str(config_dir().parent)]

    def found(name: str) -> str | None:
        paths = [os.path.join(folder, name) for folder in ("", *folders)]
        if reading and is_shipped(reading[-1]):
            paths = [path for path in paths if is_shipped(path)]
        return next(filter(os.path.isfile, paths), None)

    @contextlib.contextmanager
    def read(name: str) -> Iterator[TextIO]:
        path = found(name) or name
        reading.append(path)
        try:
            with open(path, encoding="utf-8-sig") as file:
                yield file
        finally:
            reading.pop()

    # In place of gin's first reader. What it doesn't find, the second one logs as an error.
    gin.config._FILE_READERS[0] = (read, lambda name: found(name) is not None)
    for folder in folders:  # For gin's message about a missing file.
        gin.add_config_file_search_path(folder)


def extend_run_experiment(
    names: Collection[str], create: Callable[..., Any], check_folder: Callable[[Any], None]
) -> None:
    """Makes Dopamine's own `create_agent`, `create_runner` and `TrainRunner` take our gin files.

    `create_agent` gives what it is given as `summary_writer`, a runner's base_dir, to
    `check_folder`, and hands the agents of these names to `create(sess, environment,
    summary_writer, name)` and all others on. `TrainRunner` makes the environment that gin binds to
    `Runner`. Both keep their names in gin. Imports Dopamine.

    Reason: Dopamine's `create_agent` has a fixed list of agents, `create_runner` passes it by
    position, over what gin binds, and `TrainRunner` passes its own default environment on, over
    `Runner.create_environment_fn`.
    Can go: when Dopamine creates the agent and the environment that gin names.
    """
    import gin
    from dopamine.discrete_domains import run_experiment

    create_dopamines = run_experiment.create_agent

    def create_agent(
        sess: Any,
        environment: Any,
        agent_name: str | None = None,
        summary_writer: Any = None,
        debug_mode: bool = False,
    ) -> Any:
        """Creates one of `names`, or one of Dopamine's agents; see Dopamine's `create_agent`."""
        check_folder(summary_writer)
        if agent_name not in names:
            return create_dopamines(sess, environment, agent_name, summary_writer, debug_mode)
        return create(sess, environment, summary_writer if debug_mode else None, agent_name)

    class TrainRunner(run_experiment.TrainRunner):
        """Dopamine's TrainRunner, with the environment that gin binds to `Runner`."""

        def __init__(
            self, base_dir: str, create_agent_fn: Any, create_environment_fn: Any = None
        ) -> None:
            given = (create_environment_fn,) if create_environment_fn else ()
            run_experiment.Runner.__init__(self, base_dir, create_agent_fn, *given)
            self._agent.eval_mode = False

    # The one way in which gin takes another function under a name that it has.
    with gin.config.interactive_mode():
        for new in (create_agent, TrainRunner):
            configurable = gin.configurable(new, module=run_experiment.__name__)
            setattr(run_experiment, new.__name__, configurable)


def measure_by_a_steady_clock() -> None:
    """Makes Dopamine's runner measure its speed by a clock that never goes back. Imports Dopamine.

    Reason: it takes the time of day: set back, that gives negative speeds, and standing still a
    division by zero, which ends the run.
    Can go: when Dopamine takes `time.monotonic` or `time.perf_counter`.
    """
    from dopamine.discrete_domains import run_experiment

    run_experiment.time = types.SimpleNamespace(time=time.perf_counter)


def register_optimizers() -> None:
    """Registers RMSProp and Adam of TensorFlow 1 with gin as `tf.train.*`. Imports TensorFlow.

    Reason: `gin.tf.external_configurables`, which Dopamine's own gin files import for this, needs
    `tf.estimator`, gone since TensorFlow 2.16. An empty module takes its place, so that such
    files work.
    Can go: when gin-config imports with current TensorFlow.
    """
    import gin
    import tensorflow as tf

    for optimizer in (tf.compat.v1.train.RMSPropOptimizer, tf.compat.v1.train.AdamOptimizer):
        try:
            gin.get_configurable(f"tf.train.{optimizer.__name__}")
        except ValueError:
            gin.external_configurable(optimizer, module="tf.train")
    name = "gin.tf.external_configurables"
    if not hasattr(tf, "estimator"):
        sys.modules.setdefault(name, types.ModuleType(name))


@contextlib.contextmanager
def without_wildcards(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """Gives a path to a folder, while the block runs, whose characters all mean themselves.

    Reason: TensorFlow looks for the files of a checkpoint as for a pattern: `[1]` in a path is 1,
    and a backslash is left out. Escaped, the files aren't found where they are then opened.
    Can go: when TensorFlow 2's `RestoreV2` opens the path that it is given.
    """
    with tempfile.TemporaryDirectory() as place:
        link = pathlib.Path(place, "folder")
        link.symlink_to(folder.absolute())
        yield link


@contextlib.contextmanager
def own_gin_configuration(keeps_bindings: bool = False) -> Iterator[None]:
    """Gives the block a configuration of gin, and afterwards back what there was before.

    It is empty, or has the bindings from before, but no record of what was read. What a module
    binds when the block imports it first is gone afterwards.

    Reason: gin has one configuration for a process, which a user's script may be using while it
    loads an agent of another configuration.
    Can go: when gin has configurations as values.
    """
    import gin

    names = ("_CONFIG", "_OPERATIVE_CONFIG", "_SINGLETONS", "_IMPORTS")
    kept = [getattr(gin.config, name) for name in names]
    before, is_locked = [part.copy() for part in kept], gin.config_is_locked()
    gin.clear_config()
    if keeps_bindings:
        gin.config._CONFIG.update({key: values.copy() for key, values in before[0].items()})
    try:
        yield
    finally:
        gin.clear_config()
        for part, values in zip(kept, before, strict=True):
            part.update(values)
        gin.config._set_config_is_locked(is_locked)


def remove_generated_files() -> None:
    """Makes TensorFlow remove a file of code that it has generated once the code is loaded.

    Reason: it removes them when Python exits, so that they, and their compiled copies, stay in the
    temporary folder when a process is killed.
    Can go: when TensorFlow's autograph leaves no files.
    """
    from tensorflow.python.autograph.pyct import loader

    load_source = loader.load_source

    def load_and_remove(source: str, delete_on_exit: bool) -> tuple[Any, str]:
        del delete_on_exit
        before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        try:
            module, path = load_source(source, False)
        finally:
            sys.dont_write_bytecode = before
        os.remove(path)
        return module, path

    loader.load_source = load_and_remove


def take_parameters_of(*classes: type) -> Callable[[Any], Any]:
    """Decorates a constructor `f(self, a, b, *, ...)` to take the parameters of classes A and B.

    Its parameters are then the classes', in their order, and its own, those behind the `*`. Of a
    name that several have, the last default counts. As `a` and `b` it gets the values of each
    class's parameters by name, defaults too. Calls by position, `help`, `inspect.signature` and
    gin go by that list, and refuse any other name. The classes' docstrings follow its own.

    Reason: Dopamine's agents take 20 parameters each. gin admits any name where a constructor has
    `**kwargs`, and leaves the defaults of what goes through them out of the operative
    configuration; what isn't passed on explicitly is whatever gin binds to the class below.
    Can go: when Dopamine's agents take their parameters as one value.
    """

    def decorate(init: Any) -> Any:
        parameters: dict[str, inspect.Parameter] = {}
        parts = [inspect.signature(cls.__init__).parameters for cls in classes]  # type: ignore[misc]
        given = inspect.signature(init).parameters.values()
        own = {p.name: p for p in given if p.kind == inspect.Parameter.KEYWORD_ONLY}
        for part in (*parts, own):
            parameters |= part
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        signature = inspect.Signature([p.replace(kind=kind) for p in parameters.values()])
        init.__signature__ = signature
        said = [of.__doc__ for cls in classes for of in (cls, cls.__init__)]  # type: ignore[misc]
        init.__doc__ = "\n\n".join(inspect.cleandoc(text) for text in (init.__doc__, *said) if text)

        @functools.wraps(init)
        def init_with_all(*args: Any, **kwargs: Any) -> None:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            values = bound.arguments
            self = values.pop("self")
            taken = ({name: values[name] for name in part if name != "self"} for part in parts)
            init(self, *taken, **{name: values[name] for name in own})

        return init_with_all

    return decorate
