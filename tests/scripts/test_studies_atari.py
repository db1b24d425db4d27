"""The studies' tables and figures of Atari, and the published runs' order."""

import numpy as np
import pandas as pd
import pytest
import study
from studies import atari, data, early_order, equal_optimizers

from log_dqn.results.runs import LearningCurve
from tests.results import synthetic

CONFIG = {"Runner.num_iterations": 3, "Runner.training_steps": 125_000}
HEADER = (
    "game,agent,setting,seed,steps,mean_return,episodes\n"
    "Alien,dqn,min_replay_history=1000000,1,125000,200,2\n"
)
RUN = {
    "game": "Pong",
    "agent": "log_dqn",
    "setting": "",
    "seed": 1,
    "episodes": 1,
}
DQN = "DQN (TensorFlow: RMSProp, Huber)"
POINTS = np.array([[1.0, 5.0], [3.0, 4.0]])


def test_runs_are_collected_once_and_go_on_and_are_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    path = tmp_path / "atari_curves.csv"
    path.write_text(HEADER.splitlines()[0] + "\n")
    early = tmp_path / "early"
    synthetic.write_log(early / "atari/dqn/Pong/1", [1], episodes=2, config=CONFIG)
    assert study.main(["collect", "atari", f"--results_dir={early}"]) == 0
    assert path.read_text().endswith("\nPong,dqn,,1,125000,1,2\n")
    path.write_text(HEADER)
    runs = tmp_path / "atari"
    folder = runs / "log_dqn" / "Pong" / "2"
    synthetic.write_log(folder, [5, 2.12345], episodes=2, config=CONFIG)
    random = runs / "dqn" / "min_replay_history=1000000" / "Pong" / "1"
    synthetic.write_log(random, [-20, -21], episodes=2, config=CONFIG)
    for _ in range(2):
        assert study.main(["collect", "atari", f"--results_dir={tmp_path}"]) == 0
    assert path.read_text() == HEADER + (
        "Pong,dqn,min_replay_history=1000000,1,125000,-20,2\n"
        "Pong,dqn,min_replay_history=1000000,1,250000,-21,2\n"
        "Pong,log_dqn,,2,125000,5,2\nPong,log_dqn,,2,250000,2.12345,2\n"
    )
    synthetic.write_log(folder, [5, 2.12345, 3], episodes=2, config=CONFIG)
    assert study.main(["collect", "atari", f"--results_dir={tmp_path}"]) == 0
    assert "Pong,log_dqn,,2,375000,3,2\n" in (whole := path.read_text())
    # Another run of that name, of which a part would be put behind this one's.
    synthetic.write_log(folder, [5, 2.2, 3, 4], episodes=2, config=CONFIG)
    assert study.main(["collect", "atari", f"--results_dir={tmp_path}"]) == 0
    assert path.read_text() == whole
    said = "study.py: Pong log_dqn  2: docs/data has another run of this name; left out\n"
    assert said in capsys.readouterr().err
    published = synthetic.write_baselines(tmp_path / "published", ["Pong"], {"DQN": 0.5})
    capsys.readouterr()
    arguments = [f"--baselines={published}", f"--out={tmp_path / 'o'}"]
    assert study.main(["report", "atari", *arguments]) == 0
    first, second = capsys.readouterr().out.split("the second 250,000 agent steps:")
    assert "| random | -20.5 |" in first and "| log_dqn | 3.56 |" in first
    assert "| log_dqn | 3 (to 375,000) |" in second
    assert "The epsilon of loglin_dqn.gin is not decided without" in second
    assert {file.name for file in (tmp_path / "o").iterdir()} == {"atari.png", "atari_log_dqn.png"}


def test_published_runs_that_hold_too_little_are_refused(tmp_path):
    source = str(synthetic.write_baselines(tmp_path, ["Pong"], {"C51": 0.5}))
    with pytest.raises(ValueError, match=r"^the list of agents published on Pong is 'C51'; .*DQN$"):
        atari.published_curves(source, ["Pong"], 1)
    source = str(synthetic.write_baselines(tmp_path, ["Pong"], {"DQN": 0.5}))
    length = len(atari.published_curves(source, ["Pong"], 1)[0].returns)
    said = f"^the length of DQN's published run on Pong is {length}; it must be {length + 1} "
    with pytest.raises(ValueError, match=said):
        atari.published_curves(source, ["Pong"], length + 1)


