"""What is compared with what, at which iteration, and what is said about it."""

import numpy as np
import pytest

from log_dqn import games
from log_dqn.results import comparison, labels, report, statistics, tables
from tests.results import synthetic
from tests.results.synthetic import compare, rows_of, write_runs

GAMES = ["Pong", "Alien", "DoubleDunk"]
JAX_DQN = "DQN (Adam + MSE in JAX)"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    agents = {"DQN": 0.5, "C51": 1, "Rainbow": 1.5, "IQN": 2, JAX_DQN: 0.8}
    return synthetic.write_baselines(tmp_path_factory.mktemp("published"), GAMES, agents)


@pytest.fixture
def unequal(tmp_path):
    write_runs(tmp_path, "log_dqn", ["Pong", "Alien"], 50)
    write_runs(tmp_path, "log_dqn", ["DoubleDunk"], 30)
    return tmp_path


def ends(compared):
    return compared.runs.set_index(["agent", "game"])["iteration"].to_dict()


FEW = "log_dqn: 2 seeds a game; intervals need 3"


def test_each_run_at_its_own_end(published, unequal):
    compared, lines = compare(published, unequal, iteration="final")
    assert lines == [FEW]
    assert ends(compared)["log_dqn", "DoubleDunk"] == 29
    assert ends(compared)["DQN", "Pong"] == 198
    assert compared.main == "log_dqn"


def test_all_at_their_common_experience_by_default(published, unequal):
    compared, [line, few] = compare(published, unequal)
    assert few == FEW and line == (
        "all are compared after 30M frames, the last that all own runs have (set by "
        "log_dqn/DoubleDunk/0); --iteration=final compares each run at its own end"
    )
    assert set(compared.runs["until"]) == {30_000_000}
    facts = tables.scored(compared)
    assert "up to 30M frames of training, the last that all own runs have" in facts
    assert set(ends(compared).values()) == {29} and len(ends(compared)) == 15
    assert set(compared.runs["frames"]) == {30_000_000}
    scores = [synthetic.curve("Pong", 50, 1.0, seed)[27:30].mean() for seed in range(2)]
    assert [*rows_of(compared, "log_dqn", ["Pong"])["score"]] == pytest.approx(scores)


def test_equal_experience_is_counted_in_frames(published, tmp_path):
    """Iterations of 50,000 agent steps: 200,000 frames, a fifth of the baselines'."""
    config = synthetic.PROTOCOL | {"Runner.training_steps": 50_000}
    returns = synthetic.curve("Pong", 100, 1.0, 0)
    synthetic.write_log(tmp_path / "log_dqn/Pong/0", returns, config=config)
    compared, [line, *_] = compare(published, tmp_path)
    assert "after 20M frames" in line and "(set by log_dqn/Pong/0)" in line
    assert ends(compared) == {
        ("log_dqn", "Pong"): 99, **{(a, "Pong"): 19 for a in ("DQN", "C51", "Rainbow", "IQN")}
    }  # fmt: skip
    assert set(compared.runs["frames"]) == {20_000_000}
    # A number counts iterations of the longest kind.
    compared, _ = compare(published, tmp_path, iteration=9)
    assert ends(compared)["log_dqn", "Pong"] == 49 and ends(compared)["DQN", "Pong"] == 9
    # Or, where there are any, of the baselines.
    longer = config | {"Runner.training_steps": 1_000_000}
    synthetic.write_log(tmp_path / "log_dqn/Pong/0", [1.0] * 10, config=longer)
    compared, _ = compare(published, tmp_path, iteration=7)
    assert ends(compared)["log_dqn", "Pong"] == 1 and ends(compared)["DQN", "Pong"] == 7


def test_runs_of_two_kinds_of_iterations_are_averaged_at_equal_experience(published, tmp_path):
    config = synthetic.PROTOCOL | {"Runner.training_steps": 50_000}
    synthetic.write_log(tmp_path / "a/Pong/0", [float(i) for i in range(10)], config=config)
    synthetic.write_log(tmp_path / "a/Pong/1", [10.0, 20.0])
    compared, _ = compare(published, tmp_path)
    step, curves = statistics.curves(rows_of(compared, "a"))
    assert step == 1_000_000
    assert [returns.tolist() for returns in curves["returns"]] == [[4, 9], [10, 20]]


