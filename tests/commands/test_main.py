"""The command `log-dqn`: what it lists and starts, and how little it imports before."""

import argparse
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

import log_dqn
from log_dqn import games
from log_dqn.commands import main as command
from log_dqn.commands.main import COMMANDS
from log_dqn.run_folder import lock
from tests.programs import ROOT, python

HEAVY = ("tensorflow", "jax", "dopamine", "numpy", "ray", "pandas", "matplotlib", "gymnasium")

# Whatever heavy is imported ends the program, which may ask whether it is installed.
WITHOUT_HEAVY = f"""
import importlib.machinery, sys
class Heavy:
    def find_spec(self, name, path, target=None):
        found = importlib.machinery.ModuleSpec(name, self, origin=name)
        return found if name in {HEAVY} else None
    def create_module(self, spec):
        raise ImportError(spec.name)
    exec_module = create_module
sys.meta_path.insert(0, Heavy())
"""


def run(*arguments, before=""):
    """Runs the command in a new interpreter, after some code."""
    code = (
        f"{before}\n"
        "import sys\n"
        "from log_dqn.commands import main\n"
        "try:\n"
        "    status = main.main(sys.argv[1:])\n"
        "except SystemExit as stop:\n"
        "    status = stop.code\n"
        f"print([name for name in {HEAVY} if name in sys.modules])\n"
        "sys.exit(status)\n"
    )
    return python("-c", code, *arguments)


NOWHERE = pathlib.Path(tempfile.gettempdir(), "log_dqn_nowhere")
TRAIN = ["train", f"--base_dir={NOWHERE}"]
VECTORIZED = ["train-vectorized", "--games=Pong", f"--results_dir={NOWHERE}"]
COMPARE = ["compare", f"--out={NOWHERE}"]
PLAY = ["play", f"--run={NOWHERE}", f"--out={NOWHERE}.gif"]
EVALUATE = ["evaluate", "--trained=MinAtar/Asterix"]
FIGURES = ["figures", f"--out={NOWHERE}"]
SWEEP = ["sweep", "--games=Pong", "--agents=dqn", f"--results_dir={NOWHERE}"]