def test_what_cannot_be_read_on_atari_is_left_out(tmp_path):
    whole = tmp_path / "atari" / "dqn" / "Pong" / "1"
    synthetic.write_log(whole, [1.0], episodes=2, config=CONFIG)
    others = {"Pong/2": {"DQNAgent.gamma": 0.9}, "Pong/x": CONFIG, "CartPole-v1/1": CONFIG}
    for name, config in others.items():
        synthetic.write_log(tmp_path / "atari" / "dqn" / name, [1.0], episodes=2, config=config)
    # What loglin_dqn.gin has may change; the name does not.
    other = CONFIG | {"tf.train.RMSPropOptimizer.epsilon": 1e-7}
    synthetic.write_log(tmp_path / "atari/loglin_dqn/Alien/1", [1.0], episodes=2, config=other)
    notes = []
    (row,) = data._atari("atari", tmp_path / "atari", notes.append)
    assert (row["game"], row["seed"], row["steps"], row["mean_return"]) == ("Pong", 1, 125_000, 1.0)
    first, *rest = sorted(notes)
    assert first.startswith("dqn CartPole-v1 1: games is 'CartPole-v1'; it must be one of")
    assert rest == [
        "dqn Pong 2: Runner.training_steps is None; it must be in its config.json; left out",
        "dqn Pong x: invalid literal for int() with base 10: 'x'; left out",
        "loglin_dqn Alien 1: another configuration than the stage's: RMSPropOptimizer.epsilon is "
        "1e-07, not 1e-05; left out",
    ]


def test_an_agent_whose_runs_are_all_there_is_not_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    two_seeds = [job._replace(seeds="2") for job in data.STAGES["atari"]]
    monkeypatch.setitem(data.STAGES, "atari", two_seeds)
    games = ("Alien", "Assault", "Asterix", "Breakout", "MsPacman", "RoadRunner")
    lines = [f"{game},dqn,,{seed},500000,1,2\n" for game in games for seed in (1, 2)]
    (tmp_path / "atari_curves.csv").write_text(HEADER.splitlines()[0] + "\n" + "".join(lines))
    agents = [(seeds, job.agent) for seeds, job in data.missing("atari")]
    assert agents == [(f"{n}-{n}", of) for n in (1, 2) for of in ("log_dqn", "loglin_dqn")]


def test_a_half_is_the_mean_of_its_episodes():
    rows = [(100_000, 1.0, 30), (200_000, 4.0, 10), (250_000, 2.0, 10), (300_000, 7.0, 1)]
    curves = [{**RUN, "steps": s, "mean_return": r, "episodes": n} for s, r, n in rows]
    found = atari.halves(pd.DataFrame(curves))
    # (30 + 40 + 20) / 50, and what ends behind 250,000.
    assert found[["mean_return", "end"]].values.tolist() == [[1.8, 250_000], [7.0, 300_000]]


def test_the_smallest_difference_is_half_a_t_interval():
    points = np.array([9.0, 10.0, 11.0, 10.0, 10.0])
    # Their deviation is sqrt(1/2), t(0.975, 4) 2.776445; a run beside five, and beside another.
    for others, factor in ((5, np.sqrt(0.6)), (1, 1)):
        found = atari.smallest_difference(points, others)
        assert found == pytest.approx(2.776445 * factor, 1e-6)


def test_the_table_has_a_row_for_each_agent():
    run = {**RUN, "agent": "dqn"}
    rows = [
        {**run, "game": game, "setting": setting, "steps": steps, "mean_return": mean}
        for game, setting, steps, mean in (
            ("Alien", "", 250_000, 1234.4), ("Alien", "", 500_000, 7.0),
            ("Pong", "gamma=0.5", 500_000, 8.0),
            ("Pong", "min_replay_history=1000000", 250_000, -20.5),
        )
    ]  # fmt: skip
    found = {
        "Alien": {"DQN": np.array([[9, 11], [9, 13]]), "C51": np.array([[1, 10], [2, 1234.4]])},
        "Pong": {"DQN": np.array([[1, 4], [1, 7]])},
    }
    # Deviations of sqrt(2) and sqrt(4.5), t(0.975, 1) 12.7062; one run beside two, and beside one.
    assert atari.table(pd.DataFrame(rows), found, half=1).splitlines() == [
        "| score | Alien | Pong |",
        "| --- | --- | --- |",
        "| random | - | -20.5 |",
        f"| published {DQN} | 12 (11 to 13) | 5.5 (4 to 7) |",
        "| published C51 | 622 (10 to 1,234) | - |",
        "| dqn | 7 | - |",
        "| dqn/gamma=0.5 | - | 8 |",
        f"| *significant: a run against {DQN}* | 22 | 33 |",
        f"| *significant: two runs that vary as {DQN}* | 25.4 | 38.1 |",
    ]
    assert "| dqn | 1,234 | - |" in atari.table(pd.DataFrame(rows), found, half=0)