def test_short_iterations_are_scored_over_the_frames_of_long_ones(published, tmp_path):
    """The published DQN beside itself, in fifths of its iterations: the same scores."""
    config = synthetic.PROTOCOL | {"Runner.training_steps": 50_000}
    compared, _ = compare(published, agents=("DQN",), games=("Pong",))
    for run in rows_of(compared, "DQN").itertuples():
        # Five of these have the mean of the long iteration, but rise within it.
        rising = np.add.outer(run.returns[:3], np.arange(-2.0, 3)).ravel()
        path = tmp_path / "same/Pong" / run.seed
        synthetic.write_log(path, [*rising[:14]], config=config)
    compared, [line, *_] = compare(published, tmp_path)
    assert "after 2M frames, the last at which an iteration of all runs ends (set by same" in line
    same, dqn = rows_of(compared, "same"), rows_of(compared, "DQN")
    # 14 short iterations are 2.8 long ones, so that two count, of which the last is scored.
    assert {*same["frames"], *dqn["frames"]} == {2_000_000}
    np.testing.assert_allclose(same["score"], dqn["score"])
    assert "over about as many frames as the longest iterations need" in tables.scored(compared)


def test_a_run_that_is_left_out_widens_no_window(published, tmp_path):
    config = synthetic.PROTOCOL | {"Runner.training_steps": 1_000_000}
    synthetic.write_log(tmp_path / "a/Pong/0", np.arange(100.0))
    synthetic.write_log(tmp_path / "wide/Pong/0", [1.0] * 5, config=config)  # Ends at 20M frames.
    compared, lines = compare(published, tmp_path, iteration=49)
    assert "wide: 1 run has no scores after 50M frames; left out (Pong)" in lines
    assert [*rows_of(compared, "a")["score"]] == [(45 + 46 + 47 + 48 + 49) / 5]
    # Nor does one that is long enough, but whose returns there are not known.
    wide = [1.0] * 10 + [np.nan] * 3
    synthetic.write_log(tmp_path / "wide/Pong/0", wide, config=config)
    compared, _ = compare(published, tmp_path, iteration=49)
    assert [*rows_of(compared, "a")["score"]] == [(45 + 46 + 47 + 48 + 49) / 5]


def test_what_set_the_experience_is_said_alike_where_it_is_left_out(published, tmp_path):
    synthetic.write_log(tmp_path / "a/Pong/0", [1.0] * 20)
    synthetic.write_log(tmp_path / "a/Pong/1", [1.0] * 8 + [np.nan])
    compared, [line, *_] = compare(published, tmp_path)
    words = "the last that all own runs have"
    assert f"after 9M frames, {words} (set by a/Pong/1)" in line
    assert [*rows_of(compared, "a")["seed"]] == ["0"] and words in tables.scored(compared)


def test_a_run_that_ends_before_anothers_first_iteration_costs_the_curves_alone(
    published, tmp_path
):
    config = synthetic.PROTOCOL | {"Runner.training_steps": 1000}
    synthetic.write_log(tmp_path / "a/Pong/0", [4.0, 5.0, 6.0], config=config)
    synthetic.write_log(tmp_path / "a/Pong/1", [10.0, 20.0])
    compared, _ = compare(published, tmp_path, agents=("a", "IQN"), repetitions=9)
    assert [*rows_of(compared, "a")["score"]] == [5, 10]  # All of the three short iterations.
    results = report.compute(compared)
    assert list(results.curves) == ["IQN", "DQN"] and "a" in results.aggregates
    assert "at 1M frames, the end of the first iteration" in tables.scored(compared)
    assert "over about as many" not in tables.scored(compared)


def test_a_run_whose_last_episodes_do_not_end_has_no_score(published, tmp_path):
    for iteration in ("final", "common"):
        for seed, returns in enumerate(([1.0] * 20, [1.0] * 17 + [np.nan] * 3)):
            synthetic.write_log(tmp_path / f"a/Pong/{seed}", returns)
        compared, lines = compare(published, tmp_path, iteration=iteration)
        assert [*rows_of(compared, "a")["seed"]] == ["0"]
        where = "in their last 10% of iterations" if iteration == "final" else "after 20M frames"
        assert f"a: 1 run has no scores {where}; left out (Pong)" in lines


def test_all_at_a_given_iteration(published, unequal):
    compared, lines = compare(published, unequal, iteration=40)
    assert set(ends(compared).values()) == {40}
    assert ("log_dqn", "DoubleDunk") not in ends(compared)
    assert lines == [
        "log_dqn: 2 runs have no scores after 41M frames; left out (DoubleDunk)",
        "log_dqn: no scores on 1 game (DoubleDunk); aggregates use the 2 games that all agents "
        "have",
        FEW,
    ]
    assert compared.common_games == ["Alien", "Pong"]
    with pytest.raises(
        ValueError, match="iteration is 500; it must be an iteration at which one of"
    ):
        compare(published, unequal, iteration=500)


