"""The figures' parts that carry meaning, and the gamma scan."""

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from log_dqn.results import comparison, figures, gamma_scan, pictures, references, report
from log_dqn.results.runs import LearningCurve
from log_dqn.results.scores import Score
from log_dqn.results.statistics import Interval


def made(scores, runs, agents, main=None):
    return comparison.Comparison(
        request=comparison.Request(repetitions=20),
        references=references.references(),
        agents=agents,
        own_agents=agents,
        games=sorted({s.game for s in scores}),
        runs=runs,
        scores=scores,
        common_games=[],
        main=main,
        last_iteration=None,
        notices=[],
        own_runs_failed=False,
    )


def test_gamma_points_take_the_best_agent_of_each_class_and_gamma():
    hns = {
        ("log_c1", 0.9): (1.0, 3.0),
        ("log_c2", 0.9): (1.5, 2.0),
        ("log_c1_99", 0.99): (0.5, 0.7),
        ("DQN", None): (0.2, 0.4),
        ("other", None): (9.0, 9.0),
    }
    scores, runs = [], []
    for (agent, gamma), (alien, zaxxon) in hns.items():
        for game, value in (("Alien", alien), ("Zaxxon", zaxxon), ("Pong", 50.0)):
            scores.append(Score(game, agent, "0", 9, 0.0, value))
            agent_class = "LogDQNAgent" if gamma else None
            runs.append(LearningCurve(agent, game, "0", np.zeros(10), agent_class, gamma))
    points, num_games = gamma_scan.points(runs, scores)
    assert num_games == 2  # Pong is not one of the six.
    assert list(points) == ["LogDQNAgent", "DQN"]
    np.testing.assert_allclose(points["LogDQNAgent"], [(0.9, 2, 2, 2), (0.99, 0.6, 0.6, 1)])
    np.testing.assert_allclose(points["DQN"], [(0.99, 0.3, 0.3, 1)])
    assert gamma_scan.caption(points) == (
        "best mean and best median, each over the 2 agents of LogDQNAgent at 0.9; else one agent"
    )


def gamma_runs(*rows):
    """Scores and runs from (agent, gamma, game)."""
    scores = [Score(game, agent, "0", 9, 0.0, 1.0) for agent, _, game in rows]
    runs = [
        LearningCurve(agent, game, "0", np.zeros(10), "LogDQNAgent", g) for agent, g, game in rows
    ]
    return runs, scores


def test_an_agent_without_the_six_games_does_not_cost_the_gamma_figure():
    scan = [(f"log_{g}", g, game) for g in (0.9, 0.99) for game in ("Alien", "Zaxxon")]
    runs, scores = gamma_runs(*scan, ("pong", 0.5, "Pong"), ("half", 0.8, "Alien"))
    settings, six, lines = gamma_scan.participants(runs, scores)
    assert settings == {"log_0.9": ("LogDQNAgent", 0.9), "log_0.99": ("LogDQNAgent", 0.99)}
    assert six == ["Alien", "Zaxxon"]
    assert lines == [
        "pong: not in the gamma figure; no scores on Alien, Zaxxon",
        "half: not in the gamma figure; no scores on Zaxxon",
    ]
    points, num_games = gamma_scan.points(runs, scores)
    assert [row[0] for row in points["LogDQNAgent"]] == [0.9, 0.99] and num_games == 2


def test_two_gammas_in_one_folder_are_said():
    runs, scores = gamma_runs(("a", 0.9, "Alien"), ("a", 0.99, "Zaxxon"))
    settings, _, [line] = gamma_scan.participants(runs, scores)
    assert settings == {}
    assert line.startswith("a: its runs have different discount factors (0.9, 0.99)")


def test_no_gamma_points_without_two_gammas():
    scores = [Score("Alien", "a", "0", 9, 0.0, 1.0)]
    runs = [LearningCurve("a", "Alien", "0", np.zeros(10), "LogDQNAgent", 0.96)]
    assert gamma_scan.points(runs, scores) == ({}, 0)