def test_a_panel_has_means_of_the_same_steps_as_the_published_band():
    rows = [
        {**RUN, "seed": seed, "steps": steps, "mean_return": seed * number}
        for seed in (1, 2)
        for number, steps in enumerate((125_000, 250_000, 350_000), 1)
    ]
    figure = atari.draw(pd.DataFrame(rows), {"Pong": {"DQN": POINTS, "C51": POINTS}}, ["DQN"])
    (axes,) = figure.axes
    assert axes.get_title() == "Pong"
    # The middle of 0 to 250,000, and of 250,000 to 350,000.
    assert [line.get_xydata().tolist() for line in axes.lines] == [
        [[125, 1.5], [300, 3]],
        [[125, 3], [300, 6]],
    ]
    (band,) = axes.collections
    corners = [(0, 1), (250, 1), (250, 4), (500, 4), (500, 5), (250, 5), (250, 3), (0, 3)]
    assert {(x, y) for x, y in band.get_paths()[0].vertices.tolist()} == set(corners)
    names = [text.get_text() for text in figure.legends[0].texts]
    assert names == [f"published {DQN}, 2 seeds", "log_dqn"]


def test_settings_are_told_apart_and_known_by_their_agents_colour():
    names = ["dqn", "dqn/gamma=0.96", *[f"log_dqn/c={c}" for c in range(5)], "log_dqn"]
    found = atari.setting_looks(names)
    assert [look.name for look in found.values()] == names
    assert len({(look.colour, look.marker, look.line) for look in found.values()}) == 8
    assert [look.colour for look in found.values()] == ["#000000"] * 2 + ["#D55E00"] * 6


def curve(agent, game, early, late, seed=0):
    """A published run of 199 iterations: `early` in the first ten, `late` afterwards."""
    return LearningCurve(agent, game, str(seed), np.repeat([early, late], [10, 189]))


def test_leads_are_between_means_over_seeds():
    runs = [curve("DQN", "Pong", 1.0, 7.0), curve("DQN", "Pong", 3.0, 7.0, seed=1)]
    first, second = early_order.leads([*runs, curve("C51", "Pong", 5.0, 4.0)]).to_dict("records")
    early = dict.fromkeys((500_000, 1_000_000, 2_000_000), 3.0)
    late = dict.fromkeys((5_000_000, 12_500_000, 25_000_000, "end"), -3.0)
    assert first == {"game": "Pong", "agent": "C51", "other": "DQN"} | early | late
    assert (second["agent"], second["other"]) == ("DQN", "C51")
    assert (second[500_000], second["end"]) == (-3.0, 3.0)


def test_what_an_early_lead_says_of_the_end():
    """The order stays on Pong, turns on Alien, and turns for two of three pairs on Amidar."""
    ends = {"Pong": (2, 1, 0), "Alien": (2, 3, 4), "Amidar": (1, 2, 1.5)}
    runs = [
        curve(agent, game, early, end)
        for game, of_agents in ends.items()
        for agent, early, end in zip(("DQN", "C51", "IQN"), (3, 2, 1), of_agents, strict=True)
    ]
    other_games, *lines = early_order.guesses(early_order.leads(runs)).splitlines()[2:]
    # (1 + 0 + 1/3) / 3 with a standard error of 0.294, t(0.975, 2) 4.303. Later the early order is
    # that of the end.
    for line, steps in zip(lines, early_order.STEPS, strict=True):
        found = "44% (-82% to 171%)" if steps <= 2_000_000 else "100% (100% to 100%)"
        assert line == f"| who is ahead at {steps:,} agent steps | {found} |"
    # By the other games all guesses are ties, or wrong: C51's and IQN's of DQN on Pong.
    assert other_games == "| who ends ahead on most other games | 0% (0% to 0%) |"