def test_evaluation_returns(published, tmp_path):
    synthetic.write_log(tmp_path / "a/Pong/0", [1.0] * 199, eval_offset=2)
    compared, lines = compare(published, tmp_path, metric="eval")
    assert lines[0] == (
        "a: not comparable with the published baselines: returns evaluation (baselines: training)"
    )
    assert [*rows_of(compared, "a")["score"]] == [3]
    assert labels.label(rows_of(compared, "a")) == "a \N{DAGGER}"
    assert labels.published(compared.runs, "eval") == " (published: training)"
    assert labels.published(rows_of(compared, "a"), "eval") == ""
    compared, _ = compare(published, tmp_path)
    assert [*rows_of(compared, "a")["score"]] == [1]
    assert labels.published(compared.runs, "train") == ""


def test_evaluation_returns_that_are_not_there(published, tmp_path):
    write_runs(tmp_path, "log_dqn", ["Pong", "Alien"], 20)
    lines = []
    request = comparison.Request(tmp_path, baselines=str(published), metric="eval")
    message = f"{tmp_path}: no run of it can be compared; it has log_dqn on Alien, Pong"
    with pytest.raises(ValueError, match=message):
        comparison.compare(request, lines.append)
    assert lines == ["log_dqn: 4 runs have no eval_average_return; left out (Alien, Pong)"]


@pytest.mark.parametrize("name", ["DQN", JAX_DQN, "DQN (JAX: Adam, MSE)"])
def test_own_runs_never_bear_a_published_name(tmp_path, name):
    """Also where nothing is published: Defender."""
    write_runs(tmp_path / "runs", name, ["Defender"], 20, seeds=1)
    write_runs(tmp_path / "runs", "mine", ["Defender"], 20, seeds=1)
    compared, lines = compare(tmp_path, tmp_path / "runs")
    shown = f"{name} (own runs)"
    assert lines[0] == f"{name}: own runs of this name are shown as '{shown}'"
    assert [*compared.runs["agent"].unique()] == [shown, "mine"]
    compared, _ = compare(tmp_path, tmp_path / "runs", agents=(shown, "mine", shown))
    assert [*compared.runs["agent"].unique()] == [shown, "mine"]


def test_other_agents_runs_are_not_read(published, tmp_path):
    write_runs(tmp_path, "a", ["Pong"], 199)
    write_runs(tmp_path, "b", ["Alien"], 199)
    (tmp_path / "b/Alien/0/logs/log_198").write_bytes(b"")
    compared, lines = compare(published, tmp_path, agents=("a",))
    assert (compared.games, lines) == (["Pong"], ["a: 2 seeds a game; intervals need 3"])
    compared, lines = compare(published, tmp_path, agents=("a",), reference="b")
    assert compared.games == ["Alien", "Pong"] and "b/Alien/0" in lines[0]


@pytest.mark.parametrize(
    ("settings", "flag"),
    [({"reference": "x\ty"}, r"reference is 'x\ty'"), ({"agents": ("x", "y")}, "agents is 'x,y'")],
)
def test_unknown_agents_are_refused_in_one_line(published, tmp_path, settings, flag):
    write_runs(tmp_path, "a\nb", ["Pong"], 20, seeds=1)
    with pytest.raises(ValueError) as raised:
        compare(published, tmp_path, **settings)
    assert str(raised.value) == (
        f"{flag}; it must be among C51, DQN, {JAX_DQN}, IQN, Quantile (JAX), Rainbow, 'a\\nb'"
    )


@pytest.mark.slow
def test_letters_that_the_font_lacks_print_nothing(published, tmp_path, recwarn):
    write_runs(tmp_path, "\u5bf9", ["Pong"], 20)
    compared, _ = compare(published, tmp_path, agents=("\u5bf9",), repetitions=9)
    report.write(compared, tmp_path / "report", "")
    assert [str(w.message) for w in recwarn if "Glyph" in str(w.message)] == []


def test_a_name_that_figures_alone_have_is_unknown(published, tmp_path):
    write_runs(tmp_path, "a", ["Pong"], 20, seeds=1)
    with pytest.raises(ValueError, match=r"^reference is 'DQN \(JAX: Adam, MSE\)'; it must"):
        compare(published, tmp_path, reference="DQN (JAX: Adam, MSE)")


