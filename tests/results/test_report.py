"""The figures' parts that carry meaning, and the gamma scan."""

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba
from PIL import Image
from scipy import stats

from log_dqn.results import (
    comparison,
    discount,
    export,
    figures,
    labels,
    pictures,
    protocol,
    remarks,
    report,
    request,
)  # fmt: skip
from log_dqn.results.protocol import PUBLISHED
from log_dqn.results.statistics import Interval
from tests.results import synthetic

GAMES = ["Alien", "Pong", "Zaxxon"]


def run(agent, game="Pong", seed="0", returns=(0.0,) * 10, normalised=1.0, **more):
    """A row of the table of runs."""
    random, human = synthetic.REFERENCES.get(game, (np.nan, np.nan))
    return {
        "agent": agent, "game": game, "seed": seed, "own": True, "returns": np.array(returns),
        "length": 10**6, "trained": len(returns) * 10**6, "until": np.nan, "apart": False,
        "standard": "", "differs": (), "protocol": PUBLISHED, "agent_class": "LogDQNAgent",
        "gamma": np.nan, "score": normalised, "normalised": normalised,
        "random": random, "human": human,
    } | more  # fmt: skip


def made(runs, reference="DQN", divides_by_best=False):
    asked = comparison.Request(repetitions=20, reference=reference)
    return comparison.Comparison(asked, pd.DataFrame(runs), divides_by_best, notices=[])


NOTHING = pictures.Results(pd.DataFrame(columns=["relative", "low", "high"]), {}, {}, {}, {}, [])
DRAW = {name: draw for name, (_, draw) in pictures.PICTURES.items()}


def figure_of(name, runs, **results):
    """A figure of some runs and some results."""
    return DRAW[name](made(runs), NOTHING._replace(**results)).figure


def test_gamma_points_take_the_best_agent_of_each_class_and_gamma():
    normalised = {
        ("log_c1", 0.9): (1.0, 3.0), ("log_c2", 0.9): (1.5, 2.0), ("log_c1_99", 0.99): (0.5, 0.7),
        ("DQN", None): (0.2, 0.4), ("other", None): (9.0, 9.0),
    }  # fmt: skip
    runs = [
        run(agent, game, normalised=value, gamma=gamma)
        for (agent, gamma), values in normalised.items()
        for game, value in zip(["Alien", "Zaxxon", "Pong"], [*values, 50.0], strict=True)
    ]
    scan = discount.participants(pd.DataFrame(runs))
    assert {*scan["game"]} == {"Alien", "Zaxxon"}  # Pong is not one of the six.
    points = discount.points(scan)
    assert [*points["agent_class"]] == ["LogDQNAgent", "LogDQNAgent", "DQN"]
    expected = [(0.9, 2, 2, 2), (0.99, 0.6, 0.6, 1), (0.99, 0.3, 0.3, 1)]
    np.testing.assert_allclose(points.drop(columns="agent_class").to_numpy(), expected)
    assert discount.caption(points) == (
        "best mean and best median, each over the 2 agents of LogDQNAgent at 0.9; else one agent"
    )
    left, right = figure_of("gamma", runs).axes
    assert (left.get_title(), right.get_title()) == ("Mean over 2 games", "Median over 2 games")
    assert left.lines[0].get_xydata().tolist() == [[0.9, 2], [0.99, 0.6]]


def gamma_runs(*rows):
    """The table of runs from (agent, gamma, game)."""
    return pd.DataFrame([run(agent, game, gamma=gamma) for agent, gamma, game in rows])


SCAN = [(f"log_{g}", g, game) for g in (0.9, 0.99) for game in ("Alien", "Zaxxon")]


def test_an_agent_without_the_six_games_does_not_cost_the_gamma_figure():
    runs = gamma_runs(*SCAN, ("pong", 0.5, "Pong"), ("half", 0.8, "Alien"))
    scan = discount.participants(runs)
    found = scan[["agent", "gamma", "game"]].to_numpy().tolist()
    assert found == [[agent, gamma, game] for agent, gamma, game in SCAN]
    assert discount.participants(gamma_runs(("a", 0.96, "Alien"))).empty