@pytest.mark.parametrize(
    ("relative", "colour"),
    [
        (0.51, figures.ORANGE), (-3.0, figures.ORANGE),
        (0.5, figures.DARK_BLUE), (-0.1, figures.DARK_BLUE), (0.3, figures.DARK_BLUE),
        (0.09, figures.LIGHT_BLUE), (-0.0999, figures.LIGHT_BLUE), (0.0, figures.LIGHT_BLUE),
    ],
)  # fmt: skip
def test_bar_colours_are_the_papers(relative, colour):
    assert figures.bar_colour(relative) == colour


def test_bar_colours_differ_in_grayscale():
    def luminance(colour):
        red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    levels = sorted(map(luminance, (figures.ORANGE, figures.DARK_BLUE, figures.LIGHT_BLUE)))
    assert min(np.diff(levels)) > 0.2


def test_agents_differ_in_colour_or_marker():
    agents = [f"agent {index}" for index in range(64)]
    assert len({figures._style(agents, agent) for agent in agents}) == 64


def test_relative_bars():
    figure = figures.relative_bars({"Pong": 2.0, "Alien": -0.3, "Qbert": 0.05}, "IQN", "DQN")
    [axes] = figure.axes
    assert [bar.get_height() for bar in axes.patches] == [-30, 5, 200]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["Alien", "Qbert", "Pong"]
    colours = (figures.DARK_BLUE, figures.LIGHT_BLUE, figures.ORANGE)
    assert [bar.get_facecolor() for bar in axes.patches] == [to_rgba(c) for c in colours]
    legend = [to_rgba(patch.get_facecolor()) for patch in figure.legends[0].get_patches()]
    assert legend == [to_rgba(figures.bar_colour(size)) for size in (0.6, 0.3, 0.05)]
    assert (
        axes.get_title(loc="left") == "IQN\nrelative to DQN (TensorFlow: RMSProp, Huber), 3 games"
    )
    figure.canvas.draw()
    top, bottom = axes.get_ylim()[1], axes.get_ylim()[0]
    inside = axes.transData.inverted()
    for text in axes.texts:  # Each number lies within the axes.
        box = text.get_window_extent().transformed(inside)
        assert bottom < box.y0 and (box.y1 < top or text.get_text() == "")


def test_learning_curves_show_mean_and_range():
    nan = np.nan
    curves = {"Pong": {"a": np.array([[1.0, 2.0, nan], [3.0, nan, nan]])}, "Alien": {}}
    figure = figures.learning_curves(curves, ["a", "DQN"], "train")
    axes = figure.axes[0]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [2, 2, nan])
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == 1 and band[:, 1].max() == 3
    [legend] = figure.legends
    assert [t.get_text() for t in legend.get_texts()] == ["a", "DQN (TensorFlow: RMSProp, Huber)"]


def test_a_curve_of_one_point_is_a_marker():
    value = np.full((2, 199), np.nan)
    value[:, -1] = 3.0
    curve = Interval(value, value - 1, value + 1)
    figure = figures.mean_and_median_curves({"DQN": curve}, 55)
    [line, *_] = figure.axes[0].lines
    np.testing.assert_array_equal(line.get_xydata(), [[198, 3]])
    assert line.get_marker() not in ("", "None")


@pytest.mark.parametrize(
    ("percent", "text"),
    [
        (0.0, "+0.0%"), (-3.04, "-3.0%"), (9.96, "+9.96%"), (10.0, "+10%"), (10.2, "+10.2%"),
        (49.6, "+49.6%"), (50.0, "+50%"), (-50.4, "-50.4%"), (49.97, "+49.97%"), (251.3, "+251%"),
    ],
)  # fmt: skip
def test_numbers_of_bars_agree_with_their_colours(percent, text):
    assert figures._percent(percent) == text