def test_a_run_that_was_stopped_is_trained_on(monkeypatch):
    """150,000 agent steps"""
    lengths = {"Alien": 125_000, "Assault": 150_000, "Asterix": 150_000}
    rows = [
        RUN
        | {"game": game, "agent": "dqn", "setting": "min_replay_history=1000000", "steps": steps}
        for game, steps in lengths.items()
    ]
    monkeypatch.setattr(data, "read", lambda _: pd.DataFrame(rows))
    [(seeds, job)] = data.missing("atari_random")
    assert (seeds, job.games) == ("1-1", "Alien,Breakout,MsPacman,RoadRunner")


LARGE, SMALL, LOW = "", "epsilon=1e-07", "gamma=0.8,epsilon=1e-07"
EQUAL = {
    ("loglin_dqn", LARGE): {"Alien": 400.0, "Asterix": 1.0},
    ("loglin_dqn", SMALL): {"Alien": 520.0, "Asterix": 800.0, "Breakout": 6.0, "MsPacman": 900.0},
    ("dqn", LARGE): {"Alien": 470.0, "Asterix": 400.0, "Breakout": 3.0, "MsPacman": 100.0},
    ("dqn", SMALL): {"Alien": 420.0, "Asterix": 990.0, "Breakout": 5.6},
    ("loglin_dqn", LOW): {"Asterix": 700.0, "Breakout": 5.0},
    ("dqn", LOW): {"Asterix": 750.0, "Breakout": 2.0},
}  # fmt: skip
"""Returns of the second 250,000 agent steps of the stage `atari_equal`, by agent and setting."""


def equal_curves(returns, end=500_000):
    """Seed 1, a second seed that doesn't count, and a first half that doesn't."""
    return pd.DataFrame(
        {**RUN, "game": game, "agent": agent, "setting": setting, "steps": steps} | given
        for (agent, setting), of in returns.items()
        for game, mean in of.items()
        for steps, given in (
            (250_000, {"mean_return": 7e3}),
            (end, {"mean_return": mean}),
            (end, {"mean_return": 5e4, "seed": 2}),
        )
    )


def equal_published():
    """Three seeds with mean 100 and deviation 1, so that a difference must exceed 6.0849%.

    That is t(0.975, 2), 4.302653, times sqrt(2), of the larger return.
    """
    seeds = np.array([[70.0, 99.0], [0.0, 100.0], [80.0, 101.0]])
    return {game: {"DQN": seeds} for game in ("Alien", "Asterix", "Breakout", "MsPacman")}


def equal_decisions(returns, **settings):
    return equal_optimizers.decide(equal_curves(returns, **settings), equal_published())


def with_return(agent, setting, game, mean):
    of = EQUAL[agent, setting]
    return EQUAL | {(agent, setting): of | {game: mean}}


def test_equal_optimizers_are_compared_game_by_game():
    table, *_ = equal_decisions(EQUAL).split("\n\n")
    low = "gamma=0.8,epsilon=1e-07"
    large, small, better = "loglin_dqn", "loglin_dqn/epsilon=1e-07", "dqn, its better epsilon"
    dqn = "dqn/epsilon=1e-07"
    assert [line.strip("| ").split(" | ") for line in table.splitlines()[2:]] == [
        [f"{small} against {large}", "Alien", "520, 400", "31.6", small],
        [f"{small} against {large}", "Asterix", "800, 1", "48.7", small],
        [f"{dqn} against dqn", "Alien", "420, 470", "28.6", "dqn"],
        [f"{dqn} against dqn", "Asterix", "990, 400", "60.2", dqn],
        [f"{dqn} against dqn", "Breakout", "5.6, 3", "0.341", dqn],
        [f"{small} against {dqn}", "Alien", "520, 420", "31.6", small],
        [f"{small} against {dqn}", "Asterix", "800, 990", "60.2", dqn],
        [f"{small} against {dqn}", "Breakout", "6, 5.6", "0.365", small],
        [f"{small} against {better}", "Alien", "520, 470", "31.6", small],
        [f"{small} against {better}", "Asterix", "800, 990", "60.2", better],
        [f"{small} against {better}", "Breakout", "6, 5.6", "0.365", small],
        [f"{large} against {better}", "Alien", "400, 470", "28.6", better],
        [f"{large} against {better}", "Asterix", "1, 990", "60.2", better],
        [f"loglin_dqn/{low} against dqn/{low}", "Asterix", "700, 750", "45.6", f"dqn/{low}"],
        [f"loglin_dqn/{low} against dqn/{low}", "Breakout", "5, 2", "0.304", f"loglin_dqn/{low}"],
        [f"loglin_dqn/{low} against {small}", "Asterix", "700, 800", "48.7", small],
        [f"loglin_dqn/{low} against {small}", "Breakout", "5, 6", "0.365", small],
        [f"dqn/{low} against {dqn}", "Asterix", "750, 990", "60.2", dqn],
        [f"dqn/{low} against {dqn}", "Breakout", "2, 5.6", "0.341", dqn],
    ]