def test_the_same_run_in_two_folders_is_one_seed():
    names = [("log_dqn", 0.96), ("log_dqn/gamma=0.96", 0.96), ("log_dqn/gamma=0.5", 0.5)]
    found = discount.scanned(gamma_runs(*((name, gamma, "Pong") for name, gamma in names)))
    assert found[["agent", "gamma", "seed"]].values.tolist() == [
        ["log_dqn", 0.96, "0"],
        ["log_dqn", 0.5, "0"],
    ]


def test_other_runs_of_a_seed_in_two_folders_are_one_seed_too():
    """Another machine's run of the same seed has other returns."""
    runs = gamma_runs(("dqn", 0.96, "Pong"), ("dqn/gamma=0.96", 0.96, "Pong"))
    runs["score"] = [5.0, 7.0]
    assert discount.scanned(runs)["score"].tolist() == [5]


def test_means_at_each_discount_factor_worked_by_hand():
    """Best means: 4 on Alien (log_dqn at 0.9), 20 on Pong (log_dqn at 0.5)."""
    returns = {
        ("log_dqn", 0.5, "Alien"): [1, 2, 3], ("log_dqn", 0.5, "Pong"): [10, 20, 30],
        ("log_dqn", 0.9, "Alien"): [4, 4, 4], ("log_dqn", 0.9, "Pong"): [1, 1, 1],
        ("dqn", 0.9, "Alien"): [1, 3], ("dqn", 0.9, "Pong"): [2, 4],
    }  # fmt: skip
    rows = [(*key, score) for key, scores in returns.items() for score in scores]
    table = pd.DataFrame(rows, columns=["agent", "gamma", "game", "score"])
    table["normalised"] = table["score"] / table["game"].map({"Alien": 4, "Pong": 20})
    found = discount.by_gamma(table)
    values = found.set_index(["agent", "gamma", "game"])[["value", "low", "high"]]
    # Standard deviations 1 and 10, divided by 4 and 20: halves of 1/4 and 1/2, three seeds each.
    ofs = np.array([1 / 8, 1 / 4]) ** 2 / 3
    half = stats.t.ppf(0.975, ofs.sum() ** 2 / (ofs**2 / 2).sum()) * np.sqrt(ofs.sum())
    over = values.loc["log_dqn", 0.5, discount.OVER_GAMES]
    np.testing.assert_allclose(over, [0.75, 0.75 - half, 0.75 + half])
    alien = stats.t.ppf(0.975, 2) / np.sqrt(3)
    np.testing.assert_allclose(values.loc["log_dqn", 0.5, "Alien"], [2, 2 - alien, 2 + alien])
    # Two seeds have a mean, and no interval.
    two = values.loc["dqn", 0.9, discount.OVER_GAMES]
    np.testing.assert_allclose(two, [(2 / 4 + 3 / 20) / 2, np.nan, np.nan])


def test_over_games_the_scores_of_the_other_tables_are_averaged():
    """They may be divided by the mean of an agent without a known discount factor."""
    runs = gamma_runs(("a", 0.5, "Pong"), ("a", 0.9, "Pong"))
    runs = runs.assign(score=[5.0, -10.0], normalised=[0.25, -0.5])
    found = discount.by_gamma(discount.scanned(runs))
    over = found[found["game"] == discount.OVER_GAMES]
    assert over[["gamma", "value"]].to_numpy().tolist() == [[0.5, 0.25], [0.9, -0.5]]


def test_two_gammas_in_one_folder_are_said():
    runs = gamma_runs(("a", 0.9, "Alien"), ("a", 0.99, "Zaxxon"))
    assert discount.participants(runs).empty
    said = (
        "a: its runs have different discount factors (0.9, 0.99) and are averaged as one agent's; "
    )
    for by_best, end in ((False, "it is not in the gamma"), (True, "the gamma figure takes them")):
        *_, line = remarks.lines(runs, runs[:0], "human scores", by_best)
        assert line.startswith(said + end)


