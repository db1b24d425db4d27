"""What a run was trained under, and what marks it."""

import pickle
import re
import sys
from pathlib import Path

import pytest

from log_dqn import games
from log_dqn.results import (
    align,
    labels,
    protocol,
    provenance,
    report,
    tables,
)
from log_dqn.results.protocol import PUBLISHED
from log_dqn.run_folder import configuration
from tests.results import synthetic
from tests.results.synthetic import compare, rows_of

ROOT = Path(__file__).parents[2]
ITERATIONS = 20


def recorded(parameters, game="Pong", metric="train", num_iterations=ITERATIONS):
    return protocol.recorded(parameters, game, metric, num_iterations)


def test_the_baselines_protocol():
    assert recorded(synthetic.PROTOCOL) == PUBLISHED
    assert PUBLISHED.frames_per_iteration == 1_000_000
    assert protocol.differences(PUBLISHED, PUBLISHED, "baselines") == ()


# A field, a parameter that changes it, and how it is shown then.
CHANGES = {
    "agent_steps_an_iteration": ({"Runner.training_steps": 5000}, "5,000"),
    "longest_episode_in_frames": ({"Runner.max_steps_per_episode": 100}, "400"),
    "frames_an_agent_step": (
        # Episodes of as many frames.
        {"AtariPreprocessing.frame_skip": 3, "Runner.max_steps_per_episode": 36_000}, "3"
    ),
    "sticky_actions": ({"atari.create_environment.sticky_actions": False}, "no"),
    "ends_with_a_life": ({"AtariPreprocessing.terminal_on_life_loss": True}, "yes"),
    "replay_capacity": ({"WrappedReplayBuffer.replay_capacity": 1000}, "1,000"),
    "agent_steps_before_learning": ({"LogDQNAgent.min_replay_history": 50_000}, "50,000"),
    "agent_steps_an_update": ({"LogDQNAgent.update_period": 1}, "1"),
    "batch_size": ({"WrappedReplayBuffer.batch_size": 64}, "64"),
}  # fmt: skip


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    return synthetic.write_baselines(folder, ["Pong", "Alien"], {"DQN": 1.0}, num_iterations=20)


def deviations(compared):
    return labels.deviations(rows_of(compared, "log_dqn"))


def label(compared):
    return labels.label(rows_of(compared, "log_dqn"))


def write_run(folder, iterations=ITERATIONS, **settings):
    synthetic.write_log(folder, [1.0] * iterations, eval_offset=2.0, **settings)


def phrases(config):
    return [*map(str, protocol.differences(recorded(config), PUBLISHED, "baselines"))]


@pytest.mark.parametrize("field", CHANGES)
def test_one_parameter_changes_one_field(field):
    change, shown = CHANGES[field]
    config = synthetic.PROTOCOL | change
    own, usual = getattr(recorded(config), field), getattr(PUBLISHED, field)
    assert recorded(config)._replace(**{field: usual}) == PUBLISHED and own != usual
    [phrase] = phrases(config)
    assert phrase.startswith(f"{field.replace('_', ' ')} {shown} (baselines: ")


WITHOUT_BATCHES = {k: v for k, v in synthetic.PROTOCOL.items() if "batch" not in k}


@pytest.mark.parametrize(
    ("config", "said", "mark"),
    [
        (synthetic.PROTOCOL, [], ""),
        (
            synthetic.PROTOCOL | CHANGES["batch_size"][0],
            ["batch size 64 (baselines: 32)"],
            " \N{DAGGER}",
        ),
        (WITHOUT_BATCHES, ["batch size not recorded (baselines: 32)"], " \N{DOUBLE DAGGER}"),
        (None, ["protocol not recorded"], " \N{DOUBLE DAGGER}"),
    ],
)
def test_what_differs_is_said_and_marked(tmp_path, published, config, said, mark):
    write_run(tmp_path / "log_dqn/Pong/0", config=config)
    compared, lines = compare(published, tmp_path)
    assert deviations(compared) == said and label(compared) == f"log_dqn{mark}"
    assert labels.protocol_of(rows_of(compared, "log_dqn")) == ("; ".join(said) or "same")
    perhaps = "perhaps " * (mark == " \N{DOUBLE DAGGER}")
    comparable = f"{perhaps}not comparable with the published baselines"
    found = [line for line in lines if "comparable" in line]
    assert found == [f"log_dqn: {comparable}: {phrase}" for phrase in said]


