"""The studies: their stages, what is collected of them, and what is decided."""

import pathlib
import shutil
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import study
from studies import data, decisions, minatar, stages

from log_dqn import train_vectorized
from log_dqn.results import discount, figures
from log_dqn.vectorized import start
from tests import programs
from tests.results import synthetic


def test_a_row_is_a_command():
    adam = "@tf.train.AdamOptimizer()"
    job, folder = stages.STAGES["mechanism"][2], pathlib.Path("r")
    assert job.command("31-31", folder) == [
        "train-vectorized", "--agent=loglin_dqn", "--games=minatar5", "--seeds=31-31",
        "--results_dir=r/mechanism", "--gin_bindings=VectorizedRunner.num_iterations=8",
        "--scan=VectorizedLogDQNAgent.gamma=0.5",
        "--scan=VectorizedLogDQNAgent.linear_above=1e-9", "--scan=VectorizedLogDQNAgent.c=1e-9",
    ]  # fmt: skip
    snake = stages.STAGES["beyond"][2]
    assert snake.chosen() == ["jumanji_games-snake"]
    assert snake.command("51-52", folder) == [
        "train-vectorized", "--agent=dqn", "--env=jumanji_games:snake", "--seeds=51-52",
        "--results_dir=r/beyond", "--gin_files=vectorized_dqn_minatar.gin",
        "--gin_bindings=VectorizedRunner.network='by_shape'",
        "--gin_bindings=VectorizedRunner.num_iterations=20",
        "--gin_bindings=VectorizedDQNAgent.learning_rate=0.0005",
        "--scan=VectorizedDQNAgent.gamma=0.5,0.8,0.9,0.96,0.99",
    ]  # fmt: skip
    assert stages.STAGES["atari_screening"][8].command("1", folder) == [
        "sweep", "--agents=log_dqn", "--cpus_per_run=1", "--games=Asterix", "--seeds=1",
        "--results_dir=r/atari", "--gin_files=short.gin",
        f"--gin_bindings=LogDQNAgent.optimizer={adam}",
        "--gin_bindings=AdamOptimizer.epsilon=0.00015", "--scan=AdamOptimizer.beta1=0.9",
        "--scan=LogDQNAgent.beta_reg=1.0", "--scan=AdamOptimizer.learning_rate=0.0000625",
    ]  # fmt: skip