REFUSED = [
    (["trian"], "'version') (nearest: train, version)"),
    (["--no_such_flag"], "unrecognized arguments: --no_such_flag"),
    (["--print-completion=fish"], "invalid choice: 'fish'"),
    (["games", "atari6"], "all60, atari5, minatar5 (nearest: atari5, minatar5, paper6)"),
    ([*COMPARE, f"--baselines={ROOT}"], "it must be a folder that holds files such as pong.json"),
    (
        [*TRAIN, "--gin_files=vectorized_dqn.gin", "--agent=dqn"],
        "it must be for log-dqn train: VectorizedRunner is for log-dqn train-vectorized",
    ),
    (
        [*VECTORIZED, "--gin_files=short.gin"],
        "for log-dqn train-vectorized: create_runner is for log-dqn train",
    ),
    (
        [*VECTORIZED, "--gin_bindings=Runner.num_iterations=2"],
        "for log-dqn train-vectorized: Runner is for log-dqn train",
    ),
    (
        [*VECTORIZED, "--scan=LogDQNAgent.gamma=0.5"],
        "LogDQNAgent is for log-dqn train (nearest: VectorizedLogDQNAgent, ",
    ),
    (
        [*TRAIN, "--gin_bindings=VectorizedDQNAgent.gamma=0.5"],
        "for log-dqn train: VectorizedDQNAgent is for log-dqn train-vectorized",
    ),
    (
        [*TRAIN, "--gin_files=vectorised_dqn.gin"],
        "gin file (nearest: loglin_dqn.gin, log_dqn.gin, dqn.gin)",
    ),
    ([*VECTORIZED, "--gin_files=dqn.gn"], "a gin file (nearest: vectorized_dqn.gin"),
    ([*TRAIN, "--game=PongNoFramskip-v4"], "spelt like MinAtar/Breakout (nearest: Pong)"),
    ([*TRAIN, "--gin_bindings=LogDQNAgent.linear_above=1e999"], "finite number, or None for no l"),
    ([*COMPARE, "--baselines=no/where"], "baselines is 'no/where'; it must be a folder that holds"),
    (["version", "x"], "unrecognized arguments: x"),
    ([*TRAIN, "--game=Pongg"], "game is 'Pongg'; it must be"),
    ([*TRAIN, "--agent=ppo"], "agent is 'ppo'; it must be one of log_dqn"),
    ([*TRAIN, "--seed=-1"], "seed is -1; it must be a whole number from 0"),
    ([*TRAIN, "--gin_files=no.gin"], "gin_files is 'no.gin'; it must be"),
    ([*TRAIN, "--gin_bindings=x"], "gin_bindings is 'x'; it must be gin that can be read: "),
    (
        [*TRAIN, "--gin_bindings="],
        "gin_bindings is ''; it must be gin that can be read: a line is missing",
    ),
    ([*TRAIN, "--gin_bindings=a.b=c"], "a value must be a literal of Python"),
    ([*TRAIN, f"--gin_files={ROOT / 'setup.py'}"], f"gin_files is '{ROOT / 'setup.py'}'; it must"),
    ([*TRAIN, "--base_dir=/proc/nowhere"], "base_dir is '/proc/nowhere'; it must be a folder that"),
    (
        [*TRAIN, "--base_dir=~/run"],
        "base_dir is '~/run'; it must be without a first ~, which",
    ),
    ([*VECTORIZED, "--games=Pongg"], "games is 'Pongg'; it must be one of"),
    ([*VECTORIZED, "--agent=c51"], "agent is 'c51'; it must be one of log_dqn, loglin_dqn, dqn"),
    ([*VECTORIZED, "--seeds=0"], "seeds is '0'; it must be N, at least 1, or A-B"),
    ([*VECTORIZED, "--scan=x"], "scan is 'x'; it must be PARAMETER=VALUE"),
    ([*VECTORIZED, "--gin_files=no.gin"], "gin_files is 'no.gin'; it must be"),
    ([*VECTORIZED, "--results_dir=/proc/nowhere"], "'/proc/nowhere'; it must be a folder that can"),
    ([*SWEEP, "--games=Pongg"], "games is 'Pongg'; it must be one of"),
    ([*SWEEP, "--agents=ppo"], "agent is 'ppo'; it must be one of log_dqn"),
    ([*SWEEP, "--seeds=0"], "seeds is '0'; it must be N, at least 1, or A-B"),
    ([*SWEEP, "--gin_files=no.gin"], "gin_files is 'no.gin'; it must be"),
    ([*SWEEP, "--cpus_per_run=1000"], "cpus_per_run is 1000.0; it must be at most "),
    ([*SWEEP, "--ray_address=x"], "ray_address is 'x'; it must be auto, or the HOST:PORT of"),
    ([*SWEEP, "--results_dir=/proc/nowhere"], "'/proc/nowhere'; it must be a folder that can"),
    ([*COMPARE, "--games=Pongg"], "games is 'Pongg'; it must be one of"),
    ([*COMPARE, "--reference=Foo"], "reference is 'Foo'; it must be among C51, DQN, DQN (Adam"),
    ([*COMPARE, "--metric=test"], "argument --metric: invalid choice: 'test'"),
    ([*COMPARE, "--metric=eval"], "--metric=eval: it must be 'train' without --results_dir"),
    ([*COMPARE, "--iteration=last"], "'last' is neither a number >= 0, 'common' nor 'final'"),
    ([*COMPARE, "--repetitions=0"], "'0' is not a whole number, at least 1"),
    ([*COMPARE, "--agents="], "'' holds no name"),
    ([*COMPARE, f"--results_dir={NOWHERE}"], f"'{NOWHERE}'; it must be an existing folder"),
    ([*COMPARE, f"--results_dir={ROOT / 'tests'}"], "must be a folder that holds {agent}/"),
    ([*COMPARE, "--out=/proc/nowhere"], "out is '/proc/nowhere'; it must be a folder that can"),
    (PLAY, f"run is '{NOWHERE}'; it must be the folder of a run that log-dqn trained; this one is"),
    ([*PLAY, f"--run={ROOT}"], "this one has no config.json that names an agent"),
    ([*PLAY, "--out=film.avi"], "'film.avi' does not end in .mp4 or .gif"),
    ([*PLAY, "--max_steps=0"], "'0' is not a whole number, at least 1"),
    (["evaluate"], "one of the arguments --run --trained is required"),
    ([*EVALUATE, "--episodes=0"], "'0' is not a whole number, at least 1"),
    ([*EVALUATE, "--epsilon=2"], "epsilon is 2.0; it must be a number from 0 to 1"),
    (["evaluate", f"--run={NOWHERE}"], f"run is '{NOWHERE}'; it must be the folder of a run that"),
    (["evaluate", f"--run={NOWHERE}", "--gamma=0.5"], "gamma is 0.5; it must be left out for a"),
    ([*FIGURES, "--only=kappa"], "'convergence') (nearest: kappa_full, kappa_regular)"),
    ([*FIGURES, "--gammas", "0.5", "1.5"], "gamma is 1.5; it must be a number between 0 and 1"),
    ([*FIGURES, "--seed=-1"], "'-1' is not a whole number, at least 0"),
    ([*FIGURES, "--out=/proc/nowhere"], "out is '/proc/nowhere'; it must be a folder that can"),
]