@pytest.mark.parametrize(
    "change",
    [
        {"atari.create_environment.game_name": "Breakout"},
        {"gym_lib.create_gym_environment.environment_name": "CartPole"},
        {"create_gymnasium_environment.environment_id": "LunarLander-v3"},
        {"create_jax_environment.environment_id": "CartPole-v1"},
        {"create_host_environment.environment_id": "gymnasium:My-v0"},
    ],
)
def test_a_game_that_is_not_the_baselines_is_named(change):
    [played] = change.values()
    reason = f"game {played} (baselines: Dopamine's 60 Atari games)"
    assert phrases(synthetic.PROTOCOL | change) == [reason]


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31mred", "\ud800", "a\u202eb"])
def test_names_that_no_terminal_shows_are_escaped(tmp_path, published, name):
    """A configuration is anybody's: what it names reaches terminal, page and figures."""
    change = {"create_environment.game_name": name, f"{name}Agent.gamma": 0.9}
    config = {k: v for k, v in synthetic.PROTOCOL.items() if "Agent" not in k}
    write_run(tmp_path / "log_dqn/Pong/0", config=config | change)
    compared, lines = compare(published, tmp_path)
    reason = f"game {name!a} (baselines: Dopamine's 60 Atari games)"
    assert deviations(compared)[0] == reason
    [run] = rows_of(compared, "log_dqn").itertuples()
    assert run.agent_class == ascii(f"{name}Agent") and run.gamma == 0.9
    _, unbound = provenance.hyperparameters(rows_of(compared, "log_dqn"))
    [found] = [one for one in unbound if "gamma" in one.parameter]
    assert found.parameter == ascii(f"{name}Agent.gamma")
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("metric", ["train", "eval"])
def test_a_run_without_any_update_gives_the_mark(tmp_path, published, metric):
    """20,000 agent steps, after which updates would begin."""
    config = synthetic.PROTOCOL | {"Runner.training_steps": 20_000}
    write_run(tmp_path / "log_dqn/Pong/0", iterations=1, config=config)
    compared, _ = compare(published, tmp_path, metric=metric)
    assert "any update no (baselines: yes)" in deviations(compared)
    assert recorded(synthetic.PROTOCOL, num_iterations=1).any_update
    assert not recorded(config, num_iterations=1).any_update
    assert recorded(config, num_iterations=2).any_update


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (100, ["agent steps an iteration 6,000 (baselines: 250,000)", "protocol not recorded"]),
        (4300, ["protocol not recorded"]),  # 258,000 steps: the last episode goes on.
    ],
)
def test_logs_without_a_configuration_tell_their_steps(tmp_path, published, length, words):
    folder = tmp_path / "log_dqn/Pong/0"
    path = synthetic.write_log(folder, [1.0] * ITERATIONS, config=None)
    lengths = [length] * 59 + [length + 30]
    log = {
        f"iteration_{i}": {"train_average_return": [1.0], "train_episode_lengths": lengths}
        for i in range(ITERATIONS)
    }
    path.write_bytes(pickle.dumps(log))
    compared, _ = compare(published, tmp_path)
    assert deviations(compared) == words
    assert [*rows_of(compared, "log_dqn")["frames"]] == [480_000 if length == 100 else 20_000_000]


def test_what_is_missing_is_said_of_each_field():
    """What is Atari's own is not missed where another game is played."""
    nothing = dict.fromkeys({*PUBLISHED._fields} - {"game", "returns", "batch_size"})
    own = PUBLISHED._replace(**nothing)
    missing = {one.field for one in protocol.differences(own, PUBLISHED, "baselines")}
    assert missing == {name.replace("_", " ") for name in nothing}
    missed = protocol.differences(own._replace(game="CartPole"), PUBLISHED, "baselines")
    found = {one.field for one in missed if one.own == protocol.NOT_RECORDED}
    assert missing - found == {name.replace("_", " ") for name in protocol._ATARI_ONLY}


def test_no_limit_in_words():
    unlimited = PUBLISHED._replace(longest_episode_in_frames=10**9)
    for own, standard, values in (
        (unlimited, PUBLISHED, ("no limit", "108,000")),
        (PUBLISHED, unlimited, ("108,000", "no limit")),
    ):
        [found] = protocol.differences(own, standard, "a")
        assert (found.own, found.standard) == values


def test_a_prioritized_buffer_is_the_one_in_force():
    config = synthetic.PROTOCOL | {"WrappedPrioritizedReplayBuffer.replay_capacity": 1000}
    assert recorded(config).replay_capacity == 1000
    assert recorded(config).batch_size == 32


def test_a_part_of_the_runs_is_counted(tmp_path, published):
    config = synthetic.PROTOCOL | {"LogDQNAgent.update_period": 1}
    write_run(tmp_path / "log_dqn/Pong/0", config=config)
    write_run(tmp_path / "log_dqn/Pong/1")
    compared, _ = compare(published, tmp_path)
    reason = "agent steps an update 1 (baselines: 4)"
    assert deviations(compared) == [f"{reason} in 1 of 2 runs"]
    assert [*tables.with_protocol(rows_of(compared, "log_dqn"))["protocol"]] == [reason, "same"]


