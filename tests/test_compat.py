"""Each workaround, in a fresh process: the host works with it, and this fails without it."""

import dataclasses
import inspect
import math
import os
import pydoc
import re
import subprocess
import sys
import textwrap
from unittest import mock

import gin
import jax
import pytest

from log_dqn import compat
from log_dqn.dopamine_run import runner as single_runner
from log_dqn.jax.log_dqn_agent import JaxLogDQNAgent
from log_dqn.tf.log_dqn_agent import LogDQNAgent
from tests import programs
from tests.programs import python


def run(code, env=()):
    """Runs code in a new interpreter; returns what it printed, and what came on stderr."""
    process = python("-c", textwrap.dedent(code), env=env)
    assert process.returncode == 0, process.stderr
    return process.stdout.strip(), process.stderr


def test_importing_the_package_imports_no_framework_and_gym_is_silent():
    out, err = run(
        """
        import sys, log_dqn, log_dqn.mapping, log_dqn.log_space
        print([name for name in ("tensorflow", "jax", "dopamine", "gym") if name in sys.modules])
        import gym
        print(gym.__version__)
        """
    )
    assert (out, err) == ("[]\n0.25.2", "")


@pytest.mark.slow
def test_the_host_works_without_baselines_and_without_noise():
    out, err = run(
        """
        import gin, log_dqn
        from log_dqn import compat
        with compat.quiet():
            import dopamine.discrete_domains.run_experiment
            import tensorflow as tf
            import log_dqn.tf
            from log_dqn.tf.log_dqn_agent import LogDQNAgent
            tf.config.list_physical_devices("GPU")
        from baselines.common import atari_wrappers
        try:
            atari_wrappers.NoopResetEnv
        except AttributeError as error:
            print(error)

        # Keras takes Dopamine's layers.
        import numpy as np
        from dopamine.discrete_domains import atari_lib, gym_lib
        tf.get_logger().setLevel("ERROR")
        tf.compat.v1.disable_v2_behavior()
        network = atari_lib.NatureDQNNetwork(np.int64(6), name="Nature")
        outputs = network(tf.zeros((1, 84, 84, 4))).q_values
        print(outputs.shape, [v.name for v in network.trainable_variables][-1])

        # TensorFlow computes with oneDNN.
        from tensorflow.python.util import _pywrap_util_port
        print(_pywrap_util_port.IsMklEnabled())

        # gin knows the optimizers.
        compat.register_optimizers()  # a second time does no harm
        gin.parse_config("tf.train.RMSPropOptimizer.learning_rate = 0.5")
        gin.parse_config("tf.train.AdamOptimizer.learning_rate = 0.25")
        print(gin.get_configurable("tf.train.RMSPropOptimizer")()._learning_rate)
        print(gin.get_configurable("tf.train.AdamOptimizer")()._lr)

        # Agents start silently on a device that is not there.
        LogDQNAgent(None, 2, observation_shape=(4, 1), observation_dtype=tf.float64, stack_size=1,
                    network=gym_lib.CartpoleDQNNetwork, tf_device="/gpu:0")
        """
    )
    assert out.splitlines() == [
        "module 'baselines.common.atari_wrappers (a stand-in: install OpenAI baselines)' has no "
        "attribute 'NoopResetEnv'",
        "(1, 6) Nature/fully_connected_1/bias:0", "True", "0.5", "0.25",
    ]  # fmt: skip
    assert err == ""


def test_gin_finds_the_package_s_files_from_any_folder_without_a_word(tmp_path):
    """Gin's second reader would log what the first, in the working directory, does not find."""
    # What ours include are ours.
    (tmp_path / "atari_protocol.gin").write_text("Runner.training_steps = 1")
    out, err = run(
        f"""
        import os, log_dqn, gin
        os.chdir({str(tmp_path)!r})
        gin.parse_config_file("log_dqn.gin")
        print(gin.query_parameter("Runner.training_steps"))
        """
    )
    assert out == "250000" and "Path not found" not in err


def test_a_real_baselines_is_left_alone(tmp_path):
    package = tmp_path / "baselines" / "common"
    package.mkdir(parents=True)
    (tmp_path / "baselines" / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "atari_wrappers.py").write_text("NoopResetEnv = 'the real one'\n")
    out, _ = run(
        """
        import log_dqn
        from baselines.common import atari_wrappers
        print(atari_wrappers.NoopResetEnv)
        """,
        env={"PYTHONPATH": os.pathsep.join([str(tmp_path), os.getcwd()])},
    )
    assert out == "the real one"


def test_a_folder_named_baselines_is_not_the_package(tmp_path):
    (tmp_path / "baselines").mkdir()
    out, _ = run(
        """
        import log_dqn
        from baselines.common import atari_wrappers
        print(atari_wrappers.__name__)
        """,
        env={"PYTHONPATH": os.pathsep.join([str(tmp_path), os.getcwd()])},
    )
    assert out == "baselines.common.atari_wrappers (a stand-in: install OpenAI baselines)"


def test_a_user_s_choice_of_keras_log_level_and_kernels_is_kept():
    out, _ = run(
        """
        import os, log_dqn
        print(os.environ["TF_USE_LEGACY_KERAS"], os.environ["TF_CPP_MIN_LOG_LEVEL"])
        print(os.environ["TF_ENABLE_ONEDNN_OPTS"])
        """,
        env={
            "TF_USE_LEGACY_KERAS": "0", "TF_CPP_MIN_LOG_LEVEL": "1", "TF_ENABLE_ONEDNN_OPTS": "0",
        },
    )  # fmt: skip
    assert out == "0 1\n0"