# For which numpy may be imported, but no agents. The last, since all are answered in one process.
LATE = [
    ([*TRAIN, "--gin_bindings=LogDQNAgent.gamma=1.5"], "LogDQNAgent.gamma is 1.5; it must be"),
    ([*TRAIN, "--agent=dqn", "--gin_bindings=DQNAgent.epsilon_eval=2"], "epsilon_eval is 2; it"),
    ([*TRAIN, "--gin_bindings=WrappedReplayBuffer.batch_size=0"], "batch_size is 0"),
    ([*VECTORIZED, "--gin_bindings=VectorizedLogDQNAgent.k=0"], "VectorizedLogDQNAgent.k is 0"),
    ([*VECTORIZED, "--scan=VectorizedLogDQNAgent.gamma=2,3"], "VectorizedLogDQNAgent.gamma is 2"),
    ([*SWEEP, "--agents=log_dqn", "--gin_bindings=LogDQNAgent.beta_reg=3"], "beta_reg is 3; it"),
]


@pytest.mark.parametrize("arguments", [[], ["games"], ["version"], ["train", "--help"]])
@pytest.mark.parametrize("is_full", [True, False])
def test_output_that_is_lost_ends_in_one_line_or_quietly(arguments, is_full):
    code = "import sys; from log_dqn.commands import main; sys.exit(main.main(sys.argv[1:]))"
    if is_full:
        lost = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, lost = os.pipe()
        os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], stdout=lost, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""},
    )  # fmt: skip
    os.close(lost)
    name = " ".join(["log-dqn", *arguments[:1]])
    said = f"{name}: error: [Errno 28] No space left on device\n" if is_full else ""
    assert (done.returncode, done.stderr) == (2 if is_full else 141, said)


def assert_refused(message, *arguments, before=""):
    """Asserts that the command ends in one line before anything heavy is imported."""
    done = run(*arguments, before=before)
    assert (done.returncode, done.stdout) == (2, "[]\n")
    (line,) = done.stderr.splitlines()
    assert message in line


# Answers all of them in one interpreter, whose imports are looked at after each.
ANSWERS = f"""
import contextlib, io, json, sys
from log_dqn.commands import main
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main.main(arguments)
        except SystemExit as stop:
            status = stop.code
    heavy = [name for name in {HEAVY} if name in sys.modules]
    print(json.dumps([status, out.getvalue(), err.getvalue(), heavy]))
"""


