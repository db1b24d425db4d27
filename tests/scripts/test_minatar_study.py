"""The study of discount factors, on tables worked by hand."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from minatar_study import analysis, inspection, tables
from minatar_study.figures import draw_curves

from log_dqn.results import discount, figures
from log_dqn.run_folder import checkpoints, data
from log_dqn.vectorized.runs import Events
from tests.results import synthetic

GAMMAS = (0.5, 0.9)


def table(values):
    """Rows from {(agent, gamma, game): scores by seed}."""
    rows = [
        ("main", agent, f"gamma={gamma}", gamma, game, seed, x)
        for (agent, gamma, game), scores in values.items()
        for seed, x in enumerate(scores, 1)
    ]
    columns = ["stage", "agent", "setting", "gamma", "game", "seed", "score"]
    return pd.DataFrame(rows, columns=columns)


# Best means: 10 on MinAtar/A (LogDQN, 0.9), 4 on MinAtar/B (DQN, 0.9).
SCORES = table(
    {
        ("log_dqn", 0.5, "MinAtar/A"): [7.0, 8.0, 9.0],
        ("log_dqn", 0.9, "MinAtar/A"): [10.0, 10.0, 10.0],
        ("dqn", 0.5, "MinAtar/A"): [2.0, 2.0, 2.0],
        ("dqn", 0.9, "MinAtar/A"): [6.0, 6.0, 6.0],
        ("log_dqn", 0.5, "MinAtar/B"): [2.0, 2.0, 2.0],
        ("log_dqn", 0.9, "MinAtar/B"): [3.0, 3.0, 3.0],
        ("dqn", 0.5, "MinAtar/B"): [1.0, 1.0, 1.0],
        ("dqn", 0.9, "MinAtar/B"): [4.0, 4.0, 4.0],
    }
)


def cell(rows, **wanted):
    for name, value in wanted.items():
        rows = rows[rows[name] == value]
    (row,) = rows.itertuples()
    return row


def test_scores_are_normalised_by_the_best_mean_on_their_game():
    assert discount.best_means(SCORES).to_dict() == {"MinAtar/A": 10.0, "MinAtar/B": 4.0}
    normalised = discount.normalise(SCORES)
    array = discount.array_of(normalised, "log_dqn", GAMMAS, ["MinAtar/A", "MinAtar/B"])
    np.testing.assert_allclose(array, [[[first, 1.0], [0.5, 0.75]] for first in (0.7, 0.8, 0.9)])


def test_statistics_by_discount_factor():
    rows = discount.by_gamma(SCORES, repetitions=2000)
    on_game = cell(rows, agent="log_dqn", gamma=0.5, game="MinAtar/A")
    # The mean of 7, 8 and 9; resampled, all may be any.
    assert (on_game.value, on_game.low, on_game.high) == pytest.approx((8.0, 7.0, 9.0))
    over = {"agent": "log_dqn", "gamma": 0.5, "game": "over games"}
    # (0.8 + 0.5) / 2; the middle four of 0.5, 0.5, 0.5, 0.7, 0.8, 0.9.
    assert cell(rows, **over, statistic="mean").value == pytest.approx(0.65)
    assert cell(rows, **over, statistic="iqm").value == pytest.approx(0.625)
    assert len(rows) == 2 * 2 * (2 + 2)


def test_a_discount_factor_with_fewer_seeds_leaves_the_others_their_intervals():
    without = [SCORES["seed"] == seed for seed in (1, 3)]
    for missing in without:
        some = SCORES[~((SCORES["gamma"] == 0.9) & missing)]
        rows, whole = (discount.by_gamma(of, repetitions=200) for of in (some, SCORES))
        at = {"agent": "log_dqn", "game": "MinAtar/A"}
        assert cell(rows, **at, gamma=0.5).low == cell(whole, **at, gamma=0.5).low
        assert np.isnan(cell(rows, **at, gamma=0.9).low)
        assert cell(rows, **at, gamma=0.9).value == 10.0
    # Seeds 2 to 4 beside 1 to 3.
    found = table({("dqn", 0.5, "A"): [1.0, 2.0, 3.0], ("dqn", 0.9, "A"): [0.0, 4.0, 5.0, 6.0]})
    rows = discount.by_gamma(found[found["score"] > 0], repetitions=2000)
    of_later = cell(rows, gamma=0.9, game="A")
    assert (of_later.value, of_later.low, of_later.high) == (5.0, 4.0, 6.0)


def test_settings_of_a_stage():
    rows = table({("dqn", gamma, "MinAtar/A"): [gamma, 3 * gamma] for gamma in GAMMAS})
    rows["setting"] += ",c=2"
    found = analysis.by_setting(pd.concat([rows, rows[:1].assign(setting="gamma=0.5,c=1")]))
    assert [tuple(row) for row in found[found.columns[:-2]].itertuples(index=False)] == [
        ("MinAtar/A", "dqn", "main", "c=1", 0.5, 1, 0.5),
        ("MinAtar/A", "dqn", "main", "c=2", 0.5, 2, 1.0),
        ("MinAtar/A", "dqn", "main", "c=2", 0.9, 2, pytest.approx(1.8)),
    ]
    assert found[["low", "high"]].isna().all(axis=None)
    of_three = analysis.by_setting(SCORES, repetitions=50)
    row = cell(of_three, agent="log_dqn", game="MinAtar/A", gamma=0.5)
    assert row.setting == "" and row.value == 8.0 and 7.0 <= row.low < 8.0 < row.high <= 9.0


@pytest.mark.parametrize(
    ("scanned", "name"),
    [
        ("gamma={}", ""), ("gamma={},c=2", "c=2"), ("c=2,gamma={}", "c=2"),
        ("c=2,gamma={},k=100", "c=2,k=100"), ("", ""),
    ],
)  # fmt: skip
def test_a_setting_is_named_without_its_discount_factor_wherever_that_stands(scanned, name):
    rows = table({("dqn", gamma, "MinAtar/A"): [10 * gamma] for gamma in GAMMAS})
    rows = rows.assign(setting=[scanned.format(gamma) for gamma in rows["gamma"]])
    shown = analysis.as_markdown(analysis.by_setting(rows)).splitlines()
    assert shown[2:] == [f"| MinAtar/A | dqn | main | {name} | 1 | 5 | 9 |"]
    assert analysis.means(rows).index.get_level_values("setting").unique().tolist() == [name]
    # As a whole setting, it has the runs of both discount factors.
    assert len(analysis.best_settings(rows)) == 2


def test_scores_of_runs_cut_short():
    name = dict(zip(tables.RUN, ("main", "MinAtar/Freeway", "dqn", "", 0.9), strict=False))
    curves = pd.DataFrame(
        {**name, "seed": seed, "iteration": iteration, "mean_return": 10.0 * seed + iteration}
        for iteration in reversed(range(20))
        for seed in (2, 1)
    )
    # Of 12 iterations the last two count, 10 and 11; of all 20 those that a score is made of.
    for num_iterations, last in ((12, 10.5), (20, 18.5), (1, 0.0)):
        found = tables.scores_after(curves, num_iterations)
        assert list(found) == [*tables.RUN, "score"]
        assert found["seed"].tolist() == [1, 2]
        assert found["score"].tolist() == [10 + last, 20 + last]
    assert tables.scores_after(curves, 21)["score"].isna().all()


def test_short_runs_beside_longer_ones():
    def run(stage, agent, setting, gamma, game, seed):
        return dict(zip(tables.RUN, (stage, game, agent, setting, gamma, seed), strict=True))

    def of_main(agent, gamma, seed, value):
        name = run("main", agent, f"gamma={gamma}", gamma, "MinAtar/Freeway", seed)
        # After two of three iterations the last one of the two counts.
        returns = (0.0, value, 99.0)
        return [
            {**name, "iteration": i, "mean_return": returned} for i, returned in enumerate(returns)
        ]

    curves = pd.DataFrame(
        [
            *of_main("log_dqn", 0.5, 1, 4.0),
            *of_main("dqn", 0.5, 1, 2.0),
            *of_main("dqn", 0.5, 4, 7.0),
            *of_main("dqn", 0.9, 1, 8.0),
        ]
    )
    short = pd.DataFrame(
        {**run("floor", "log_dqn", "gamma=0.5,k=6", 0.5, "MinAtar/Freeway", seed), "score": score}
        for seed, score in ((1, 5.0), (2, 50.0))
    )
    both = tables.beside(short, curves, 2)
    assert set(both["stage"]) == {"floor"} and set(both["seed"]) == {1}
    found = analysis.means(both)
    assert found["MinAtar/Freeway"].to_dict() == {
        (0.5, "dqn", ""): 2.0, (0.5, "log_dqn", ""): 4.0, (0.5, "log_dqn", "k=6"): 5.0,
    }  # fmt: skip
    assert found["mean"].tolist() == [0.4, 0.8, 1.0]
    # No seed is in both.
    assert tables.beside(short[short["seed"] == 2], curves, 2).empty


def test_the_two_claims():
    rows = analysis.claims(SCORES, repetitions=2000)
    # LogDQN 0.65 and 0.875, DQN (0.2 + 0.25) / 2 and (0.6 + 1) / 2.
    at_low = cell(rows, claim="at gamma 0.5", game="over games")
    assert at_low.value == pytest.approx(0.65 - 0.225)
    assert (at_low.low, at_low.high) == pytest.approx((0.6 - 0.225, 0.7 - 0.225))
    on_a = cell(rows, claim="at gamma 0.5", game="MinAtar/A")
    assert (on_a.value, on_a.low, on_a.high) == pytest.approx((0.8 - 0.2, 0.7 - 0.2, 0.9 - 0.2))
    best = "each at the gamma that is best over games (0.9 and 0.9)"
    for claim in ("at gamma 0.9", best):
        for game, value in (("MinAtar/A", 1 - 0.6), ("over games", 0.875 - 0.8)):
            assert cell(rows, claim=claim, game=game).value == pytest.approx(value)
    # 0.5 alone, of 8 and 2: there is nothing to choose.
    at_one = analysis.claims(SCORES[SCORES["gamma"] == 0.5], repetitions=2)
    assert list(at_one["claim"]) == ["at gamma 0.5"] * 3
    assert list(at_one["value"]) == pytest.approx([1 - 2 / 8, 1 - 1 / 2, 1 - (1 / 4 + 1 / 2) / 2])


def test_the_best_gamma_is_chosen_over_games_or_on_each_and_again_in_each_sample():
    rows = analysis.claims(
        table(
            {
                # Over games, of 8 and 4: (0.5 + 1) / 2 at 0.5, (0.6 + 0.25) / 2 at 0.9.
                ("log_dqn", 0.5, "MinAtar/A"): [0.0, 6.0, 6.0],
                ("log_dqn", 0.9, "MinAtar/A"): [4.8, 4.8, 4.8],
                ("log_dqn", 0.5, "MinAtar/B"): [4.0, 4.0, 4.0],
                ("log_dqn", 0.9, "MinAtar/B"): [1.0, 1.0, 1.0],
                ("dqn", 0.5, "MinAtar/A"): [0.0, 0.0, 0.0],
                ("dqn", 0.9, "MinAtar/A"): [8.0, 8.0, 8.0],
                ("dqn", 0.5, "MinAtar/B"): [3.0, 3.0, 3.0],
                ("dqn", 0.9, "MinAtar/B"): [2.0, 2.0, 2.0],
            }
        ),
        repetitions=2000,
    )
    best = "each at the gamma that is best over games (0.5 and 0.9)"
    over = cell(rows, claim=best, game="over games")
    assert over.value == pytest.approx(0.75 - 0.75)
    assert cell(rows, claim=best, game="MinAtar/A").value == pytest.approx(0.5 - 1)
    # Seeds 1 alone have (0 + 1) / 2 at 0.5, still above 0.425.
    assert (over.low, over.high) == pytest.approx((0.5 - 0.75, 0.875 - 0.75))
    best = "each at the gamma that is best on each game"
    assert cell(rows, claim=best, game="MinAtar/A").value == pytest.approx(0.6 - 1)
    each = cell(rows, claim=best, game="over games")
    assert each.value == pytest.approx((0.6 + 1) / 2 - (1 + 0.75) / 2)
    # On A, 0.9 is the better where 0.5 has 0 or 2; it has 6 at most.
    assert (each.low, each.high) == pytest.approx((0.8 - 0.875, 0.875 - 0.875))


def test_fewer_than_three_seeds_have_no_intervals():
    two = SCORES[SCORES["seed"] < 3]
    rows = discount.by_gamma(two, repetitions=50)
    on_game = cell(rows, agent="log_dqn", gamma=0.5, game="MinAtar/A")
    assert on_game.value == pytest.approx(7.5) and np.isnan([on_game.low, on_game.high]).all()
    claims = analysis.claims(two, repetitions=50)
    assert claims[["low", "high"]].isna().all(axis=None)
    shown = analysis.as_markdown(claims, "game").splitlines()
    assert shown[0] == "| claim | MinAtar/A | MinAtar/B | over games |"
    assert "| at gamma 0.9 | 0.4 | -0.25 | 0.075 |" in shown


def test_figures_show_what_the_tables_hold():
    figure = figures.gamma_panels(discount.by_gamma(SCORES), tables.AGENTS)
    first, second, over = (axes for axes in figure.axes if axes.get_visible())
    assert [axes.get_title() for axes in (first, second)] == ["A", "B"]
    assert "IQM" in over.get_title()
    log_dqn, dqn = first.lines
    np.testing.assert_allclose(log_dqn.get_ydata(), [8.0, 10.0])
    np.testing.assert_allclose(dqn.get_ydata(), [2.0, 6.0])
    band = first.collections[0].get_paths()[0].get_extents()
    # From the least at 0.5 to those at 0.9.
    assert (band.y0, band.y1) == pytest.approx((7.0, 10.0))
    curves = pd.concat(
        [SCORES.assign(iteration=i, mean_return=SCORES["score"] * (i + 1)) for i in range(2)]
    )
    figure = draw_curves(curves, steps_per_iteration=500_000)
    assert [axes.get_title() for axes in figure.axes] == ["gamma 0.5", "gamma 0.9", "", ""]
    mean = next(line for line in figure.axes[0].lines if line.get_label() == "LogDQN")
    np.testing.assert_allclose(mean.get_xdata(), [0.5, 1.0])
    np.testing.assert_allclose(mean.get_ydata(), [8.0, 16.0])
    low, high = figure.axes[0].get_ylim()  # LogDQN has 2 x 10 in the other panel of the row.
    assert low == 0 and high > 20


def config(gamma):
    return f'{{"VectorizedLogDQNAgent.gamma": {gamma}, "VectorizedRunner.num_iterations": 20}}'


def test_runs_are_collected_from_their_folders(tmp_path):
    returns = [float(i) for i in range(20)]
    for agent, seed, values, text in (
        ("log_dqn/gamma=0.5", "3", returns, config(0.5)),
        ("log_dqn/gamma=0.5", "x", returns, config(0.5)),
        ("log_dqn/gamma=0.9", "3", returns[:7], config(0.9)),
        ("log_dqn/gamma=0.9", "4", returns, "{"),
        ("rainbow/gamma=0.9", "4", returns, config(0.9)),
    ):
        folder = tmp_path / agent / "MinAtar-Breakout" / seed
        synthetic.write_log(folder, values)
        (folder / "config.json").write_text(text)
    notes = []
    scores, curves = tables.collect(tmp_path, "main", notes.append)
    (row,) = scores.itertuples()
    assert list(scores)[:-1] == tables.RUN
    assert (row.stage, row.agent, row.gamma, row.game, row.seed, row.setting, row.score) == (
        "main", "log_dqn", 0.5, "MinAtar/Breakout", 3, "gamma=0.5", 18.5,
    )  # fmt: skip
    assert curves["mean_return"].tolist() == returns
    assert curves["iteration"].tolist() == list(range(20))
    assert "log_dqn/gamma=0.9/MinAtar-Breakout/4/config.json: damaged" in notes.pop(0)
    assert notes == [
        "log_dqn/gamma=0.5 MinAtar/Breakout x: its seed is not a number; left out",
        "log_dqn/gamma=0.9 MinAtar/Breakout 3: not finished; left out",
        "log_dqn/gamma=0.9 MinAtar/Breakout 4: no discount factor in its config.json; left out",
        "rainbow/gamma=0.9 MinAtar/Breakout 4: its agent is not loglin_dqn or log_dqn or dqn; "
        "left out",
    ]
    shutil.rmtree(tmp_path / "log_dqn/gamma=0.5")
    with pytest.raises(ValueError, match="no finished runs"):
        tables.collect(tmp_path, "main", notes.append)


@pytest.mark.parametrize(
    ("runs", "run", "difference"),
    [
        # The first is of a version that didn't have the parameter yet.
        (
            [("gamma=0.5", "3", 0.5, {}), ("gamma=0.8", "3", 0.8, {"learning_rate": 0.1}),
             ("gamma=0.9", "3", 0.9, {"learning_rate": 0.2})],
            "dqn/gamma=0.9 MinAtar/Breakout 3", "learning_rate was 0.1 and is 0.2",
        ),
        (
            [("gamma=0.5", "3", 0.5, {}), ("gamma=0.5", "4", 0.8, {})],
            "dqn/gamma=0.5 MinAtar/Breakout 4", "gamma was 0.5 and is 0.8",
        ),
    ],
)  # fmt: skip
def test_runs_of_other_configurations_are_no_stage(tmp_path, runs, run, difference):
    for setting, seed, gamma, others in runs:
        folder = tmp_path / "dqn" / setting / "MinAtar-Breakout" / seed
        synthetic.write_log(folder, [1.0])
        parameters = {"gamma": gamma, **others}
        named = {f"VectorizedDQNAgent.{name}": value for name, value in parameters.items()}
        (folder / "config.json").write_text(json.dumps(named))
    message = f"{run} has another configuration than the runs before it: VectorizedDQNAgent."
    with pytest.raises(ValueError, match=f"^{message}{difference}$"):
        tables.collect(tmp_path, "main", print)


def test_a_run_that_was_collected_again_replaces_its_row():
    new = SCORES.head(1).assign(score=8.5)
    merged = tables.merge(SCORES.iloc[::-1], new)
    assert len(merged) == len(SCORES)
    of_run = merged[(merged["agent"] == "log_dqn") & (merged["game"] == "MinAtar/A")]
    assert of_run["score"].tolist() == [8.5, 8.0, 9.0, 10.0, 10.0, 10.0]
    curves = pd.concat([new.assign(iteration=i) for i in (0, 1)])
    assert len(tables.merge(curves, curves)) == 2


def test_runs_without_a_scan_are_told_apart_in_a_file_too(tmp_path):
    path = tmp_path / "scores.csv"
    new = SCORES.assign(setting="")[list(tables.SCORES)]
    new.to_csv(path, index=False)
    read = tables.read_table(path, tables.SCORES)
    assert read.equals(new)
    assert len(tables.merge(read, new)) == len(new)
    assert len(analysis.by_setting(read, repetitions=2)) == len(new) / 3


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "No columns to parse"),
        ("a,b\n1,2\n", "the columns are a, b; they must be stage, game, agent, setting, gamma, "),
        ("stage,game,agent,setting,gamma,seed,score\nmain,A,dqn,,0.5,1,many\n", "many"),
        ("stage,game,agent,setting,gamma,seed,score\nmain,A,dqn,,0.5,1.5,2\n", "invalid .* '1.5'"),
        (
            "stage,game,agent,setting,gamma,seed,score\nmain,A,dqn,,0.5,1,inf\n",
            "has a number that is not finite: stage main, game A, agent dqn",
        ),
        (
            "stage,game,agent,setting,gamma,seed,score\nmain,A,rainbow,,0.5,1,2\n",
            "has another agent than .*: stage main, game A, agent rainbow",
        ),
        (
            "stage,game,agent,setting,gamma,seed,score\n" + "main,A,dqn,,0.5,1,2\n" * 2,
            "has a row twice: stage main, game A, agent dqn, setting , gamma 0.5, seed 1$",
        ),
    ],
)
def test_tables_that_are_refused(tmp_path, text, fault):
    path = tmp_path / "scores.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"{path}.*{fault}"):
        tables.read_table(path, tables.SCORES)


def test_a_run_with_a_score_has_a_curve():
    curves = _curves_of(SCORES)
    tables.check_curves(SCORES, curves)
    lacks = (curves["seed"] == 2) & (curves["agent"] == "dqn")
    first = "stage main, game MinAtar/A, agent dqn, setting gamma=0.5, gamma 0.5, seed 2"
    with pytest.raises(ValueError, match=f"^4 runs have a score but no curve, first {first}; "):
        tables.check_curves(SCORES, curves[~lacks])


def _curves_of(table):
    """Returns curves of two iterations, of which the last is the score."""
    points = [table.assign(iteration=i, mean_return=i * table["score"]) for i in (0, 1)]
    return pd.concat(points, ignore_index=True)


@pytest.mark.parametrize("fault", ["another return", "an iteration that is missing"])
def test_a_score_is_that_of_its_curve(fault):
    curves = _curves_of(SCORES)
    of_last = curves.index[-1]
    if fault == "another return":
        curves.loc[of_last, "mean_return"] += 0.01
    else:
        curves.loc[of_last, "iteration"] = 2
    last = "stage main, game MinAtar/B, agent dqn, setting gamma=0.9, gamma 0.9, seed 3"
    with pytest.raises(ValueError, match=f"^the score and the curve of {last} don't belong"):
        tables.check_curves(SCORES, curves)


def test_seeds_of_which_a_run_is_missing_are_left_out():
    missing = (SCORES["seed"] == 2) & (SCORES["agent"] == "dqn") & (SCORES["gamma"] == 0.9)
    whole, left_out = tables.whole(SCORES[~missing])
    assert left_out == ["dqn's seeds [2]"] and len(whole) == 20
    of_agents = {agent: sorted(set(seeds)) for agent, seeds in whole.groupby("agent")["seed"]}
    assert of_agents == {"dqn": [1, 3], "log_dqn": [1, 2, 3]}
    assert tables.whole(SCORES)[1] == []


def test_games_that_an_agent_lacks_at_a_discount_factor_are_left_out():
    lacks = (SCORES["game"] == "MinAtar/A") & (SCORES["agent"] == "dqn")
    rows, left_out = tables.whole(SCORES[~(lacks & (SCORES["gamma"] == 0.9))])
    assert left_out == ["MinAtar/A"]
    assert len(rows) == 12 and set(rows["game"]) == {"MinAtar/B"}


def test_a_third_agent():
    third = SCORES[SCORES["agent"] == "dqn"].assign(agent="loglin_dqn")
    of_three = pd.concat([SCORES, third.assign(score=2 * third["score"])])
    assert tables.present(of_three) == ["loglin_dqn", "log_dqn", "dqn"]
    assert tables.whole(of_three)[1] == []
    # The best means are the third's, 12 and 8.
    rows = analysis.claims(of_three, "loglin_dqn", "dqn", repetitions=20)
    assert cell(rows, claim="at gamma 0.9", game="MinAtar/A").value == pytest.approx(1 - 6 / 12)
    figure = figures.gamma_panels(discount.by_gamma(of_three, 20), tables.AGENTS)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["LogLinDQN", "LogDQN", "DQN"]


def test_an_agents_best_setting_is_the_best_over_games():
    """DQN has two: of the best means of a game, 0.5 and 1 to 1 and 0.75."""
    one = SCORES[SCORES["gamma"] == 0.9]
    dqn = one["agent"] == "dqn"
    of_games = [
        one[dqn].assign(
            setting=setting, score=one[dqn]["game"].map({"MinAtar/A": a, "MinAtar/B": b})
        )
        for setting, a, b in (("gamma=0.9", 20.0, 40.0), ("gamma=0.9,n=3", 40.0, 30.0))
    ]
    found = analysis.best_settings(pd.concat([one[~dqn], *of_games]))
    settings = found.groupby("agent")["setting"].unique().map(list).to_dict()
    assert settings == {"log_dqn": ["gamma=0.9"], "dqn": ["gamma=0.9,n=3"]}
    assert len(found) == len(one)
    # Three steps on half the games alone, or LogDQN of one seed.
    part = pd.concat([one[~dqn & (one["seed"] == 1)], of_games[0], of_games[1][:3]])
    found = analysis.best_settings(part)
    assert len(found) == 2 + 6 and set(found["setting"]) == {"gamma=0.9"}


def test_gradients_beside_the_epsilon_of_rmsprop(tmp_path):
    folder = tmp_path / "log_dqn" / "gamma=0.9,epsilon=0.001" / "MinAtar-Breakout" / "1"
    (folder / "logs").mkdir(parents=True)
    config = {"VectorizedLogDQNAgent.gamma": 0.9, "rmsprop_tf.epsilon": 0.001}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="no runs with RMSProp"):
        inspection.gradients(tmp_path, print)
    weights, target = [np.ones((2, 1)), np.ones(2)], [np.zeros((2, 1)), np.zeros(2)]
    mean = [np.array([[0.1], [0.0]]), np.array([0.2, 0.0])]
    square = [np.array([[0.05], [1e-6]]), np.array([0.0406, 0.0095])]
    checkpoints.write(
        folder / "checkpoints", 0,
        lambda place: data.save(place / "weights", [*weights, *target, *mean, *square]), {},
    )  # fmt: skip
    (row,) = inspection.gradients(tmp_path, print).itertuples()
    assert (row.game, row.agent, row.gamma, row.epsilon) == (
        "MinAtar/Breakout", "log_dqn", 0.9, 0.001,
    )  # fmt: skip
    # Variances 0.04, 1e-6, 0.0006 and 0.0095; the mean of the squares is 0.02502525.
    assert row.above == 0.5
    assert row.rms == pytest.approx(np.sqrt(0.02502525))


def test_gradients_of_a_tensorflow_agent(tmp_path):
    folder = tmp_path / "dqn" / "Pong" / "1"
    (folder / "logs").mkdir(parents=True)
    config = {"DQNAgent.gamma": 0.99, "RMSPropOptimizer.epsilon": 0.5}
    (folder / "config.json").write_text(json.dumps(config))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        weights = tf.compat.v1.get_variable("Online/weights", initializer=[0.0, 0.0])
        optimizer = tf.compat.v1.train.RMSPropOptimizer(1, decay=0.5, epsilon=0.5, centered=True)
        step = optimizer.apply_gradients([(tf.constant([1.0, 3.0]), weights)])
        session.run(tf.compat.v1.global_variables_initializer())
        for _ in range(2):
            session.run(step)
        saver = tf.compat.v1.train.Saver()
        checkpoints.write(
            folder / "checkpoints", 0,
            lambda place: saver.save(session, str(place / "weights"), write_meta_graph=False), {},
        )  # fmt: skip
    (row,) = inspection.gradients(tmp_path, print).itertuples()
    assert (row.game, row.agent, row.gamma, row.epsilon) == ("Pong", "dqn", 0.99, 0.5)
    # Squares start at 1, gradients at 0: variances 1 - (3/4)^2 and 1/4 + 27/4 - (9/4)^2.
    assert row.above == 0.5
    assert row.rms == pytest.approx(2)


def test_values_beside_their_bound(tmp_path):
    folder = tmp_path / "log_dqn" / "gamma=0.9,c=2" / "MinAtar-Breakout" / "1"
    (folder / "logs").mkdir(parents=True)
    config = {"VectorizedLogDQNAgent.gamma": 0.9, "VectorizedRunner.training_steps": 5000}
    (folder / "config.json").write_text(json.dumps(config))
    # DQN has no such values, which nobody needs to be told.
    (tmp_path / "dqn" / "MinAtar-Breakout" / "1" / "logs").mkdir(parents=True)
    said = []
    with pytest.raises(ValueError, match="no runs with Values/QPlus"):
        inspection.values(tmp_path, said.append)
    assert said == [
        "log_dqn/gamma=0.9,c=2 MinAtar-Breakout 1: no Train/AverageReturns or Values/QPlus or "
        "Values/Clipped in its events; left out"
    ]
    events = Events(folder)
    for number in range(20):
        q_plus, clipped = [1.0, 7.0, 9.0][max(0, number - 17)], 0.8 * (number > 14)
        events.write({"Values/QPlus": q_plus, "Values/Clipped": clipped}, 500 * number)
    with pytest.raises(ValueError, match="no runs with Values/QPlus"):  # No iteration is over.
        inspection.values(tmp_path, said.append)
    for iteration in range(2):
        events.write({"Train/AverageReturns": 3.0 + iteration}, iteration)
    events.close()
    found = inspection.values(tmp_path, print)
    (row,) = found.itertuples(index=False)
    # The last tenth are the last two values, and the last of two iterations. An iteration ends with
    # its 5,000th step: the second has 5 of 9.
    run = ("MinAtar/Breakout", "log_dqn", "gamma=0.9,c=2")
    assert tuple(row) == (*run, 4.0, 8.0, pytest.approx(10), pytest.approx(4 / 9))
    # A run by itself has another name for its steps, and one without any is left out.
    config["Runner.training_steps"] = config.pop("VectorizedRunner.training_steps")
    (folder / "config.json").write_text(json.dumps(config))
    assert inspection.values(tmp_path, print).equals(found)
    del config["Runner.training_steps"]
    for damaged in (False, True):
        (folder / "config.json").write_text("{" if damaged else json.dumps(config))
        with pytest.raises(ValueError, match="no runs with Values/QPlus"):
            inspection.values(tmp_path, said.append)
        assert said[-1].endswith("1: no training_steps in its config.json; left out")
    assert f"{folder / 'config.json'}: damaged;" in said[-2]


def test_runs_that_ended_at_their_bound_and_those_that_are_told_of():
    rows = pd.DataFrame({"q_plus": [8.0, 7.9, 9.0, 1.0], "clipped": [1.0, 1.0, 0.0, 0.0]})
    said = inspection.told(rows.assign(bound=10.0))
    assert said.startswith("2 runs of 4 ended at 0.8 of the bound or more; 1 of these and 1 others")


def test_a_table_as_markdown():
    rows = pd.DataFrame(
        [("at gamma 0.5", 0.4251, 0.3, 0.5)], columns=["claim", "value", "low", "high"]
    )
    assert analysis.as_markdown(rows) == (
        "| claim | value |\n| --- | --- |\n| at gamma 0.5 | 0.425 (0.3 to 0.5) |\n"
    )
    # No zero has a sign.
    rows = rows.assign(value=0.0041, low=-0.0049)
    assert "| at gamma 0.5 | 0.00 (0.00 to 0.50) |" in analysis.as_markdown(rows, form=".2f")


def test_a_table_as_markdown_has_a_column_for_each_discount_factor():
    nan = np.nan
    rows = pd.DataFrame(
        [("a", 0.5, 1.0, 0.9, 1.1), ("b", 0.5, 2.0, nan, nan), ("b", 0.9, 3.0, nan, nan)],
        columns=["setting", "gamma", "value", "low", "high"],
    )
    assert analysis.as_markdown(rows).splitlines() == [
        "| setting | 0.5 | 0.9 |", "| --- | --- | --- |", "| a | 1 (0.9 to 1.1) | - |",
        "| b | 2 | 3 |",
    ]  # fmt: skip