@pytest.mark.parametrize(
    ("changed", "epsilon", "recommended"),
    [
        (EQUAL, "loglin_dqn/epsilon=1e-07", "recommended"),
        # 500 is better than 470 by 30, less than 30.4.
        (with_return("loglin_dqn", SMALL, "Alien", 500.0), "loglin_dqn/epsilon=1e-07", "not"),
        # DQN's other epsilon is the better one here: 520 against 500.
        (with_return("dqn", SMALL, "Alien", 500.0), "loglin_dqn/epsilon=1e-07", "not"),
        (with_return("loglin_dqn", SMALL, "Breakout", 5.9), "loglin_dqn/epsilon=1e-07", "not"),
        # LogLinDQN with epsilon 1e-5 was not run on Breakout, which Alien may decide.
        (with_return("loglin_dqn", LARGE, "Alien", 521.0), "loglin_dqn", "loglin_dqn on Breakout"),
        (
            with_return("loglin_dqn", LARGE, "Alien", 490.0)
            | {("loglin_dqn", SMALL): {"Alien": 480.0}},
            "loglin_dqn", "not",
        ),
    ],
)  # fmt: skip
def test_equal_optimizers_are_decided_by_the_plan(changed, epsilon, recommended):
    _, first, second = equal_decisions(changed).split("\n\n")
    assert first == f"loglin_dqn.gin gets the epsilon of {epsilon}."
    assert second == {
        "recommended": "LogLinDQN is recommended over DQN.",
        "not": "LogLinDQN is not recommended over DQN.",
    }.get(recommended, f"Whether LogLinDQN is recommended is not decided without {recommended}.")


@pytest.mark.parametrize(
    ("agent", "setting", "game", "missing"),
    [
        ("loglin_dqn", SMALL, "Alien", "The epsilon of loglin_dqn.gin is not decided"),
        ("loglin_dqn", LARGE, "Alien", "The epsilon of loglin_dqn.gin is not decided"),
        ("dqn", SMALL, "Breakout", "Whether LogLinDQN is recommended is not decided"),
        ("dqn", LARGE, "Alien", "Whether LogLinDQN is recommended is not decided"),
    ],
)
def test_equal_optimizers_have_no_verdict_without_a_run(agent, setting, game, missing):
    kept = {of: mean for of, mean in EQUAL[agent, setting].items() if of != game}
    *_, last = equal_decisions(EQUAL | {(agent, setting): kept}).split("\n\n")
    name = "dqn, its better epsilon" if agent == "dqn" else f"{agent}/{setting}".rstrip("/")
    assert last == f"{missing} without {name} on {game}."


def test_equal_optimizers_have_no_verdict_by_runs_that_were_stopped():
    table, verdict = equal_decisions(EQUAL, end=450_000).split("\n\n")
    assert len(table.splitlines()) == 2 and " not decided without " in verdict


def test_without_a_threshold_no_difference_counts():
    returns = {"a": {"Pong": 2.0}, "b": {"Pong": 1.0}}
    for seeds, favoured in (([1.0, 1.01], "a"), ([1.0, np.nan], "neither")):
        points = {"Pong": np.array(seeds)}
        assert equal_optimizers.favoured(returns, points, "a", "b", "Pong") == favoured
