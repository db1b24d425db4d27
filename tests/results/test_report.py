"""The figures' parts that carry meaning, and the gamma scan."""

import numpy as np
import pytest

from log_dqn.results import comparison, figures, games, report
from log_dqn.results.runs import Run
from log_dqn.results.scores import Score
from log_dqn.results.statistics import Interval


def made(scores, runs, agents, main=None):
    return comparison.Comparison(
        request=comparison.Request(),
        references=games.references(),
        agents=agents,
        own_agents=agents,
        games=sorted({s.game for s in scores}),
        runs=runs,
        scores=scores,
        common_games=[],
        main=main,
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
            runs.append(Run(agent, game, "0", np.zeros(10), agent_class, gamma))
    points, num_games = report.gamma_points(made(scores, runs, [agent for agent, _ in hns]))
    assert num_games == 2  # Pong is not one of the six.
    assert list(points) == ["LogDQNAgent", "DQN"]
    np.testing.assert_allclose(points["LogDQNAgent"], [(0.9, 2.0, 2.0), (0.99, 0.6, 0.6)])
    np.testing.assert_allclose(points["DQN"], [(0.99, 0.3, 0.3)])


def test_no_gamma_points_without_two_gammas():
    scores = [Score("Alien", "a", "0", 9, 0.0, 1.0)]
    runs = [Run("a", "Alien", "0", np.zeros(10), "LogDQNAgent", 0.96)]
    assert report.gamma_points(made(scores, runs, ["a"])) == ({}, 0)


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
    assert axes.get_title() == "IQN\nrelative to DQN (TensorFlow: RMSProp, Huber), 3 games"
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