def test_what_tensorflow_is_told_by_default(monkeypatch):
    told = {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "2", "TF_ENABLE_ONEDNN_OPTS": "1"}
    for name in told:
        monkeypatch.delenv(name, raising=False)
    compat.apply()
    assert {name: os.environ[name] for name in told} == told


TFP = "import tensorflow_probability.substrates.jax as tfp"


@pytest.mark.slow
def test_tensorflow_probability_imports_with_jax_with_the_table_that_it_reads():
    out, _ = run(
        f"""
        import sys, log_dqn
        print("jax" in sys.modules)
        {TFP}
        import jax.interpreters.xla
        from jax._src import core
        print(jax.interpreters.xla.pytype_aval_mappings is core.pytype_aval_mappings)
        """
    )
    assert out.split() == ["False", "True"]


@pytest.mark.slow
@pytest.mark.skipif(
    tuple(map(int, jax.__version__.split(".")[:2])) < (0, 7), reason="JAX still has the name"
)
def test_without_the_mend_it_does_not():
    process = python("-c", TFP)
    assert process.stderr.splitlines()[-1] == (
        "AttributeError: module 'jax.interpreters.xla' has no attribute 'pytype_aval_mappings'"
    )


def test_quiet_gives_back_what_it_held_when_the_block_fails():
    out, err = run(
        """
        import os, sys
        from log_dqn import compat
        with compat.quiet():
            os.write(2, b"held back for good\\n")
        try:
            with compat.quiet():
                os.write(2, b"shown after all\\n")
                raise KeyError("it")
        except KeyError as error:
            print(error)
        print("after", file=sys.stderr)
        """
    )
    assert (out, err) == ("'it'", "shown after all\nafter\n")


def test_a_closed_standard_error_is_opened_onto_nothing(tmp_path):
    code = """
        import os
        from log_dqn import compat
        with compat.quiet(), open("file", "w") as file:
            os.write(2, b"a word of C++")
        print(os.readlink("/proc/self/fd/2"), os.path.getsize("file"))
        """
    command = 'exec "$0" -c "$1" 2>&-'
    environment = {**os.environ, "PYTHONPATH": str(programs.ROOT)}
    done = subprocess.run(
        ["bash", "-c", command, sys.executable, textwrap.dedent(code)],
        stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment, timeout=600,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "/dev/null 0\n")


@gin.configurable
class Below:
    def __init__(self, a, b=1, c=2):
        self.below = (a, b, c)


@dataclasses.dataclass
class Settings:
    b: int = 3
    d: int = 4


@gin.configurable
class Above(Below):
    @compat.take_parameters_of(Below, Settings)
    def __init__(self, below, settings, *, c=5, e=6):
        super().__init__(**below)
        self.settings = settings
        self.own = (c, e)


@pytest.mark.parametrize(
    ("args", "settings", "below", "taken", "own"),
    [
        ([0], {}, (0, 3, 5), {"b": 3, "d": 4}, (5, 6)),
        ([10, 11, 12, 13, 14], {}, (10, 11, 12), {"b": 11, "d": 13}, (12, 14)),
        ([], {"e": 9, "a": 7, "b": 8}, (7, 8, 5), {"b": 8, "d": 4}, (5, 9)),
    ],
)
def test_parameters_of_other_classes(args, settings, below, taken, own):
    above = Above(*args, **settings)
    assert (above.below, above.settings, above.own) == (below, taken, own)


def test_they_are_one_list():
    assert str(inspect.signature(Above)) == "(a, b: int = 3, c=5, d: int = 4, e=6)"
    assert list(inspect.signature(Above.__init__).parameters) == ["self", *"abcde"]


@pytest.mark.parametrize(("agent", "count"), [(LogDQNAgent, 35), (JaxLogDQNAgent, 33)])
def test_help_has_the_docstrings_of_all_parameters(agent, count):
    text = pydoc.plain(pydoc.render_doc(agent))
    parameters = inspect.signature(agent).parameters
    assert len(parameters) == count
    for name in parameters:
        assert re.search(rf"^[ |]* {name}: \S", text, re.MULTILINE), name
    assert re.search(r" gamma: discount factor, in \(0, 1\)", text)


def test_other_names_are_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'f'"):
        Above(0, f=1)
    with pytest.raises(TypeError, match="missing a required argument: 'a'"):
        Above()
    for name in ("f", "below", "settings"):
        with pytest.raises(ValueError, match=f"doesn't have a parameter named '{name}'"):
            gin.parse_config(f"Above.{name} = 1")


def test_gin_sets_and_records_them_at_the_class_alone():
    gin.parse_config("Below.b = 20\nBelow.c = 21\nAbove.d = 22")
    assert Above(0).below == (0, 3, 5)
    lines = gin.operative_config_str().splitlines()
    bound = [line for line in lines if line and not line.startswith("#")]
    assert bound == ["Above.b = 3", "Above.c = 5", "Above.d = 22", "Above.e = 6"]


def test_dopamine_measures_by_a_steady_clock(monkeypatch):
    runner = mock.Mock(_run_one_phase=lambda *_: (100, 5.0, 2), _training_steps=100)
    for moments in ([7.0, 7.0], [7.0, 6.0]):
        monkeypatch.setattr("time.time", iter(moments).__next__)
        speed = single_runner.ResumableRunner._run_train_phase(runner, mock.Mock())[2]
        assert 0 < speed < math.inf