def test_a_scan_in_one_folder_has_its_seeds_at_each_discount_factor():
    runs = gamma_runs(*(("a", gamma, "Pong") for gamma in (0.9, 0.9, 0.99, 0.99)))
    runs["seed"] = ["0", "1", "0", "1"]
    compared = made(runs, divides_by_best=True)
    [text] = DRAW["gamma"](compared, NOTHING).figure.legends[0].get_texts()
    assert text.get_text() == "a, 2 seeds"
    assert export._gamma(compared)["agents"]["a"][0]["gamma"] == 0.9


def test_other_discount_factors_on_each_game_have_no_mean_over_games():
    runs = gamma_runs(
        ("a", 0.5, "Alien"), ("a", 0.9, "Pong"), ("b", 0.96, "Alien"), ("b", 0.99, "Pong")
    )  # fmt: skip
    shown = DRAW["gamma"](made(runs, divides_by_best=True), NOTHING)
    assert [panel.get_title() for panel in shown.figure.axes] == ["Alien", "Pong"]
    assert "over games" not in shown.caption + shown.alternative


def test_an_agent_with_a_leading_underscore_is_in_the_legend():
    [text] = figure_of("learning_curves", [run("_mine")]).legends[0].get_texts()
    assert text.get_text() == " _mine, 1 seed"


def test_bar_colours_are_the_papers():
    found = [pictures.bar_colour(x) for x in (0.51, -3.0, 0.5, -0.1, 0.3, 0.09, -0.0999, 0.0)]
    blues = [pictures.DARK_BLUE] * 3 + [pictures.LIGHT_BLUE] * 3
    assert found == [pictures.ORANGE] * 2 + blues


def looks(*agents):
    return labels.looks(dict.fromkeys(agents, ""))


def test_agents_differ_in_colour_or_marker():
    agents = [f"agent {index}" for index in range(64)]
    assert len({look[1:3] for look in labels.looks(dict.fromkeys(agents, "")).values()}) == 64
    # Published ones, LogDQN and LogLinDQN in both; these, own and published DQN in colour.
    found = looks("log_dqn", "loglin_dqn", *request.AGENTS).values()
    assert len({look.colour for look in found}) == len({look.marker for look in found}) == 8
    found = looks("dqn", "DQN", "log_dqn", "loglin_dqn").values()
    assert len({look.colour for look in found}) == 4


@pytest.mark.parametrize("picture", ["learning_curves", "aggregates"])
def test_an_agent_has_its_colour_and_marker(picture):
    agents = ["log_dqn", "mine", "C51"]
    runs = [run(agent, returns=np.arange(10.0)) for agent in agents]
    of_agents = dict.fromkeys(agents, interval([1, 2, 3, 4]))
    axes = figure_of(picture, runs, aggregates=of_agents).axes[0]
    points = [line for line in axes.lines if line.get_marker() != "None"]
    found = [(line.get_color(), line.get_marker()) for line in points]
    assert found == [(look.colour, look.marker) for look in looks(*agents).values()]
    # They are the same in every report.
    assert labels.looks({"C51": ""})["C51"] == looks(*agents)["C51"]


def test_relative_bars():
    relative = [(2.0, 1.5, 2.75), (-0.3, -0.6, -0.2), (0.05, np.nan, np.nan)]
    columns, games = ["relative", "low", "high"], ["Pong", "Alien", "Qbert"]
    relative = pd.DataFrame(relative, columns=columns, index=games)
    runs = [run(agent, game) for agent in ("IQN", "DQN") for game in games]
    figure = figure_of("relative", runs, relative=relative)
    [axes] = figure.axes
    assert [bar.get_height() for bar in axes.patches] == [-30, 5, 200]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["Alien", "Qbert", "Pong"]
    colours = (pictures.DARK_BLUE, pictures.LIGHT_BLUE, pictures.ORANGE)
    assert [bar.get_facecolor() for bar in axes.patches] == [to_rgba(c) for c in colours]
    legend = [to_rgba(patch.get_facecolor()) for patch in figure.legends[0].get_patches()]
    assert legend == [to_rgba(pictures.bar_colour(size)) for size in (0.6, 0.3, 0.05)]
    assert (
        axes.get_title(loc="left")
        == "IQN, 1 seed\nrelative to DQN (TensorFlow: RMSProp, Huber), 1 seed; 3 games"
    )
    [errors] = axes.collections
    found = [segment[:, 1].tolist() for segment in errors.get_segments()]
    np.testing.assert_allclose(found, [[-60, -20], [5, 5], [150, 275]])
    figure.canvas.draw()
    top, bottom = axes.get_ylim()[1], axes.get_ylim()[0]
    inside = axes.transData.inverted()
    for text in axes.texts:  # Each number lies within the axes.
        box = text.get_window_extent().transformed(inside)
        assert bottom < box.y0 and (box.y1 < top or text.get_text() == "")