@pytest.fixture(scope="module")
def answers():
    lines = [arguments for arguments, _ in REFUSED + LATE]
    done = python("-c", ANSWERS, json.dumps(lines))
    return list(map(json.loads, done.stdout.splitlines()))


@pytest.mark.parametrize("number", range(len(REFUSED + LATE)))
def test_what_is_refused_is_refused_before_anything_heavy_is_imported(answers, number):
    status, out, err, heavy = answers[number]
    assert (status, out) == (2, "")
    assert heavy == [] if number < len(REFUSED) else {"tensorflow", "jax"}.isdisjoint(heavy)
    (line,) = err.splitlines()
    assert (REFUSED + LATE)[number][1] in line
    assert not NOWHERE.exists()


RUN = "results/dqn/Pong/1"


def write_run(folder, text):
    (folder / "logs").mkdir(parents=True)
    (folder / "config.json").write_text(text)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["train", "--game=Pong", "--base_dir=new"], "log_dqn on Pong in new"),
        (["train-vectorized", "--games=Pong", "--results_dir=new"], "log_dqn on Pong in new"),
        (
            ["sweep", "--games=Pong", "--agents=dqn", "--results_dir=new"],
            "a sweep of dqn on Pong in {here}/new",
        ),
        (["compare", "--out=out"], "a report on the published baselines in out"),
        (["compare", "--out=out", "--results_dir=results"], "a report on results in out"),
        (["play", "--out=a.gif", f"--run={RUN}"], f"a film of {RUN} in a.gif"),
        (["evaluate", "--episodes=2", f"--run={RUN}"], f"2 episodes of {RUN}"),
        (
            ["figures", "--out=out", "--only", "rms_error", "chain_log"],
            "rms_error, chain_log in out",
        ),
    ],
)
def test_a_program_says_what_it_starts_before_anything_heavy_is_imported(
    tmp_path, monkeypatch, arguments, line
):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / RUN, '{"create_agent.agent_name": "dqn"}')
    done = run(*arguments, before=WITHOUT_HEAVY)
    assert done.returncode != 0
    assert done.stdout.splitlines()[0] == f"Starting {line.format(here=tmp_path)}"
    assert {path.name for path in tmp_path.iterdir()} == {"results"}


def test_a_run_of_dopamines_own_is_refused_early(tmp_path):
    (tmp_path / "logs").mkdir()
    message = "looks like a run of Dopamine's own, with no config.json that names an agent"
    assert_refused(message, "play", f"--run={tmp_path}", f"--out={tmp_path / 'film.gif'}")


def test_a_film_without_what_it_needs_is_refused_early(tmp_path):
    write_run(tmp_path / "run", '{"create_agent.agent_name": "dqn"}')
    before = "import importlib.util as u; f = u.find_spec; u.find_spec = "
    before += "lambda name, *of: None if name in ('imageio', 'pygame') else f(name, *of)"
    arguments = ["play", f"--run={tmp_path / 'run'}", f"--out={tmp_path / 'film.mp4'}"]
    message = "imageio must be installed: pip install '.[play]' in the source"
    assert_refused(message, *arguments, before=before)


def test_a_film_is_a_file(tmp_path):
    write_run(tmp_path / "run", '{"VectorizedRunner.agent": "dqn"}')
    for name in ("film.gif", "b_narrow.gif"):
        (tmp_path / name).mkdir()
    for out, message in (
        (tmp_path / "run/config.json/a.gif", "the folder of out is"),
        (tmp_path / "film.gif", f"out is '{tmp_path / 'film.gif'}'; it must be a file"),
        (tmp_path / "b.gif", f"out is '{tmp_path / 'b_narrow.gif'}'; it must be a file"),
    ):
        assert_refused(message, "play", f"--run={tmp_path / 'run'}", f"--out={out}", "--narrow")