def test_strictly_they_are_left_out(tmp_path, published):
    write_run(tmp_path / "log_dqn/Pong/0", config=None)
    write_run(tmp_path / "log_dqn/Pong/1")
    write_run(tmp_path / "log_dqn/Alien/0", config=synthetic.PROTOCOL | CHANGES["batch_size"][0])
    compared, lines = compare(published, tmp_path, strict=True)
    assert [*rows_of(compared, "log_dqn")["seed"]] == ["1"]
    assert lines[3] == (
        "log_dqn: 2 runs left out by --strict: not comparable with the published baselines: "
        "batch size 64 (baselines: 32) on Alien; protocol not recorded on Pong"
    )
    assert label(compared) == "log_dqn"
    (tmp_path / "log_dqn/Pong/1/config.json").unlink()
    with pytest.raises(ValueError, match="no run of it can be compared"):
        compare(published, tmp_path, strict=True)


def test_without_baselines_own_runs_are_compared_with_each_other(tmp_path):
    folder = games.folder_name("MinAtar/Breakout")
    config = {
        "VectorizedRunner.training_steps": 50_000, "VectorizedRunner.batch_size": 32,
        "VectorizedDQNAgent.min_replay_history": 1000, "VectorizedDQNAgent.gamma": 0.9,
    }  # fmt: skip
    write_run(tmp_path / "dqn" / folder / "0", config=config)
    write_run(tmp_path / "log_dqn" / folder / "0", config=config)
    other = config | {"VectorizedRunner.batch_size": 64}
    write_run(tmp_path / "wide" / folder / "0", config=other)
    compared, _ = compare(tmp_path, tmp_path, reference="dqn")
    assert labels.standard(compared.runs) == "dqn"
    assert align.frame_skip(compared.runs) == 1 and set(compared.runs["frames"]) == {1_000_000}
    found = {agent: labels.deviations(rows) for agent, rows in compared.runs.groupby("agent")}
    assert found == {"log_dqn": [], "dqn": [], "wide": ["batch size 64 (dqn: 32)"]}


@pytest.mark.parametrize(
    "name",
    sorted(
        path.stem
        for path in (ROOT / "configs").glob("*.gin")
        if not re.search("minatar|quick|short|cartpole|gym|scan|adam|protocol|_env", path.stem)
    ),
)
def test_the_shipped_settings_are_the_baselines_protocol(name):
    def read(file):
        text = (ROOT / "configs" / file).read_text("utf-8")
        return re.sub(r"include '(.+)'", lambda included: read(included[1]), text)

    text = read(f"{name}.gin")
    # What a run records beside what the file binds.
    defaults = {
        "AtariPreprocessing.frame_skip": 4,
        "AtariPreprocessing.terminal_on_life_loss": False,
    }
    found = recorded(configuration.parameters(text) | defaults, num_iterations=200)
    assert found == PUBLISHED


def test_dopamines_own_factory_ends_episodes_earlier():
    config = {k: v for k, v in synthetic.PROTOCOL.items() if "create_environment" not in k}
    config["create_atari_environment.sticky_actions"] = True
    assert recorded(config) == PUBLISHED._replace(longest_episode_in_frames=100_000)


@pytest.mark.parametrize("value", [True, -1, 10**13, "250000", None, [250_000], 2.5e5])
def test_values_that_are_no_counts_are_not_recorded(value):
    found = recorded(synthetic.PROTOCOL | {"Runner.training_steps": value})
    assert found.agent_steps_an_iteration is None and found.frames_per_iteration == 1_000_000


def test_a_stored_configuration_is_never_executed(tmp_path, published):
    """Gin is code: importing a module runs it."""
    folder = tmp_path / "runs/log_dqn/Pong/0"
    write_run(folder, config=synthetic.PROTOCOL | {"LogDQNAgent.optimizer": "@evil.Optimizer()"})
    (tmp_path / "evil_module.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (folder / "operative_config.gin").write_text(
        "import evil_module\nimport os\ninclude '/etc/passwd'\nLogDQNAgent.gamma = @os.abort()\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        compared, lines = compare(published, tmp_path / "runs")
    assert "evil_module" not in sys.modules and not (tmp_path / "ran").exists()
    assert deviations(compared) == [] and not any("gin" in line for line in lines)


def test_a_mark_stands_in_every_legend(tmp_path, published):
    for seed in range(3):
        write_run(tmp_path / f"log_dqn/Pong/{seed}", config=None)
    compared, _ = compare(published, tmp_path, repetitions=20)
    results = report.compute(compared)
    marked = "log_dqn \N{DOUBLE DAGGER}, 3 seeds"
    for name, (_, draw) in report.PICTURES.items():
        drawn = draw(compared, results)
        if isinstance(drawn, report.Shown):
            texts = [text.get_text() for text in drawn.figure.findobj(page_text)]
            assert any(marked in text for text in texts), name
            assert marked in drawn.alternative
    [(reason, where)] = labels.differences(rows_of(compared, "log_dqn"))
    assert (reason.field, reason.own, where) == ("protocol", "not recorded", "")


def page_text(artist):
    return hasattr(artist, "get_text")