def test_learning_curves_show_mean_and_range():
    nan = np.nan
    returns = [[1.0, 2.0, nan], [3.0, nan, nan], [2.0, nan, nan]]
    runs = [run("a", seed=str(seed), returns=values) for seed, values in enumerate(returns)]
    runs += [run("C51", seed=str(seed), returns=values) for seed, values in enumerate(returns[:2])]
    figure = figure_of("learning_curves", [*runs, run("a", "Alien")])
    axes = figure.axes[1]
    np.testing.assert_array_equal(axes.lines[0].get_xydata(), [(1e6, 2), (2e6, 2), (3e6, nan)])
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == 1 and band[:, 1].max() == 3
    # Two seeds have no band.
    assert axes.collections[1].get_paths() == []
    [legend] = figure.legends
    assert [t.get_text() for t in legend.get_texts()] == ["a, 1 to 3 seeds", "C51, 2 seeds"]
    assert figure.get_supxlabel() == "emulator frames (an agent step is 4 frames)"


def test_a_band_ends_with_the_third_longest_run():
    # An iteration without an episode has no return.
    of_seeds = [(np.nan, 0.0), (0.0, 2.0, 0.0, 10.0), (0.0, 1.0, 0.0, 10.0)]
    runs = [run("a", seed=str(seed), returns=values) for seed, values in enumerate(of_seeds)]
    axes = figure_of("learning_curves", runs).axes[0]
    assert axes.lines[0].get_ydata().tolist() == [0, 1, 0, 10]
    [band] = axes.collections[0].get_paths()
    assert band.vertices.min(axis=0).tolist() == [1e6, 0]
    assert band.vertices.max(axis=0).tolist() == [2e6, 2]


def over_frames(curve, names, protocol=PUBLISHED):
    runs = [run("a", protocol=protocol)]
    return DRAW[names](made(runs), NOTHING._replace(curves={"a": curve})).figure


def test_a_curve_of_one_point_is_a_marker():
    value = np.full((2, 199), np.nan)
    value[:, -1] = 3.0
    curve = np.arange(1, 200) * 1e6, Interval(value, value - 1, value + 1)
    [line, *_] = over_frames(curve, "mean_median").axes[0].lines
    np.testing.assert_array_equal(line.get_xydata(), [[199e6, 3]])
    assert line.get_marker() not in ("", "None")


def test_a_bootstraps_interval_may_lie_beside_its_value():
    curve = np.array([1e6]), Interval(*np.full((3, 2, 1), [[[3.0]], [[3.5]], [[4.0]]]))
    [error] = over_frames(curve, "mean_median").axes[0].collections
    np.testing.assert_array_equal(error.get_segments(), [[[1e6, 3], [1e6, 4]]])


def interval(value):
    value = np.array(value, float)
    return Interval(value, value - 0.25, value + 0.5)