def test_the_jax_dqn_only_takes_part_when_named(published):
    compared, _ = compare(published, games=("Pong",))
    assert [*compared.runs["agent"].unique()] == ["DQN", "C51", "Rainbow", "IQN"]
    compared, _ = compare(published, games=("Pong",), agents=(JAX_DQN, "IQN"))
    # The reference comes along.
    assert [*compared.runs["agent"].unique()] == [JAX_DQN, "IQN", "DQN"]
    assert compared.main == JAX_DQN
    compared, _ = compare(published, games=("Pong",), agents=("IQN",), reference=JAX_DQN)
    assert [*compared.runs["agent"].unique()] == ["IQN", JAX_DQN]


def test_log_dqn_is_set_against_the_reference_unless_told_otherwise(published, tmp_path):
    for agent in ("c51_mine", "jax_log_dqn", "log_dqn"):
        write_runs(tmp_path, agent, ["Pong"], 199, seeds=1)
    compared, _ = compare(published, tmp_path)
    own = ["jax_log_dqn", "log_dqn", "c51_mine"]
    assert [*compared.runs.loc[compared.runs["own"], "agent"].unique()] == own
    assert compared.main == "jax_log_dqn"
    assert [*compared.runs["agent"].unique()] == [*own, "DQN", "C51", "Rainbow", "IQN"]
    compared, _ = compare(published, tmp_path, agents=("DQN", "c51_mine", "IQN"))
    assert [*compared.runs["agent"].unique()] == ["DQN", "c51_mine", "IQN"]
    assert compared.main == "c51_mine"


def test_a_results_folder_without_a_readable_run(tmp_path):
    """Before any baseline is read."""
    synthetic.write_log(tmp_path / "a/Pong/0", [1]).write_bytes(b"")
    with pytest.raises(ValueError, match=f"--results_dir={tmp_path}: no "):
        compare(tmp_path, tmp_path, games=("Pong",))


def test_an_unknown_agent_is_named(published):
    _, lines = compare(published, games=("Pong",), agents=("IQN", "Rainbow2"))
    assert lines == ["Rainbow2: no runs, own or published, on the games compared; left out"]


def write_small_runs(results_dir, agent, iterations, seeds=(0, 1), **changed):
    """Runs of a game without human scores and baselines, of 200 steps an iteration."""
    config = {
        "VectorizedRunner.training_steps": 200, "VectorizedRunner.batch_size": 32,
        "VectorizedDQNAgent.min_replay_history": 100, "VectorizedDQNAgent.gamma": 0.9,
    }  # fmt: skip
    for seed in seeds:
        synthetic.write_log(
            results_dir / agent / games.folder_name("MinAtar/Breakout") / str(seed),
            [1.0] * iterations, config=config | changed,
        )  # fmt: skip


def test_a_game_without_baselines_has_an_experience_of_its_own(published, tmp_path):
    for seed in range(5):
        returns = synthetic.curve("Pong", 199, 1.0, seed)
        synthetic.write_log(tmp_path / f"log_dqn/Pong/{seed}", returns, episodes=1)
    write_small_runs(tmp_path, "log_dqn", 3)
    write_small_runs(tmp_path, "dqn", 9)
    game = "MinAtar/Breakout"
    compared, lines = compare(published, tmp_path, agents=("log_dqn", "dqn"), games=("Pong", game))
    found = ends(compared)
    assert found["log_dqn", "Pong"] == found["DQN", "Pong"] == 198
    assert found["log_dqn", game] == found["dqn", game] == 2
    until = dict(zip(compared.runs["game"], compared.runs["until"], strict=True))
    assert until == {"Pong": 199_000_000, game: 600}
    assert lines[0] == (
        f"{game}: all are compared after 600 agent steps, the last that all own runs have "
        f"(set by log_dqn/{game}/0); --iteration=final compares each run at its own end"
    )
    assert tables.scored(compared).endswith("own runs have; up to 600 agent steps on " + game)


def test_ones_own_environment_can_be_compared_alone(published, tmp_path):
    for agent in ("log_dqn", "dqn"):
        write_runs(tmp_path, agent, ["Pong", "own_module-Corridor-v0"], 10)
    compared, _ = compare(published, tmp_path, games=("own_module:Corridor-v0",))
    assert compared.games == ["own_module-Corridor-v0"] and compared.divides_by_best
    compared, _ = compare(published, tmp_path, games=("own_module-Corridor-v0", "pong"))
    assert compared.games == ["Pong", "own_module-Corridor-v0"]
    known = r"or of your environments own_module-Corridor-v0 \(nearest: own_module-Corridor-v0\)"
    with pytest.raises(ValueError, match=f"games is 'Corridor-v0'; it must be one of .*, {known}"):
        compare(published, tmp_path, games=("Corridor-v0",))
    # It isn't the set of games of that name.
    write_runs(tmp_path, "dqn", ["atari5"], 10)
    assert compare(published, tmp_path, games=("atari5",))[0].games == ["atari5"]


