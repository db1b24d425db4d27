"""Every flag, and every parameter of gin, with a wrong type, a wrong value and a misspelt name."""

import inspect
import sys

import gin
import pytest

from log_dqn import compat, sweep, train, train_vectorized
from log_dqn.cli import gin_files, shell
from tests.programs import assert_refused, refusal

with compat.quiet():
    from log_dqn.dopamine_run import request, start
    from log_dqn.vectorized import request as vectorized_request
    from log_dqn.vectorized import start as vectorized_start

# What a run has, or its caller gives, whatever gin says.
GIVEN = {
    "self", "sess", "base_dir", "num_actions", "environment", "create_agent_fn", "parent",
    "logging_dir", "summary_writer", "transition_accumulator", "sampling_distribution",
}  # fmt: skip
# Any string will do, or any value.
FREE = {"name", "version", "settings", "extra_storage_types"}
# Refused where environments are made; see test_train and test_gymnasium_game.
FREE |= {"game_name", "environment_id"}
# What answers call a parameter, where that is the flag's name.
CALLED = {"agent_name": "agent", "environment_name": "env"}


def wrong_values(default):
    """A value of a wrong type, and a wrong one of the right type where there is one."""
    if isinstance(default, bool):
        return ["'yes'", "2"]
    if isinstance(default, int | float):
        return ["'a'", "-1"]
    if isinstance(default, str | tuple):
        return ["{'a': 1}", "('no such',)" if isinstance(default, tuple) else "'no such'"]
    return ["{'a': 1}", "'no such'"]


def cases(names):
    """Wrong lines for the parameters of what shipped files bind, each with what it must name."""
    configurables = sorted({name.rpartition(".")[0] for name in names})
    for configurable in configurables:
        parameters = inspect.signature(gin.get_configurable(configurable)).parameters
        bound = {name.rpartition(".")[2] for name in names if name.startswith(f"{configurable}.")}
        for parameter in sorted((parameters.keys() | bound) - GIVEN - {"args", "kwargs"}):
            known = parameters.get(parameter)
            default = 0.1 if known is None or known.default is known.empty else known.default
            name = f"{configurable}.{parameter}"
            yield f"{name}x = 1", f"{parameter}x"
            if parameter in FREE:
                continue
            for value in wrong_values(default):
                yield f"{name} = {value}", CALLED.get(parameter, parameter)


def accepted(configure, names):
    """How many cases there are, and those that aren't answered in one line that names them."""
    found, wrong = 0, []
    for line, named in list(cases(names)):
        gin.clear_config()
        found += 1
        try:
            configure(line)
            wrong.append(f"{line}: accepted")
        except ValueError as error:
            said = shell.explain(error)
            if named not in said:
                wrong.append(f"{line}: {said}")
        except Exception as error:
            wrong.append(f"{line}: {type(error).__name__} {error}")
    return found, wrong


# LogDQN's own; the others are slow.
QUICK = ("log_dqn.gin", "jax_log_dqn.gin")


def shipped():
    """Gin files of agents, the shortest names first, each with what none before it binds."""
    found, seen = {}, {False: set(), True: set()}
    files = [path.name for path in gin_files.config_dir().glob("*.gin")]
    for file in sorted(files, key=lambda file: (file not in QUICK, len(file), file)):
        names = {line.name for line in gin_files.parse([file], []).lines}
        known = seen["vectorized" in file]
        if {"create_agent.agent_name", "VectorizedRunner.agent"} & names and names - known:
            found[file] = sorted(names - known)
            known |= names
    return found


SHIPPED = shipped()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name in SHIPPED
        if "vectorized" not in name
    ],
)
def test_every_parameter_of_a_run(name):
    start.configure(request.parse([name], []).written)
    found, wrong = accepted(
        lambda line: start.configure(request.parse([name], [line]).written), SHIPPED[name]
    )
    assert found > (100 if name in QUICK else 5)
    assert wrong == []


@pytest.mark.parametrize("name", [name for name in SHIPPED if "vectorized" in name])
def test_every_parameter_of_vectorized_runs(name):
    def configure(line):
        written = vectorized_request.parse([name], [line], None, "Pong")
        gin_files.read(written)
        vectorized_start.read_settings(written.lines, [])

    configure("VectorizedRunner.num_iterations = 1")
    found, wrong = accepted(configure, SHIPPED[name])
    assert found > 60
    assert wrong == []


PROGRAMS = {
    train: ["--base_dir=FOLDER", "--game=Pong"],
    train_vectorized: ["--results_dir=FOLDER", "--games=Pong"],
    sweep: ["--results_dir=FOLDER", "--agents=log_dqn", "--games=Pong"],
}
# Flags that switch something on, and have no value.
SWITCHES = ("json", "track", "restart", "vectorized", "checkpoint_replay")
# Flags of which a text that isn't empty is no wrong value of its own.
FOLDERS = ("base_dir", "results_dir")


def flags():
    for program in PROGRAMS:
        for action in program.create_parser()._actions:
            if action.dest in ("help", "version"):
                continue
            yield program, action.dest, f"--{action.dest}x=1"
            if action.dest in SWITCHES:
                yield program, action.dest, f"--{action.dest}=1"
                continue
            yield program, action.dest, f"--{action.dest}= "
            if action.dest not in FOLDERS:
                yield program, action.dest, f"--{action.dest}=-1"


@pytest.mark.parametrize(("program", "name", "argument"), list(flags()))
def test_every_flag(tmp_path, capsys, program, name, argument):
    folder = tmp_path / "new" / "run"
    required = [text.replace("FOLDER", str(folder)) for text in PROGRAMS[program]]
    required = [text for text in required if name != "env" or "--game" not in text]
    err = refusal(capsys, program.main, [*required, argument])
    assert "error: " in err and name.rstrip("s") in err
    assert not folder.parent.exists()


@pytest.mark.parametrize(
    ("package", "program", "arguments", "message"),
    [
        ("tensorflow", train, ["--game=Pong"], "tensorflow must be installed: pip install '.'"),
        ("minatar", train, ["--game=MinAtar/Breakout"],
         "MinAtar/Breakout needs minatar: pip install '.[minatar]' in the source"),
        ("minatar", sweep, ["--agents=dqn", "--games=minatar5"], "MinAtar/Asterix needs minatar:"),
        ("ray", sweep, ["--agents=dqn", "--games=Pong"],
         "ray must be installed: pip install '.[sweep]' in the source"),
        ("wandb", train, ["--game=Pong", "--track"],
         "--track needs wandb: pip install '.[wandb]' in the source"),
        ("zstandard", train_vectorized, ["--env=CartPole-v1"], "zstandard must be installed: pip"),
    ],
)  # fmt: skip
def test_a_package_that_is_not_installed(
    tmp_path, capsys, monkeypatch, package, program, arguments, message
):
    monkeypatch.setitem(sys.modules, package, None)
    folder = "base_dir" if program is train else "results_dir"
    assert_refused(tmp_path, capsys, arguments, message, program, folder)