def test_a_folder_in_use_and_one_of_no_run_are_refused_early(tmp_path):
    (tmp_path / "logs").mkdir()
    train = ["train", f"--base_dir={tmp_path}"]
    assert_refused("with --restart it must be the folder of a run", *train, "--restart")
    with lock.hold(tmp_path):
        assert_refused("it must not be in use", *train)


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_alone_it_shows_what_there_is(arguments, capsys):
    assert command.main(arguments) == 0
    out = capsys.readouterr().out
    for name, known in COMMANDS.items():
        assert f"  log-dqn {name} {known.example}".rstrip() in out
        assert known.summary in out


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_names_itself_as_it_was_started(name, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["/usr/bin/log-dqn", name, "--nothing"])
    with pytest.raises(SystemExit) as stop:
        command.main()
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith(f"log-dqn {name}: error: ")
    with pytest.raises(SystemExit):
        command.main([name, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: log-dqn {name} ")


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_read_by_the_commands_own_parsers(name):
    program = importlib.import_module(COMMANDS[name].module)
    parser = program.create_parser()
    assert isinstance(parser, argparse.ArgumentParser)
    parser.parse_args(COMMANDS[name].example.split())
    assert callable(program.main)


def test_the_version_with_what_it_runs_on(capsys):
    assert command.main(["version"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"log_dqn {log_dqn.__version__}"
    assert "dopamine-rl 4.1.2" in lines
    with pytest.raises(SystemExit) as stop:
        command.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"log_dqn {log_dqn.__version__}\n"


def test_games(capsys):
    assert command.main(["games", "paper6"]) == 0
    assert tuple(capsys.readouterr().out.split()) == games.PAPER6
    assert command.main(["games"]) == 0
    out = capsys.readouterr().out
    assert "atari5 (5): BattleZone, DoubleDunk, NameThisGame, Phoenix, Qbert\n" in out
    listed = out.replace("(", ",").replace(":", ",").replace("\n", " ").split(",")
    assert set(games.KNOWN) <= {part.strip().split(" ")[0] for part in listed}


def test_the_current_folder_may_be_gone(tmp_path, monkeypatch, capsys):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    # As the shell finds it.
    monkeypatch.setattr(sys, "argv", ["/usr/bin/log-dqn", "games", "paper6"])
    assert command.main(["games", "paper6"]) == 0
    assert tuple(capsys.readouterr().out.split()) == games.PAPER6


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["tra"], {"train", "train-vectorized"}),
        (["train", "--ga"], {"--game"}),
        (["train", "--game", "Spa"], {"SpaceInvaders"}),
        (["train", "--game", "Defe"], set()),  # It has no baselines, and train refuses it.
        (["train", "--agent", "jax_l"], {"jax_log_dqn", "jax_loglin_dqn"}),
        (["train-vectorized", "--agent", ""], {"log_dqn", "loglin_dqn", "dqn"}),
        (["sweep", "--max"], {"--max_failures"}),
        (["compare", "--metric", "e"], {"eval"}),
        (["figures", "--only", "rms"], {"rms_error"}),
    ],
)
def test_bash_completes(words, completed):
    script = f"""
        eval "$({sys.executable} -m log_dqn.commands.main --print-completion bash)"
        COMP_WORDS=(log-dqn {" ".join(words)}) COMP_CWORD={len(words)}
        $(complete -p log-dqn | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "-c", script], env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
        capture_output=True, check=True,
    )  # fmt: skip
    assert {line.strip() for line in done.stdout.split()} == completed


@pytest.mark.slow
@pytest.mark.parametrize("name", ["train", "train_vectorized", "sweep"])
def test_a_module_can_be_run_as_well(name):
    version, error = (python("-m", f"log_dqn.{name}", flag) for flag in ("--version", "--nothing"))
    assert (version.returncode, version.stdout) == (0, f"log_dqn {log_dqn.__version__}\n")
    assert error.returncode == 2 and error.stderr.startswith(f"log_dqn.{name}: error: ")
