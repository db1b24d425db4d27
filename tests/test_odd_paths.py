"""Names of folders that mean something to a shell, a pattern, a format or a regular expression."""

import pathlib
import shlex
import tempfile
import types

import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from log_dqn import train, train_vectorized
from log_dqn.cli import next_steps, shell
from log_dqn.commands import compare, play
from log_dqn.run_folder import checkpoints, layout, lock
from log_dqn.tf import agent_checkpoint
from tests.dopamine_run.test_gymnasium_game import tiny
from tests.programs import forget, run
from tests.results import synthetic

ODD = r"a[1] *?[!x]\{0}{b}%s$HOME'" + '"`;&|#~<>^é\n=.-'
names = st.text(alphabet=sorted(set(ODD)), min_size=1, max_size=12).filter(
    lambda name: name.strip() not in ("", ".", "..")
)


def every_odd_name(test):
    """Gives a test a new folder of an odd name, made of what names such as `ODD` are made of."""

    @settings(max_examples=40)
    @example(name=ODD)
    @example(name="a[1]")
    @example(name="a\\b")
    @given(name=names)
    def with_name(name):
        with tempfile.TemporaryDirectory() as place:
            test(pathlib.Path(place, name))

    with_name.__name__ = test.__name__
    return with_name


@every_odd_name
def test_runs_and_checkpoints_are_found(folder):
    run_dir = layout.run_dir(folder, "log_dqn", "", "Pong", 1)
    shell.check_writable("results_dir", str(folder))
    run_dir.mkdir(parents=True)
    with lock.hold(run_dir):
        synthetic.write_log(run_dir, [1.0, 2.0])
        root = layout.checkpoints_dir(run_dir)
        checkpoints.write(root, 0, lambda place: (place / "x").write_text("x"), {})
    assert layout.find_runs(folder) == [("log_dqn", "Pong", "1", run_dir)]
    assert layout.newest_checkpoint(run_dir, pytest.fail, "")[0] == root / "0"
    assert [path.name for path in layout.logs(run_dir)] == ["log_1"]
    assert layout.results_dir_of(run_dir) == folder
    assert layout.files(run_dir)


@pytest.fixture(scope="module")
def agent():
    """What a TensorFlow agent's weights need to be saved and loaded."""
    tf.compat.v1.disable_v2_behavior()
    with tf.Graph().as_default():
        variable = tf.compat.v1.get_variable("v", initializer=2.0)
        set_to = {value: variable.assign(value) for value in (2.0, 3.0)}
        saver, session = tf.compat.v1.train.Saver(), tf.compat.v1.Session()
    return types.SimpleNamespace(_sess=session, _saver=saver, variable=variable, set_to=set_to)


def test_tensorflows_weights_come_back(agent):
    @every_odd_name
    def test(folder):
        folder.mkdir()
        agent._sess.run(agent.set_to[2.0])
        prefix = str(folder / checkpoints.WEIGHTS)
        agent._saver.save(agent._sess, prefix, write_meta_graph=False, write_state=False)
        agent._sess.run(agent.set_to[3.0])
        agent_checkpoint.load_weights(agent, folder)
        assert agent._sess.run(agent.variable) == 2.0

    test()


@every_odd_name
def test_what_can_be_done_next_is_typed_as_it_works(folder):
    parser = train.create_parser()
    flags = parser.parse_args([f"--base_dir={folder}"])
    film, compared, more = next_steps.lines(
        "train", parser, flags, 1, filmed=folder, results_dir=folder
    )

    def read(line, program):
        arguments = shlex.split(line.partition(": ")[2])
        start = next(i for i, word in enumerate(arguments) if word.startswith("--"))
        return program.create_parser().parse_args(arguments[start:])

    assert read(film, play).run in (folder, str(folder))
    assert pathlib.Path(read(compared, compare).results_dir) == folder
    assert read(more, train).base_dir == str(folder)


@pytest.mark.slow
def test_runs_are_compared(tmp_path):
    published = synthetic.write_baselines(tmp_path / "a[1]", ["Pong"], {"DQN": 0.5, "C51": 1})
    folder, report = tmp_path / ODD, tmp_path / f"{ODD}2"
    for seed in (1, 2):
        synthetic.write_log(layout.run_dir(folder, "log_dqn", "", "Pong", seed), [1.0] * 10)
    options = [f"--baselines={published}", "--iteration=final", "--repetitions=20"]
    assert compare.main([f"--results_dir={folder}", f"--out={report}", *options]) == 0
    assert (report / "report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["log_dqn", "jax_log_dqn"])
def test_a_run_resumes_and_is_filmed(tmp_path, capsys, agent):
    folder = tmp_path / ODD / "run"
    command = [f"--agent={agent}", "--env=CartPole-v1", *tiny(agent)]
    assert run(folder, *command) == 0
    assert run(folder, *command, "--gin_bindings=Runner.num_iterations=3") == 0
    assert "; resumed from iteration 2\n" in capsys.readouterr().out
    film = tmp_path / ODD / "film.gif"
    with tf.Graph().as_default():
        assert play.main([f"--run={folder}", f"--out={film}", "--max_steps=5"]) == 0
    assert film.stat().st_size
    assert run(folder, *command, "--restart") == 0
    assert "--restart removed the run" in capsys.readouterr().out


@pytest.mark.slow
def test_vectorized_runs_resume_and_are_filmed(tmp_path, capsys):
    command = [
        f"--results_dir={tmp_path / ODD}", "--games=MinAtar/Breakout",
        "--gin_bindings=VectorizedRunner.training_steps=60",
        "--gin_bindings=VectorizedRunner.replay_capacity=200",
        "--gin_bindings=VectorizedLogDQNAgent.min_replay_history=20",
    ]  # fmt: skip
    for iterations in (1, 2):
        forget()
        more = f"--gin_bindings=VectorizedRunner.num_iterations={iterations}"
        assert train_vectorized.main([*command, more]) == 0
    assert "; resumed from iteration 1\n" in capsys.readouterr().out
    folder, film = layout.run_dir(tmp_path / ODD, "log_dqn", "", "MinAtar/Breakout", 1), tmp_path
    assert play.main([f"--run={folder}", f"--out={film / 'film.gif'}", "--max_steps=5"]) == 0
