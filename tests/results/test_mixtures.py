"""Any mixture of runs gives a report, or one line that names what is wrong."""

import os
import pickle
import re
import tempfile
import traceback
import warnings
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import log_dqn
from log_dqn.cli import shell
from log_dqn.commands import compare
from log_dqn.results import report
from tests.results import synthetic

# More of them: LOG_DQN_EXAMPLES=500 python -m pytest tests/results/test_mixtures.py
EXAMPLES = int(os.environ.get("LOG_DQN_EXAMPLES", "15"))

AGENTS = ("log_dqn", "DQN", "log_dqn/gamma=0.9", "log_dqn/gamma=0.99,c=2", "a\nb")
GAMES = ("Pong", "Zaxxon", "pong", "MinAtar-Breakout", "CartPole", "Carnival")
STEPS = (1, 1000, 5000, 250_000, 10**9)
LOGS = {
    "a folder": None,
    "empty": b"",
    "truncated": pickle.dumps({"iteration_0": {"train_average_return": [1.0]}})[:-9],
    "a list": pickle.dumps([1, 2]),
    "no iteration": pickle.dumps({}),
    "evaluation alone": pickle.dumps({"iteration_0": {"eval_average_return": [1.0]}}),
    "iteration 3 alone": pickle.dumps({"iteration_3": {"train_average_return": [1.0]}}),
    "lengths alone": pickle.dumps({"iteration_0": {"train_episode_lengths": [100]}}),
    "odd lengths": pickle.dumps(
        {"iteration_0": {"train_average_return": 2, "train_episode_lengths": ["x", -5]}}
    ),
}
CONFIGS = ("", "{", "[1]", '{"Runner.training_steps": 0}', '{"LogDQNAgent.gamma": 0.9}')


def single(steps):
    return synthetic.PROTOCOL | {"Runner.training_steps": steps, "LogDQNAgent.gamma": 0.9}


def vectorized(steps):
    return {
        "VectorizedRunner.training_steps": steps, "VectorizedDQNAgent.gamma": 0.9,
        "VectorizedRunner.agent": "dqn", "VectorizedDQNAgent.min_replay_history": 1000,
    }  # fmt: skip


whole_configs = st.builds(
    lambda steps, make: make(steps), st.sampled_from(STEPS), st.sampled_from([single, vectorized])
)
whole_logs = st.builds(
    lambda value, size: [value] * size, st.floats(-30, 30), st.sampled_from([1, 2, 3, 20, 200])
)
returns = st.one_of(st.floats(-30, 30), st.sampled_from([1e15, float("nan")]))
odd_logs = st.one_of(
    st.none(), st.sampled_from(sorted(LOGS)), st.lists(returns, min_size=1, max_size=4)
)
odd_configs = st.one_of(st.none(), st.sampled_from(CONFIGS))
# Most runs are whole ones, for there to be something to compare.
runs_of = st.one_of(
    *[st.tuples(whole_logs, whole_configs)] * 3,
    st.tuples(whole_logs, odd_configs),
    st.tuples(odd_logs, st.one_of(whole_configs, odd_configs)),
)
seeds = st.dictionaries(st.sampled_from(["0", "1", "2", "x"]), runs_of, min_size=1)
places = st.tuples(st.sampled_from(AGENTS), st.sampled_from(GAMES))
mixtures = st.dictionaries(places, seeds, min_size=1, max_size=5)


flags = st.fixed_dictionaries(
    {},
    optional={
        "--iteration": st.sampled_from(["final", "common", "0", "2", "500"]),
        "--metric": st.sampled_from(["eval", "train"]),
        "--agents": st.sampled_from(
            ["log_dqn", "DQN (own runs),log_dqn/gamma=0.99,c=2", "IQN,DQN", "none"]
        ),
        "--games": st.sampled_from(["Pong", "Pong,Zaxxon", "minatar5", "paper6"]),
        "--reference": st.sampled_from(["log_dqn", "IQN", "none"]),
    },
)


def write(run, log, config):
    if isinstance(log, list):
        settings = config if isinstance(config, dict) else None
        synthetic.write_log(run, log, episodes=2, eval_offset=1, config=settings)
    else:
        (run / "logs").mkdir(parents=True)
        if log == "a folder":
            (run / "logs/log_0").mkdir()
        elif log is not None:
            (run / "logs/log_0").write_bytes(LOGS[log])
    if isinstance(config, str):
        (run / "config.json").write_text(config)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    agents = {"DQN": 0.5, "IQN": 2}
    return synthetic.write_baselines(
        folder, ["Pong", "Alien", "Carnival"], agents, num_seeds=2, num_iterations=12
    )


@pytest.fixture(scope="module")
def errors():
    """What `compare` refuses, as it raised it."""
    with pytest.MonkeyPatch.context() as patch:
        found = []
        patch.setattr(shell, "print_error", lambda program, error: found.append(error))
        yield found


def laid_out(figure, box, path):
    """Stands in for saving, which takes most of the time."""
    figure.draw_without_rendering()
    return b""


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(mixtures, st.one_of(st.just({}), st.just({}), flags), st.sampled_from([False, False, True]))
def test_a_report_or_one_line(published, errors, runs, flags, strict):
    errors.clear()
    lines = []
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(),
    ):
        # A warning of numpy or matplotlib would stand in the user's way.
        warnings.simplefilter("error")
        patch.setattr(compare, "notify", lines.append)
        patch.setattr(report, "_save", laid_out)
        own, out = Path(folder, "runs"), Path(folder, "report")
        for (agent, game), of_seeds in runs.items():
            for seed, (log, config) in of_seeds.items():
                write(own / agent / game / seed, log, config)
        status = compare.main(
            [f"--results_dir={own}", f"--out={out}", f"--baselines={published}", "--repetitions=9"]
            + [f"{name}={value}" for name, value in flags.items()]
            + ["--strict"] * strict
        )
        assert (out / "report.html").exists() == (status == 0)
    event(f"status {status}")
    assert len(lines) == len(set(lines))
    assert all(line.isprintable() and not re.search(r"\bnan\b|Errno", line) for line in lines)
    if status:
        (error,) = errors
        # It is ours, not that of a library that met what nobody had looked at.
        raised = traceback.extract_tb(error.__traceback__)[-1].filename
        assert Path(raised).is_relative_to(Path(log_dqn.__file__).parent)
        assert status == 2 and str(error).isprintable()
        assert re.match(r"--\w+=|\w+ is ", str(error))