def test_another_games_protocol_leaves_no_mark_on_aggregates(published, tmp_path):
    """A game without baselines is held against the reference agent's runs there, or the first's."""
    for seed in range(5):
        synthetic.write_log(tmp_path / f"log_dqn/Pong/{seed}", [1.0] * 199, episodes=1)
    write_small_runs(tmp_path, "log_dqn", 3)
    write_small_runs(tmp_path, "wide", 3, **{"VectorizedRunner.batch_size": 64})
    game = "MinAtar/Breakout"
    compared, _ = compare(published, tmp_path)
    standards = dict(zip(compared.runs["game"], compared.runs["standard"], strict=True))
    assert standards == {game: "log_dqn", "Pong": "the published baselines"}
    assert labels.deviations(rows_of(compared, "log_dqn")) == []
    assert labels.deviations(rows_of(compared, "wide")) == ["batch size 64 (log_dqn: 32)"]
    assert labels.standard(compared.runs) == labels.standard(rows_of(compared, "wide")) == "log_dqn"

    write_small_runs(tmp_path, "dqn", 3)
    write_small_runs(tmp_path, "log_dqn", 3, **{"VectorizedRunner.batch_size": 64})
    compared, lines = compare(published, tmp_path, reference="dqn", agents=("log_dqn", "DQN"))
    [phrase] = labels.deviations(rows_of(compared, "log_dqn"))
    assert phrase == f"batch size 64 (dqn: 32) on {game}"
    assert f"log_dqn: not comparable with dqn: {phrase}" in lines
    assert labels.deviations(rows_of(compared, "log_dqn", ["Pong"])) == []
    assert labels.name(rows_of(compared, "log_dqn")) == "log_dqn \N{DAGGER}, 2 to 5 seeds"
    assert labels.name(rows_of(compared, "log_dqn", ["Pong"])) == "log_dqn, 5 seeds"
    assert labels.protocol_of(rows_of(compared, "log_dqn", ["Pong"])) == "same"
    assert tables.marked(compared.runs, ["Pong"]) == []


def test_runs_of_an_agent_that_differ_are_held_against_its_first(published, tmp_path):
    write_small_runs(tmp_path, "a", 3)
    write_small_runs(tmp_path, "a", 3, seeds=[2], **{"VectorizedRunner.batch_size": 64})
    write_small_runs(tmp_path, "b", 3, **{"VectorizedRunner.batch_size": 64})
    _, lines = compare(published, tmp_path, reference="a")
    assert "a: not comparable with its first run: batch size 64 (a: 32) in 1 of 3 runs" in lines
    assert "b: not comparable with a: batch size 64 (a: 32)" in lines


def test_without_baselines_the_last_agent_is_the_standard_and_stays(published, tmp_path):
    write_small_runs(tmp_path, "a", 3, **{"VectorizedRunner.batch_size": 64})
    write_small_runs(tmp_path, "b", 3)
    compared, lines = compare(published, tmp_path)
    assert (compared.request.reference, compared.main) == ("b", "a")
    assert "a: not comparable with b: batch size 64 (b: 32)" in lines
    compared, _ = compare(published, tmp_path, strict=True)
    assert [*compared.runs["agent"].unique()] == ["b"]
    write_small_runs(tmp_path, "c", 2)
    compared, lines = compare(published, tmp_path, iteration=2)  # Which c has not.
    assert (compared.request.reference, compared.main) == ("b", "a")
    assert "c: 2 runs have no scores after 600 agent steps; left out (MinAtar/Breakout)" in lines


def test_a_published_reference_is_not_replaced_on_games_without_baselines(published, tmp_path):
    for agent in ("log_dqn", "dqn"):
        write_small_runs(tmp_path, agent, 3)
    compared, lines = compare(published, tmp_path, reference="DQN")
    assert "DQN: no runs, own or published, on the games compared; left out" in lines
    assert (compared.reference, compared.main) == ("DQN", None)


def test_a_game_with_human_scores_alone_has_an_own_reference(tmp_path):
    """Dopamine published no runs of Defender."""
    for agent in ("log_dqn", "dqn"):
        write_runs(tmp_path, agent, ["Defender"], 10)
    compared, _ = compare(tmp_path, tmp_path)
    assert (compared.request.reference, compared.main) == ("dqn", "log_dqn")
    assert not compared.divides_by_best
    with pytest.raises(ValueError, match=r"^--games=Defender: no published runs, and no --results"):
        compare(tmp_path, games=("Defender",))