def test_mean_and_median_panels():
    curve = np.array([4e6, 8e6, 12e6]), interval([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    figure = over_frames(curve, "mean_median")
    shown = {axes.get_title(): list(axes.lines[0].get_ydata()) for axes in figure.axes}
    assert shown == {"Mean over 1 game": [1, 2, 3], "Median over 1 game": [4, 5, 6]}
    for axes, (low, high) in zip(figure.axes, [(0.75, 3.5), (3.75, 6.5)], strict=True):
        band = axes.collections[0].get_paths()[0].vertices[:, 1]
        assert (band.min(), band.max()) == (low, high)
        # Frames below, agent steps above.
        assert axes.get_xlabel() == "emulator frames"
        [steps] = axes.child_axes
        figure.draw_without_rendering()
        assert steps.get_xlabel() == "agent steps"
        np.testing.assert_allclose(steps.get_xlim(), np.array(axes.get_xlim()) / 4)
    [axes] = over_frames(curve, "iqm", protocol=PUBLISHED._replace(frames_an_agent_step=1)).axes
    assert list(axes.lines[0].get_ydata()) == [7, 8, 9]
    assert (axes.get_xlabel(), axes.child_axes) == ("agent steps", [])


def test_axes_end_where_own_runs_can_be_seen():
    def until(*runs):
        return pictures._until(pd.DataFrame(runs))

    published = run("DQN", returns=np.zeros(199), own=False)
    assert until(run("a", returns=np.zeros(5)), published) == (
        20e6,
        ", and shown up to 20M frames of 199M frames",
    )
    assert until(run("a", returns=[0.0]), published)[0] == 10e6
    assert until(run("a", returns=np.zeros(50)), published) == (None, "")


def test_aggregate_panels():
    intervals = {"a": interval([1, 2, 3, 4]), "b": interval([5, 6, 7, 8])}
    intervals["few"] = interval([2, 2, 2, 2])._replace(low=np.full(4, np.nan))
    figure = figure_of("aggregates", [run(agent) for agent in intervals], aggregates=intervals)
    titles = ["Mean", "Median", "IQM", "Optimality gap (less is better)"]
    assert [axes.get_title() for axes in figure.axes] == titles
    for column, axes in enumerate(figure.axes):
        values = [lines.get_segments()[0][0][0] for lines in axes.collections]
        assert values == [1 + column, 5 + column, 2]
        bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]
        assert bars == [(0.75 + column, 1.5 + column), (4.75 + column, 5.5 + column)]


@pytest.mark.parametrize(("num_games", "grid"), [(1, (1, 1)), (2, (1, 3)), (3, (2, 2))])
def test_panels_of_a_scan_leave_no_gaps_and_cut_nothing(num_games, grid):
    """With one game there is nothing to aggregate over; a value of 0 has its whole marker."""
    games = [*GAMES[:num_games], discount.OVER_GAMES]
    rows = [
        ("a", gamma, game, value, value, value)
        for gamma, value in ((0.5, 0.0), (0.9, 7.0))
        for game in games
    ]
    columns = ["agent", "gamma", "game", "value", "low", "high"]
    figure = figures.gamma_panels(pd.DataFrame(rows, columns=columns), looks("a"))
    assert all(
        axes.get_visible() and axes.get_ylim() == pytest.approx((0, 7.56)) for axes in figure.axes
    )
    assert figure.axes[0].get_subplotspec().get_gridspec().get_geometry() == grid
    assert not any(axes.lines[0].get_clip_on() for axes in figure.axes)
    figure.draw_without_rendering()
    for text in (figure._supxlabel, figure._supylabel):
        box = text.get_window_extent()
        assert min(box.x0, box.y0) > 0 and box.y1 < figure.bbox.height


def test_a_scan_is_drawn_where_one_agent_has_two_discount_factors():
    for names, is_drawn in ((("a", "b"), False), (("a/gamma=0.9", "a/gamma=0.99"), True)):
        runs = gamma_runs(*((n, g, "Pong") for n, g in zip(names, (0.9, 0.99), strict=True)))
        drawn = DRAW["gamma"](made(runs, divides_by_best=True), NOTHING)
        assert isinstance(drawn, pictures.Shown) == is_drawn
        assert is_drawn or "one agent with two discount factors" in drawn


def test_the_learning_curves_are_always_the_last_figure():
    """The page shows them apart from the others."""
    assert [*DRAW][-1] == "learning_curves" and len(DRAW) == len(pictures.PICTURES)
    drawn = {name: draw(made([run("a")]), NOTHING) for name, draw in DRAW.items()}
    assert isinstance(drawn["learning_curves"], pictures.Shown) and drawn["aggregates"] is None
    assert drawn["relative"] == (
        "relative performance: needs a game with human scores that the reference DQN (TensorFlow: "
        "RMSProp, Huber) and another agent have"
    )
    assert "two discount factors" in drawn["gamma"]


def unequal_curves(reference):
    """Agent `high` beats `low` on both games; a run of `low` ends early."""
    runs = []
    for agent, level in (("high", 5.0), ("low", 1.0)):
        for game in ("Pong", "Alien"):
            for seed in range(3):
                stop = 4 if (agent, game, seed) == ("low", "Pong", 1) else 10
                returns = np.full(stop, level + seed)
                runs.append(run(agent, game, str(seed), returns, level + seed))
    return report.compute(made(runs, reference))


@pytest.mark.parametrize(("other", "chance"), [("low", 1), ("high", 0)])
def test_the_better_agent_improves_on_the_other(other, chance):
    results = unequal_curves(other)
    assert list(results.improvement) == [other]
    assert results.improvement[other].value.tolist() == [chance]


def test_curves_of_aggregates_end_where_a_run_ends():
    curves = unequal_curves("low").curves
    assert curves["high"][1].value.shape == (3, 10) and curves["low"][1].value.shape == (3, 4)
    np.testing.assert_array_equal(curves["low"][0], [1e6, 2e6, 3e6, 4e6])
    for part in curves["low"][1]:
        assert not np.isnan(part).any()


def test_a_class_of_the_gamma_figure_has_its_agents_mark_and_seeds():
    runs = gamma_runs(*SCAN)
    figure = DRAW["gamma"](made(runs), NOTHING).figure
    [text] = figure.legends[0].get_texts()
    assert text.get_text() == "LogDQNAgent, 1 seed"
    runs.at[0, "differs"] = (protocol.Difference("batch size", "64", "32", "baselines"),)
    figure = DRAW["gamma"](made(runs), NOTHING).figure
    [text] = figure.legends[0].get_texts()
    assert text.get_text() == "LogDQNAgent \N{DAGGER}, 1 seed"


def test_a_short_game_has_an_axis_of_its_own():
    small = PUBLISHED._replace(frames_an_agent_step=1)
    long = run("DQN", returns=np.zeros(199), own=False)
    runs = [run("a", returns=[1.0]), long]
    runs.append(run("a", "MinAtar/Breakout", returns=[1.0, 1.0], length=100, protocol=small))
    figure = figure_of("learning_curves", pd.DataFrame(runs).assign(trained=[1e6, 199e6, 200]))
    breakout, pong, *_ = figure.axes
    assert pong.get_xlim()[1] == 10e6 and 200 <= breakout.get_xlim()[1] < 250
    assert (pong.get_xlabel(), breakout.get_xlabel()) == ("", "agent steps")
    assert figure.get_supxlabel() == "emulator frames (an agent step is 4 frames)"


def test_a_footnote_explains_the_marks_below_all_else():
    differs = (protocol.Difference("batch size", "64", "32", "baselines"),)
    runs = [run(name, seed=str(seed), differs=differs) for name in "abc" for seed in range(3)]
    curves = {name: (np.array([1e6, 2e6]), interval(np.ones((3, 2)))) for name in "abc"}
    notes = {"\N{DAGGER}": "another protocol", "\N{DOUBLE DAGGER}": "not recorded"}
    pixels = []
    for explained in ({}, notes):
        figure = figure_of("iqm", runs, curves=curves)
        png = io.BytesIO()
        box = figures.footnote(figure, explained)
        figure.savefig(png, format="png", bbox_inches=box)
        pixels.append(np.asarray(Image.open(png)))
        assert box.y0 == (-0.28 if explained else 0)
    [text] = figure.texts
    assert text.get_text() == "\N{DAGGER} another protocol"
    bare, noted = pixels
    assert len(noted) == len(bare) + 28  # 0.28 inches
    np.testing.assert_array_equal(noted[: len(bare)], bare)
    assert (noted[len(bare) :] < 128).any()