def interval(value):
    value = np.array(value, float)
    return Interval(value, value - 0.25, value + 0.5)


def test_mean_and_median_panels():
    curves = {"a": interval([[1, 2, 3], [4, 5, 6]])}
    figure = figures.mean_and_median_curves(curves, 7)
    shown = {axes.get_title(): list(axes.lines[0].get_ydata()) for axes in figure.axes}
    assert shown == {"Mean over 7 games": [1, 2, 3], "Median over 7 games": [4, 5, 6]}
    for axes, (low, high) in zip(figure.axes, [(0.75, 3.5), (3.75, 6.5)], strict=True):
        band = axes.collections[0].get_paths()[0].vertices[:, 1]
        assert (band.min(), band.max()) == (low, high)


def test_aggregate_panels():
    intervals = {"a": interval([1, 2, 3, 4]), "b": interval([5, 6, 7, 8])}
    figure = figures.aggregate_intervals(intervals, 7)
    titles = ["Mean", "Median", "IQM", "Optimality gap (less is better)"]
    assert [axes.get_title() for axes in figure.axes] == titles
    for column, axes in enumerate(figure.axes):
        values = [lines.get_segments()[0][0][0] for lines in axes.collections]
        assert values == [1 + column, 5 + column]
        bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]
        assert bars == [(0.75 + column, 1.5 + column), (4.75 + column, 5.5 + column)]


def test_gamma_panels():
    figure = figures.gamma_scan({"LogDQNAgent": [(0.9, 1, 3, 1), (0.99, 2, 4, 2)]}, 6)
    shown = {axes.get_title(): axes.lines[0].get_xydata().tolist() for axes in figure.axes}
    assert shown == {
        "Mean over 6 games": [[0.9, 1], [0.99, 2]],
        "Median over 6 games": [[0.9, 3], [0.99, 4]],
    }


def test_the_learning_curves_are_always_the_last_figure():
    """The page shows them apart from the others."""
    names = [picture.name for picture in pictures.PICTURES]
    assert len(set(names)) == 7 and names[-1] == "learning_curves"
    score, run = Score("Pong", "a", "0", 9, 0.0, 1.0), LearningCurve("a", "Pong", "0", np.zeros(10))
    nothing = report.Results({}, {}, {}, {})
    drawn = [picture.draw(made([score], [run], ["a"]), nothing) for picture in pictures.PICTURES]
    assert [isinstance(one, tuple) for one in drawn] == [False] * 6 + [True]
    reference = "the reference DQN (TensorFlow: RMSProp, Huber) has no runs"
    assert drawn[0] == f"relative performance: {reference}" and "two discount factors" in drawn[5]


def unequal_curves(main):
    """Agent `high` beats `low` on both games; a run of `low` ends early."""
    runs, scores = [], []
    for agent, level in (("high", 5.0), ("low", 1.0)):
        for game in ("Pong", "Alien"):
            for seed in range(2):
                stop = 4 if (agent, game, seed) == ("low", "Pong", 1) else 10
                returns = np.full(stop, level + seed)
                runs.append(LearningCurve(agent, game, str(seed), returns))
                scores.append(Score(game, agent, str(seed), stop - 1, returns[-1], level + seed))
    compared = made(scores, runs, ["high", "low"], main)
    compared.common_games = ["Alien", "Pong"]
    return report.compute(compared, lambda title, items: items)


@pytest.mark.parametrize(("main", "other", "chance"), [("high", "low", 1), ("low", "high", 0)])
def test_the_better_agent_improves_on_the_other(main, other, chance):
    results = unequal_curves(main)
    assert list(results.improvement) == [other]
    assert results.improvement[other].value.tolist() == [chance]


def test_curves_of_aggregates_end_where_a_run_ends():
    curves = unequal_curves("high").curves
    assert curves["high"].value.shape == (2, 10) and curves["low"].value.shape == (2, 4)
    for part in curves["low"]:
        assert not np.isnan(part).any()