@pytest.mark.parametrize("stage", ["mechanism", "best_again"])
def test_the_runs_that_a_stage_plans_are_those_that_it_trains(stage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = []
    monkeypatch.setattr(
        start, "create_pool",
        lambda workload, *_: runs.extend(workload.runs) or mock.Mock(failures=[]),
    )  # fmt: skip
    for job in stages.STAGES[stage]:
        _, *words = job.command(job.seeds, pathlib.Path("r"))
        programs.forget()
        assert train_vectorized.main(words) == 0
    names = [(run.game, run.agent_name, run.setting.name, run.seed) for run in runs]
    planned = stages.planned(stage)
    assert len(names) == len(set(names)) == 10 * len(planned)
    assert set(names) == {(*name, seed) for name in planned for seed in data.seeds_of(stage)}


@pytest.mark.parametrize("stage", stages.STAGES)
def test_a_stage_has_seeds_and_a_setting_for_each_of_its_runs(stage):
    seeds = {job.seeds for job in stages.STAGES[stage]}
    assert len(seeds) == 1 and len(data.seeds_of(stage)) > 0
    assert len(stages.planned(stage)) == sum(len(job.runs()) for job in stages.STAGES[stage])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of data with one row, and the two finished runs of the stage `averaging`."""
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    row = "main,MinAtar/Freeway,dqn,gamma=0.5,0.5,1,0,7.12346"
    (tmp_path / "minatar_curves.csv").write_text(
        f"stage,game,agent,setting,gamma,seed,iteration,mean_return\n{row}\n"
    )
    for game in ("Freeway", "Breakout"):
        write_run(tmp_path, game, [1.0] * 7 + [2.5])
    return tmp_path


def write_run(folder, game, returns, seed=6, **parameters):
    (name, config), *_ = stages.planned("averaging").items()
    run = folder / "averaging" / "log_dqn" / name[2] / f"MinAtar-{game}" / str(seed)
    shutil.rmtree(run, ignore_errors=True)
    synthetic.write_log(run, returns, config={**config, **parameters})


def test_finished_runs_are_added_once_and_what_is_committed_stays(folder, capsys):
    path = folder / "minatar_curves.csv"
    before = path.read_text()
    (job,) = stages.STAGES["averaging"]
    both = job._replace(games="MinAtar/Freeway,MinAtar/Breakout")
    assert list(data.missing("averaging")) == [("6-6", both)]
    assert study.main(["collect", "averaging", f"--results_dir={folder}"]) == 0
    assert capsys.readouterr().out == f"{path}: 2 runs, 16 new rows\n"
    after = path.read_text()
    assert set(before.splitlines()) <= set(after.splitlines())
    assert len(after.splitlines()) == 2 + 16
    assert list(data.missing("averaging")) == []
    write_run(folder, "Freeway", [9.0] * 8)  # Another machine has other numbers.
    assert study.main(["collect", "averaging", f"--results_dir={folder}"]) == 0
    assert capsys.readouterr().out == f"{path}: 1 run, 0 new rows\n"
    assert path.read_text() == after
    scores = data.scores_of(data.read("averaging")).set_index("stage")["score"]
    assert scores["averaging"].tolist() == [2.5, 2.5] and scores["main"] == 7.12346
    first, *rest = after.splitlines(keepends=True)
    path.write_text(first + "".join(rest[1:]))  # Breakout's run has an iteration less.
    assert list(data.missing("averaging")) == [("6-6", job._replace(games="MinAtar/Breakout"))]
    assert set(data.curves_of("averaging")["game"]) == {"MinAtar/Freeway"}


@pytest.mark.parametrize(
    ("game", "length", "seed", "parameters", "reason"),
    [
        ("Freeway", 7, 6, {}, "not finished"),
        ("Freeway", 8, 7, {}, "not a run of the stage averaging"),
        ("Asterix", 8, 6, {}, "not a run of the stage averaging"),
        (
            "Freeway", 8, 6, {"VectorizedLogDQNAgent.c": 1.0},
            "another configuration than the stage's: VectorizedLogDQNAgent.c is 1.0, not 2.0",
        ),
    ],
)  # fmt: skip
def test_other_runs_are_left_out(folder, capsys, game, length, seed, parameters, reason):
    write_run(folder, game, [1.0] * length, seed, **parameters)
    assert study.main(["collect", "averaging", f"--results_dir={folder}"]) == 0
    name = f"log_dqn/gamma=0.5,beta_log=0.001,beta_reg=1,c=2,epsilon=1e-08 MinAtar/{game} {seed}"
    assert capsys.readouterr().err == f"study.py: {name}: {reason}; left out\n"
    rows = data.read("averaging")
    assert len(rows[rows["stage"] == "averaging"]) == 8 * (1 + (game == "Asterix" or seed == 7))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("run main --games=Pong", "games is 'Pong'; it must be some of MinAtar/Asterix,"),
        ("run main --games=", "games is ''; it must be some of MinAtar/Asterix,"),
        ("run main --seeds=0", "seeds is '0'; it must be N, at least 1, or A-B"),
        (
            "collect main --results_dir=nowhere",
            "results_dir is 'nowhere/main'; it must be an existing",
        ),
        ("report best_again", "minatar_curves.csv has no runs of the stage best_again"),
        ("report main --out=", "out is ''; it must be the name of a folder"),
    ],
)
def test_wrong_input_is_one_line(folder, capsys, arguments, message):
    assert study.main(arguments.split()) == 2
    error = capsys.readouterr().err
    assert f": error: {message}" in error.replace(f"{folder}/", "")
    assert error.count("\n") == 1


def test_a_stage_is_run_seed_by_seed_until_a_command_fails(folder, monkeypatch, capsys):
    asked, statuses = [], iter([0, 0, 3])

    def popen(words, env):
        asked.append([word for word in words if word.startswith(("--agent", "--seeds"))])
        process = mock.MagicMock()
        process.__enter__().wait.return_value = next(statuses)
        return process

    monkeypatch.setattr(study.subprocess, "Popen", popen)
    assert study.main(["run", "best_again"]) == 3
    agents = ("--agent=loglin_dqn", "--agent=dqn")
    assert asked == [[agents[0], "--seeds=41-41"], [agents[1], "--seeds=41-41"],
                     [agents[0], "--seeds=42-42"]]  # fmt: skip
    statuses = iter([-9])  # Killed, for instance for memory.
    assert study.main(["run", "best_again"]) == 137
    data.collect("averaging", folder, print)
    assert study.main(["run", "averaging"]) == 0
    said = "docs/data has all runs of averaging; --seeds=6-6 trains them again\n"
    assert capsys.readouterr().out == said


def table(values, game_names=("MinAtar/A", "MinAtar/B")):
    """Scores from {(agent, gamma): a list of seeds for each game}."""
    rows = [
        ("main", game, agent, f"gamma={gamma:g}", gamma, seed, score)
        for (agent, gamma), of_games in values.items()
        for game, scores in zip(game_names, of_games, strict=True)
        for seed, score in enumerate(scores, 1)
    ]
    return pd.DataFrame(rows, columns=[*data.RUN, "score"])


# Best means: 10 on MinAtar/A (LogDQN, 0.9), 4 on MinAtar/B (DQN, 0.9).
SCORES = table(
    {
        ("log_dqn", 0.5): [[7.0, 8.0, 9.0], [1.9, 2.0, 2.1]],
        ("log_dqn", 0.9): [[9.9, 10.0, 10.1], [2.8, 3.0, 3.2]],
        ("dqn", 0.5): [[2.0, 2.0, 2.0], [1.0, 1.0, 1.0]],
        ("dqn", 0.9): [[5.0, 6.0, 7.0], [3.9, 4.0, 4.1]],
    }
)


def test_the_two_claims():
    rows = minatar.claims(SCORES, "log_dqn", "dqn").splitlines()
    # Over games by seed LogDQN has .5875, .65, .7125, DQN .225: t(0.975, 2) 4.3027, standard error
    # .0625 / sqrt(3). On A the deviation is .1, on B .025.
    at_low = "0.60 (0.35 to 0.85) | 0.25 (0.19 to 0.31) | 0.42 (0.27 to 0.58)"
    assert rows[2] == f"| at gamma 0.5 | {at_low} |"
    # Both agents are better at 0.9, on each game and over games: 1 - .6 and .75 - 1.
    assert rows[0] == "| claim | MinAtar/A | MinAtar/B | over games |"
    *each, at_lowest = (row.split(" | ", 1) for row in rows[3:])
    over_games = each[-1]
    assert over_games[0] == "| each at the gamma that is best over games (0.9 and 0.9)"
    assert {row[1] for row in each} == {over_games[1]}
    assert over_games[1].startswith("0.40 (") and " | -0.25 (" in over_games[1]
    # LogDQN's 0.5 and DQN's 0.9: .8 - .6 and .5 - 1.
    assert at_lowest[0] == "| at gamma 0.5, the other at its best (0.9)"
    assert [cell.split(" (")[0] for cell in at_lowest[1].split(" | ")] == ["0.20", "-0.50", "-0.15"]
    one = minatar.claims(SCORES[SCORES["gamma"] == 0.5], "log_dqn", "dqn")
    assert one.count("\n") == 2  # There is nothing to choose.


def test_the_best_gamma_is_chosen_over_games_or_on_each():
    found = minatar.claims(
        table(
            {
                # Over games, of 8 and 4: (0.5 + 1) / 2 at 0.5, (0.6 + 0.25) / 2 at 0.9.
                ("log_dqn", 0.5): [[3.0, 4.0, 5.0], [3.9, 4.0, 4.1]],
                ("log_dqn", 0.9): [[4.7, 4.8, 4.9], [0.9, 1.0, 1.1]],
                ("dqn", 0.5): [[0.0, 0.1, 0.2], [2.9, 3.0, 3.1]],
                ("dqn", 0.9): [[7.9, 8.0, 8.1], [1.9, 2.0, 2.1]],
            }
        ),
        "log_dqn", "dqn",
    )  # fmt: skip
    each, over, _ = found.splitlines()[-3:]
    values = [cell.split(" (")[0] for cell in over.split("| ")[2:]]
    # LogDQN's 0.5 and DQN's 0.9: 0.5 - 1, 1 - 0.5.
    assert "(0.5 and 0.9)" in over and values == ["-0.50", "0.50", "0.00"]
    values = [cell.split(" (")[0] for cell in each.split("| ")[2:]]
    # LogDQN's 0.9 and 0.5, DQN's too: 0.6 - 1, 1 - 0.75.
    assert values == ["-0.40", "0.25", "-0.08"]


def test_each_at_its_best_setting_on_each_game():
    scores = table(
        {
            ("one", 0.9): [[8.0, 10.0, 12.0], [1.0, 2.0, 3.0]],
            ("two", 0.9): [[3.0, 5.0, 7.0], [3.0, 4.0, 5.0]],
        }
    )
    scores = scores.assign(setting=scores["agent"], agent="dqn")
    found = minatar.at_best_on_each_game(scores, "dqn")  # Divided by 10 and 4.
    np.testing.assert_allclose(found, [[0.8, 0.75], [1.0, 1.0], [1.2, 1.25]])


def test_settings_of_a_stage():
    one = table({("dqn", 0.5): [[1.0]], ("dqn", 0.9): [[2.0]]}, ["A"]).assign(agent="log_dqn")
    several = table({("dqn", 0.5): [[1.0, 2.0, 6.0]]}, ["A"]).assign(setting="gamma=0.5,c=2")
    assert minatar.by_setting(pd.concat([one, several])).splitlines() == [
        "Mean score (least to greatest seed):", "",
        "| game | agent | setting | seeds | 0.5 | 0.9 |", "| --- | --- | --- | --- | --- | --- |",
        "| A | dqn | c=2 | 3 | 3 (1 to 6) | - |", "| A | log_dqn |  | 1 | 1 | 2 |",
    ]  # fmt: skip
    five = table({("dqn", 0.5): [[1.0, 2.0, 3.0, 4.0, 5.0]]}, ["A"])
    # t(0.975, 4) 2.776 times sqrt(2.5 / 5).
    assert "| A | dqn |  | 5 | 3 (1.04 to 4.96) |" in minatar.by_setting(five)


def test_an_agents_best_setting_is_the_best_over_games():
    """Of a game's best mean, 40, DQN has (0.5 + 1) / 2 with one step, (1 + 0.75) / 2 with three."""
    parts = [
        table({("dqn", 0.9): [[20.0], [40.0]]}),
        table({("dqn", 0.9): [[40.0], [30.0]]}).assign(setting="gamma=0.9,n=3"),
        table({("log_dqn", 0.9): [[1.0], [1.0]]}),
    ]
    found = minatar.best_settings(pd.concat(parts, ignore_index=True))
    assert sorted(set(found["setting"])) == ["gamma=0.9", "gamma=0.9,n=3"] and len(found) == 4
    assert found[found["agent"] == "dqn"]["score"].tolist() == [40.0, 30.0]


def test_short_runs_beside_the_studys_cut_as_short():
    def curves(stage, agent, setting, seed, returns):
        name = (stage, "MinAtar/A", agent, setting, 0.5, seed)
        rows = [(*name, number, value) for number, value in enumerate(returns)]
        return pd.DataFrame(rows, columns=[*data.RUN, "iteration", "mean_return"])

    main = [curves("main", "log_dqn", "gamma=0.5", 1, [0.0, 4.0, 99.0])]
    main += [curves("main", "dqn", "gamma=0.5", seed, [0.0, 2.0, 99.0]) for seed in (1, 4)]
    short = [curves("floor", "log_dqn", "gamma=0.5,k=6", seed, [0.0, 5.0]) for seed in (1, 2)]
    both = minatar.beside(pd.concat(short), pd.concat(main))
    assert minatar.means(both).splitlines()[2:] == [
        "| 0.5 | dqn | the study's | 2 | 0.4 |", "| 0.5 | log_dqn | k=6 | 5 | 1 |",
        "| 0.5 | log_dqn | the study's | 4 | 0.8 |",
    ]  # fmt: skip


def test_figures_show_what_the_tables_hold():
    figure = figures.gamma_panels(minatar.over_games(SCORES), minatar.AGENTS)
    first, _, over = (axes for axes in figure.axes if axes.get_visible())
    assert [axes.get_title() for axes in (first, over)] == ["A", "Mean over games"]
    log_dqn, dqn = over.lines
    # (0.8 + 0.5) / 2 and (1 + 0.75) / 2, (0.2 + 0.25) / 2 and (0.6 + 1) / 2.
    np.testing.assert_allclose(log_dqn.get_ydata(), [0.65, 0.875])
    np.testing.assert_allclose(dqn.get_ydata(), [0.225, 0.8])
    alone = minatar.over_games(SCORES).query("game != 'over games'")
    figure = figures.gamma_panels(alone, minatar.AGENTS)
    assert [axes.get_title() for axes in figure.axes if axes.get_visible()] == ["A", "B"]
    curves = pd.concat(
        [SCORES.assign(iteration=i, mean_return=SCORES["score"] * (i + 1)) for i in range(2)]
    )
    figure = minatar.draw_curves(curves)
    assert [axes.get_title() for axes in figure.axes] == ["gamma 0.5", "gamma 0.9", "", ""]
    mean = next(line for line in figure.axes[0].lines if line.get_label() == "LogDQN")
    np.testing.assert_allclose(mean.get_xdata(), [0.05, 0.1])
    np.testing.assert_allclose(mean.get_ydata(), [8.0, 16.0])
    # LogDQN's best seed at 0.9 has 10.1 and 20.2, more than any at 0.5.
    low, high = figure.axes[0].get_ylim()
    assert low == 0 and 20.2 < high < 22


def test_games_beyond_minatar_are_shown_without_their_library():
    names = ["jumanji_games-sliding_tiles", "Pong-misc", "DeepSea-bsuite", "MinAtar/Asterix"]
    shown = ["Sliding tiles", "Pong", "DeepSea", "MinAtar/Asterix"]
    assert [*map(minatar.title, [*names, discount.OVER_GAMES])] == [*shown, discount.OVER_GAMES]


OFFSETS = np.array([1, -1] * 5)
GAMES = stages.planned("best_again")
ALL = sorted({game for game, *_ in GAMES})


def plan_scores(stage, means):
    """Ten seeds of a stage: `means` by variant, discount factor and game, each 1 above or below."""
    rows = []
    for game, agent, setting in stages.planned(stage):
        gamma = float(setting.partition(",")[0].removeprefix("gamma="))
        key = (agent, setting.partition(",")[2])
        mean = means(decisions.VARIANTS.get(key, agent), gamma, game)
        for seed, offset in zip(data.seeds_of(stage), OFFSETS, strict=True):
            rows.append((stage, game, agent, setting, gamma, seed, mean + offset))
    return pd.DataFrame(rows, columns=[*data.RUN, "score"])


MEANS = {"DQN": 4, "line only": 5, "no optimistic start": 9, "LogLinDQN": 10}


def mechanism_means(variant, gamma, game):
    if gamma == 0.8 and variant == "line only":  # It closes 4 of 6 there.
        return 8
    if gamma != 0.5 and variant == "no optimistic start":
        return 3
    if gamma == 0.9 and game not in stages.TUNED:  # There is no gap on the held-out games.
        return 4
    return MEANS[variant]


def test_the_mechanism_is_decided_as_planned():
    scores = plan_scores("mechanism", mechanism_means)
    found = decisions.decide("mechanism", scores)
    # Seeds are 0.1 above or below: t(0.975, 18), 2.1009, times sqrt(2 x 0.01 / 9) is 0.099.
    # Of the means 10 and 5, ln(10 / 5) is 0.69.
    row = "| 0.5 | held out | line only | 0.500 (0.401 to 0.599) | 0.500 (0.500 to 0.500) | 0.69 |"
    assert f"{row} superior |" in found
    # The differences on each of five games and over games are the same.
    for pair, cell in (
        ("LogLinDQN less line only", "0.50 (0.40 to 0.60)"),
        ("LogLinDQN less DQN", "0.60 (0.50 to 0.70)"),
        ("line only less DQN", "0.10 (0.00 to 0.20)"),
    ):
        table = found.partition(f"{pair}:")[2].partition(":")[0]
        assert f"| at gamma 0.5 |{6 * f' {cell} |'}" in table
    # (10 - 5) / 6, (10 - 9) / 6, (10 - 3) / 6; 8 leaves 2 of 6.
    assert "| 0.5 | tuned | 0.83 | 0.17 |" in found
    assert "| 0.8 | held out | 0.33 | 1.17 |" in found
    assert "| 0.9 | held out | nan | nan |" in found
    start = [
        f"At {of}: no optimistic start loses over half, so that part does it."
        for of in ("0.8, tuned games", "0.8, held out games", "0.9, tuned games")
    ]
    assert found.count("so that part does it.") == len(start)
    assert found.splitlines()[-7:] == [
        "At 0.5 the logarithm does it.",
        *start[:2], "At 0.8 the logarithm is not shown to do it.",
        start[2], "At 0.9 the logarithm is not shown to do it.",
        "At 0.9 LogLinDQN is not called better: held-out games don't show it.",
    ]  # fmt: skip


def test_with_one_head_minatars_numbers_are_loglin_dqns():
    one = data.curves_of("one_head")
    both = data.curves_of("mechanism").query("agent == 'loglin_dqn' and setting == 'gamma=0.5'")
    pairs = one.merge(both, on=["game", "seed", "iteration"])
    assert len(one) == len(pairs) == 3 * 5 * 8
    assert (pairs["mean_return_x"] == pairs["mean_return_y"]).all()


def no_verdict(part, number):
    return f"{part}: {number} of 10 seeds: no verdict before all are there."


def test_there_is_no_verdict_before_all_seeds_are_whole():
    scores = plan_scores("mechanism", mechanism_means)
    for rows, at_05, others in (
        (scores[scores["seed"] < 36], 5, 5),
        (scores[(scores["gamma"] > 0.5) & (scores["seed"] < 40)], 0, 9),
        (scores[:0], 0, 0),
    ):
        found = decisions.decide("mechanism", rows).split("\n\n")
        numbers = {"gamma=0.5": at_05, "gamma=0.8": others, "gamma=0.9": others}
        assert found == [no_verdict(*each) for each in numbers.items()]
    best = plan_scores("best_again", lambda *_: 10.0)
    assert decisions.decide("best_again", best[1:]) == no_verdict("all", 9)


def test_the_mechanism_is_decided_at_each_discount_factor_alone():
    scores = plan_scores("mechanism", mechanism_means)
    at_05 = scores[scores["gamma"] == 0.5]
    one_more = scores[(scores["gamma"] == 0.8) & (scores["seed"] == 31)]
    *_, verdict, at_08, at_09 = decisions.decide("mechanism", pd.concat([at_05, one_more])).split(
        "\n\n"
    )
    assert verdict == "At 0.5 the logarithm does it."
    assert (at_08, at_09) == (no_verdict("gamma=0.8", 1), no_verdict("gamma=0.9", 0))


@pytest.mark.parametrize(
    ("loglin", "dqn", "decided"),
    [
        # The best mean is 10 or 100, so that the interval is 0.099 or 0.0099 either way.
        (10.0, 8.0, "is better than DQN's."),
        (99.5, 100.0, "is as good as DQN's."),
        (96.0, 100.0, "is worse than DQN's."),
        (10.0, 9.6, "is not shown to be as good as DQN's."),
        (95.5, 95.4, "is as good as DQN's."),
    ],
)
def test_the_best_is_decided_as_planned(loglin, dqn, decided):
    means = {"loglin_dqn": loglin, "dqn": dqn}
    scores = plan_scores("best_again", lambda variant, *_: means.get(variant, np.nan))
    assert decisions.decide("best_again", scores).splitlines()[-1] == f"LogLinDQN's best {decided}"


LOGLIN = {0.5: 2.6, 0.8: 3.2, 0.9: 4.0, 0.96: 2.5, 0.99: 1.0}
SNAKE_DQN = {0.5: 0.6, 0.8: 1.4, 0.9: 2.2, 0.96: 2.3, 0.99: 0.7}


def test_runs_that_still_rise_are_continued():
    """The best of ten iterations is the one of gamma 0.9, from its eighth to its tenth."""
    rows = [
        (game, "dqn", gamma, seed, number, value * (1 + offset))
        for game, ends in {"a": (1.0, 1.12), "b": (1.0, 1.09)}.items()
        for gamma, values in ((0.9, [1.0] * 7 + [ends[0], 0.0, ends[1]]), (0.5, [*range(10)]))
        for seed, offset in ((51, -0.5), (52, 0.5))
        for number, value in enumerate(values)
    ]
    curves = pd.DataFrame(
        rows, columns=["game", "agent", "gamma", "seed", "iteration", "mean_return"]
    )
    assert decisions.still_rising(curves[curves["gamma"] == 0.9]) == ["a"]
    assert decisions.still_rising(curves) == ["a", "b"]  # Gamma 0.5 ends higher, and rises.
    later = curves[curves["iteration"] == 9].assign(iteration=10, mean_return=99.0)
    longer = pd.concat([curves, later])
    assert decisions.still_rising(longer[longer["gamma"] == 0.9]) == ["a"]
    # From -1 to -1.12 and -1.09, and from -1.12 and -1.09 to -1.
    below = curves.assign(mean_return=-curves["mean_return"])[curves["gamma"] == 0.9]
    assert decisions.still_rising(below) == []
    falls = below.assign(
        iteration=(16 - below["iteration"]).where(below["iteration"] > 6, below["iteration"])
    )
    assert decisions.still_rising(falls) == ["a"]


def snake(loglin=LOGLIN, dqn=SNAKE_DQN, **first):
    """Five seeds on Snake, the last three 0.1 apart; `first` raises the first two of one mean."""
    rows = [
        ("beyond", "jumanji_games-snake", agent, f"gamma={gamma}", gamma, 51 + number,
         mean + offset + (number < 2) * first.get(f"{agent}_{gamma}", 0))
        for agent, means in (("loglin_dqn", loglin), ("dqn", dqn), ("log_dqn", dqn))
        for gamma, mean in means.items()
        for number, offset in enumerate((0.3, -0.3, 0.1, 0, -0.1))
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=[*data.RUN, "score"])


@pytest.mark.parametrize(
    ("scores", "wins"),
    [
        (snake(), True),
        # Welch's t(0.975, 4), 2.776, times sqrt(2 x 0.01 / 3) is 0.227.
        (snake(dqn=SNAKE_DQN | {0.99: 3.77}), True),
        (snake(dqn=SNAKE_DQN | {0.99: 3.78}), False),
        (snake(loglin=LOGLIN | {0.96: 3.9}), False),
        (snake(**{"loglin_dqn_0.96": 2}), False),  # Its first seeds choose 0.96.
    ],
)
def test_where_a_low_discount_factor_wins(scores, wins):
    one_seed = scores[scores["seed"] == 51].assign(game="Catch-bsuite")
    found = decisions.decide("beyond", pd.concat([scores, one_seed]))
    said = "wins" if wins else "is not shown to win"
    assert f"\njumanji_games-snake: a low discount factor {said}.\n" in found
    # Each game alone.
    assert "\nCatch-bsuite: 1 of 5 seeds: no verdict before all are there." in found
    assert "Catch-bsuite |" not in found


def test_one_deciding_seed_has_no_interval_and_decides_nothing():
    few = snake().query("gamma != 0.99 or agent != 'dqn' or seed < 54")
    assert decisions.low_discounts(few).endswith("a low discount factor is not shown to win.")


def test_differences_at_equal_discount_factors():
    """Of five seeds with variance 0.05: t(0.975, 8), 2.306, times sqrt(2 x 0.05 / 5) is 0.326."""
    assert decisions.equal_discounts(snake(dqn=SNAKE_DQN | {0.5: 0.63})).splitlines()[-2] == (
        "| jumanji_games-snake | loglin_dqn less dqn | 1.970 (1.644 to 2.296)"
        " | 1.800 (1.474 to 2.126) | 1.800 (1.474 to 2.126) | 0.200 (-0.126 to 0.526)"
        " | 0.300 (-0.026 to 0.626) |"
    )
    assert decisions.best_discounts(snake()).splitlines()[-1] == (
        "| jumanji_games-snake | loglin_dqn | 0.9 | 1.40 (1.07 to 1.73) | 0.80 (0.47 to 1.13)"
        " | - | 1.50 (1.17 to 1.83) | 3.00 (2.67 to 3.33) |"
    )


def test_a_discount_factor_that_an_agent_lacks_is_a_dash():
    scores = snake().query("gamma != 0.8 or agent != 'dqn'")

    def row(table, start):
        (line,) = [line for line in table.splitlines() if line.startswith(start)]
        return [
            cell.partition(" (")[0] for cell in line.removeprefix(start).strip("| ").split(" | ")
        ]

    game = "| jumanji_games-snake | "
    less = row(decisions.equal_discounts(scores), f"{game}loglin_dqn less dqn | ")
    assert less == ["2.000", "-", "1.800", "0.200", "0.300"]
    best = row(decisions.best_discounts(scores), f"{game}dqn | ")
    assert best == ["0.96", "1.70", "-", "0.10", "-", "1.60"]


def test_the_table_of_a_low_discount_factor():
    """The last three seeds: t(0.975, 2), 4.303, times sqrt(0.01 / 3) is 0.248; else as above."""
    assert decisions.low_discounts(snake()).splitlines()[2:5:2] == [
        "| jumanji_games-snake | dqn | 0.96 | 2.3 (2.05 to 2.55) | 1.7 (1.47 to 1.93)"
        " | 3.3 (3.07 to 3.53) |",
        "| jumanji_games-snake | loglin_dqn | 0.9 | 4 (3.75 to 4.25) | 1.5 (1.27 to 1.73)"
        " | 3 (2.77 to 3.23) |",
    ]


def test_the_games_beyond_minatar_are_chosen_by_the_rule(monkeypatch):
    """Twice a random policy's return or, where that isn't positive, one deviation more."""
    rows = [
        ("beyond_random", "a", 1.0, 0.5), ("beyond_random", "b", -0.5, 0.75),
        ("beyond_random", "c", -0.5, 0.75), ("beyond_random", "d", 1.0, 9.0),
        ("beyond_choice", "a", 2.0, 0.0), ("beyond_choice", "b", 0.25, 0.0),
        ("beyond_choice", "c", 0.3, 0.0), ("beyond_choice", "d", 1.9, 0.0),
    ]  # fmt: skip
    curves = pd.DataFrame(rows, columns=["stage", "game", "mean_return", "deviation"])
    monkeypatch.setattr(
        data,
        "read",
        lambda _: curves.assign(agent="dqn", setting="", gamma=0.9, seed=0, iteration=5),
    )
    assert [line[-7:].strip("| ") for line in decisions.choice().splitlines()[2:]] == [
        "yes", "no", "yes", "no"
    ]  # fmt: skip
    curves = curves[curves["stage"] == "beyond_choice"]
    with pytest.raises(ValueError, match=r"beyond_curves.csv has no runs of the stage beyond_rand"):
        decisions.choice()
    lacking = curves[:3].assign(stage="beyond_random")
    curves = pd.concat([curves, lacking])
    with pytest.raises(ValueError, match=r"beyond_random is \['d'\]; it must be of the same games"):
        decisions.choice()


def test_agents_are_not_compared_while_a_run_is_missing(tmp_path, monkeypatch, capsys):
    """A discount factor with a missing run would pass for the best one."""
    curves = data.curves_of("confirm")
    is_first = (curves["game"] == "MinAtar/Freeway") & (curves["agent"] == "dqn")
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    for there, begins in ((curves, "LogLinDQN less DQN:"), (curves[~is_first], "Agents are not")):
        there.to_csv(tmp_path / "minatar_curves.csv", index=False)
        minatar.report("confirm", tmp_path)
        assert f"\n{begins}" in capsys.readouterr().out
