"""The program of the study of discount factors."""

import collections
import itertools
import json
import re
from unittest import mock

import numpy as np
import pytest
from minatar_study import analysis, tables

from log_dqn import train_vectorized
from log_dqn.results import discount
from log_dqn.vectorized import start
from tests import programs
from tests.results import synthetic
from tests.scripts import SCRIPTS, commands_of


@pytest.fixture
def study(load):
    return load("discount_study")


HEADER = "stage,game,agent,setting,gamma,seed"


@pytest.mark.parametrize(
    ("row", "there"),
    [
        ("epsilon,MinAtar/Freeway,log_dqn,x,0.96,1", "none"),
        ("main,MinAtar/Freeway,log_dqn,x,0.96,1", "log_dqn"),
    ],
)
def test_no_report_before_both_agents_are_collected(
    study, tmp_path, monkeypatch, capsys, row, there
):
    monkeypatch.setattr(study, "DATA", tmp_path)
    (tmp_path / "minatar_scores.csv").write_text(f"{HEADER},score\n{row},1.5\n")
    (tmp_path / "minatar_curves.csv").write_text(f"{HEADER},iteration,mean_return\n{row},0,1.5\n")
    assert study.main(["report", f"--out={tmp_path / 'figures'}"]) == 2
    line = f"{tmp_path} has no whole seed of two agents in the stage main, but of {there}; train"
    error = capsys.readouterr().err
    assert f": error: {line}" in error and error.count("\n") == 1
    assert not (tmp_path / "figures").exists()


def test_no_report_where_nothing_can_be_written(study, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    for out, allowed in ((tmp_path / "file", "a folder that can be written"), ("", "the name of")):
        assert study.main(["report", f"--out={out}"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"error: out is '{out}'; it must be {allowed}" in line


@pytest.mark.parametrize("command", ["collect main", "gradients", "values"])
def test_no_work_in_a_folder_without_a_name(study, capsys, command):
    with pytest.raises(SystemExit, match="2"):
        study.main([*command.split(), "--results_dir="])
    error = capsys.readouterr().err
    assert "argument --results_dir: '' is not the name of a folder" in error
    assert error.count("\n") == 1


SHORT = 8
STAGES = sorted((SCRIPTS / "minatar_study").glob("*.sh"))
# Of `runaway` no scores are taken; the others are being trained, by docs/reports/plan.md.
UNFINISHED = ("runaway", "mechanism", "best_again")


@pytest.fixture
def planned(monkeypatch, tmp_path):
    """Gives commands to the program; returns the runs that it would train, having checked all."""
    monkeypatch.chdir(tmp_path)
    runs = []

    def create_pool(workload, *_):
        start.check_fits(workload.runner, workload.runs[0].game)
        runs.extend(workload.runs)
        return mock.Mock(failures=[])

    monkeypatch.setattr(start, "create_pool", create_pool)

    def run(commands):
        for name, *arguments in commands:
            programs.forget()
            assert name == "train-vectorized" and train_vectorized.main(arguments) == 0
        return runs

    return run


@pytest.mark.parametrize("path", STAGES, ids=lambda path: path.stem)
def test_a_stage_is_commands_that_train_its_committed_runs(path, stage, tmp_path, planned):
    commands = commands_of(path, tmp_path)
    further = ["--seeds=2-3"]
    assert commands_of(path, tmp_path, *further) == [command + further for command in commands]
    runs = planned(commands)
    assert all(run.agent_name in tables.AGENTS for run in runs)
    assert {run.folder.parts[:3] for run in runs} == {("results", "study", path.stem)}
    assert len({run.folder for run in runs}) == len(runs)
    names = {(r.game, r.agent_name, r.setting.name, r.agent.gamma, r.seed) for r in runs}
    committed = set(stage(path.stem)[tables.RUN[1:]].itertuples(index=False, name=None))
    assert committed <= names
    if path.stem not in UNFINISHED:
        assert committed == names


def test_no_run_is_committed_of_a_stage_that_is_not_there(study):
    scores = tables.read_table(study.DATA / "minatar_scores.csv", tables.SCORES)
    assert set(scores["stage"]) <= {path.stem for path in STAGES}


def write_run(folder, agent, gamma, returns):
    name = {"log_dqn": "VectorizedLogDQNAgent", "dqn": "VectorizedDQNAgent"}[agent]
    synthetic.write_log(folder, returns)
    (folder / "config.json").write_text(
        json.dumps({f"{name}.gamma": gamma, "VectorizedRunner.num_iterations": len(returns)})
    )


def test_what_is_collected_is_reported(study, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(study, "DATA", tmp_path / "data")
    for agent, value in (("log_dqn", 4.0), ("dqn", 2.0)):
        for gamma in (0.5, 0.9):
            folder = tmp_path / "main" / agent / f"gamma={gamma}" / "MinAtar-Breakout" / "1"
            write_run(folder, agent, gamma, [value * gamma] * 20)
    for _ in range(2):  # The same runs again make no other table.
        assert study.main(["collect", "main", f"--results_dir={tmp_path}"]) == 0
    assert len((tmp_path / "data" / "minatar_scores.csv").read_text().splitlines()) == 1 + 4
    assert len((tmp_path / "data" / "minatar_curves.csv").read_text().splitlines()) == 1 + 4 * 20
    short = tmp_path / "floor" / "log_dqn" / "gamma=0.5,k=20" / "MinAtar-Breakout" / "1"
    write_run(short, "log_dqn", 0.5, [2.5] * 8)
    assert study.main(["collect", "floor", f"--results_dir={tmp_path}"]) == 0
    other = tmp_path / "controls" / "dqn" / "gamma=0.9" / "MinAtar-Breakout" / "1"
    write_run(other, "dqn", 0.9, [1.5] * 20)
    assert study.main(["collect", "controls", f"--results_dir={tmp_path}"]) == 0
    capsys.readouterr()
    assert study.main(["report", f"--out={tmp_path / 'figures'}"]) == 0
    said = capsys.readouterr()
    # Beside the main stage's at 0.5 alone: 2 of LogDQN, 1 of DQN.
    assert "| MinAtar/Breakout | dqn | floor |  | 1 | 1 |" in said.out
    assert "| MinAtar/Breakout | dqn | controls |  | 1 | - | 1.5 |" in said.out
    assert "| MinAtar/Breakout | dqn | main |  | 1 | 1 | 1.8 |" in said.out
    assert re.search("^ +k=20 +2.5 +1$", said.out, re.MULTILINE)
    assert "| dqn | MinAtar/Breakout | mean | 1 | 1.8 |" in said.out
    # Of the best mean, 3.6: (2 - 1) / 3.6.
    assert "| at gamma 0.5 | 0.28 | 0.28 |" in said.out
    assert said.err == "" and said.out.count("| claim |") == 1
    other = tmp_path / "controls" / "log_dqn" / "gamma=0.9" / "MinAtar-Breakout" / "1"
    write_run(other, "log_dqn", 0.9, [2.0] * 20)
    assert study.main(["collect", "controls", f"--results_dir={tmp_path}"]) == 0
    assert study.main(["report", f"--out={tmp_path / 'figures'}"]) == 0
    # (2 - 1.5) / 2.
    assert "| at gamma 0.9 | 0.25 | 0.25 |" in capsys.readouterr().out
    names = ["minatar_curves.png", "minatar_gammas.png"]
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == names


def test_nothing_is_written_beside_a_table_that_cannot_be_read(
    study, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(study, "DATA", tmp_path / "data")
    write_run(tmp_path / "main/dqn/gamma=0.5/MinAtar-Breakout/1", "dqn", 0.5, [1.0] * 20)
    curves = tmp_path / "data" / "minatar_curves.csv"
    curves.parent.mkdir()
    curves.write_text("a,b\n")
    assert study.main(["collect", "main", f"--results_dir={tmp_path}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"error: {curves}: the columns are a, b; they must be stage," in line
    assert [path.name for path in curves.parent.iterdir()] == [curves.name]
    assert curves.read_text() == "a,b\n"


@pytest.fixture
def page(study):
    """The pages of the study, one after the other."""
    pages = sorted(study.DATA.parent.glob("minatar*.md"))
    return "\n".join(path.read_text(encoding="utf-8") for path in pages)


@pytest.fixture
def readme(study):
    """The README, on one line."""
    return (study.DATA.parents[1] / "README.md").read_text(encoding="utf-8").replace("\n", " ")


@pytest.fixture
def shown(page):
    """Asserts that a row of cells stands in a table."""
    lines = page.splitlines()

    def shown(*cells, lines=lines):
        assert f"| {' | '.join(map(str, cells))} |" in lines

    return shown


@pytest.fixture
def stage(study):
    """The committed scores of a stage."""
    scores = tables.read_table(study.DATA / "minatar_scores.csv", tables.SCORES)
    return lambda name: scores[scores["stage"] == name]


@pytest.fixture
def curves(study):
    return tables.read_table(study.DATA / "minatar_curves.csv", tables.CURVES)


def spread(values, form=".3g"):
    """Mean, least and greatest."""
    return f"{values.mean():{form}} ({values.min():{form}} to {values.max():{form}})"


def test_the_page_has_the_tables_of_the_committed_scores(page, readme, stage):
    scores = tables.whole(stage("main"))[0]
    # A table ends with an empty line.
    assert analysis.as_markdown(discount.by_gamma(scores)) + "\n" in page
    for pair in itertools.combinations(tables.present(scores), 2):
        assert analysis.as_markdown(analysis.claims(scores, *pair), "game", ".2f") + "\n" in page

    # What the text and the README say of them.
    means = scores.groupby(["agent", "gamma", "game"])["score"].mean()
    share = means / means.groupby("game").max()
    of_agents = (share[agent, 0.5] for agent in ("loglin_dqn", "log_dqn", "dqn"))
    own, logs, its = (f"{x.min():.0%} to {x.max():.0%}" for x in of_agents)
    any_ = "any agent and discount factor on the game"
    said = f"{own} of the best mean return of {any_}, LogDQN {logs}, DQN {its}"
    assert said in page.replace("\n", " ") and said in readme
    best = means.groupby(["agent", "game"]).max()
    ratios = best["loglin_dqn"] / best["dqn"]
    for game, ratio in ratios.rename(lambda game: re.sub("(?<=e)I", " I", game[8:])).items():
        assert re.search(rf"{ratio:.2f}( of DQN's)? on {game}", page.replace("\n ", ""))


def test_the_page_has_what_fresh_seeds_decide(page, readme, stage, curves):
    scores, left_out = tables.whole(stage("confirm"))
    assert left_out == [] and set(scores["seed"]) == {9, 10, 11, 12, 13}
    rows = analysis.claims(scores, "loglin_dqn", "dqn")
    assert analysis.as_markdown(rows, "game", ".2f") + "\n" in page
    page = page.replace("\n", " ")
    (over,) = rows[rows["game"] == discount.OVER_GAMES].itertuples()
    interval = f"({over.low:.2f} to {over.high:.2f})"
    assert f"LogLinDQN's best is {-over.value:.2f} below DQN's {interval}," in page
    assert f"it is {-over.value:.2f} below {interval}," in readme

    curves = curves[curves["stage"] == "confirm"]

    def ratios(part):
        means = part.groupby(["agent", "game"])["mean_return"].mean()
        return means["loglin_dqn"] / means["dqn"]

    first = ratios(curves[curves["iteration"] < 8])
    second = ratios(curves[curves["iteration"] >= 10])
    others = second.drop("MinAtar/Asterix")
    said = (
        f"it has {first.min():.2f} to {first.max():.2f} of DQN's return. In the second half it has "
        f"{second['MinAtar/Asterix']:.2f} of it on Asterix and {others.min():.2f} to "
        f"{others.max():.2f} elsewhere."
    )
    assert second.idxmin() == "MinAtar/Asterix" and said in page


def test_the_page_has_what_fresh_seeds_decide_of_three_steps(page, readme, stage, curves, shown):
    scores = stage("confirm_best")
    for _, of_setting in scores.groupby(["agent", "setting", "game"]):
        assert sorted(of_setting["seed"]) == [14, 15, 16, 17, 18]
    chosen, left_out = tables.whole(analysis.best_settings(scores))
    assert left_out == [] and chosen["setting"].str.contains("update_horizon=3").all()
    rows = analysis.claims(chosen, "loglin_dqn", "dqn")
    assert analysis.as_markdown(rows, "game", ".2f") + "\n" in page
    (over,) = rows[rows["game"] == discount.OVER_GAMES].itertuples()
    said = f"three-step updates {over.value:.2f} above it ({over.low:.2f} to {over.high:.2f})"
    assert said in page.replace("\n", " ") and said in readme

    curves = curves[(curves["stage"] == "confirm_best") & (curves["game"] == "MinAtar/Seaquest")]
    curves = curves[curves["setting"].str.contains("update_horizon=3")]
    halves = curves.groupby([curves["iteration"] < 10, "agent"])["mean_return"].mean()
    first, second = (halves[half, "loglin_dqn"] / halves[half, "dqn"] for half in (True, False))
    last = chosen[chosen["game"] == "MinAtar/Seaquest"].groupby("agent")["score"].mean()
    said = (
        f"{first:.2f} of DQN's return in the first half of the steps, {second:.2f} in the second, "
        f"and {last['loglin_dqn'] / last['dqn']:.2f} in the last tenth"
    )
    assert said in page.replace("\n", " ")

    # With DQN's better number of steps on each game.
    mean = scores.groupby(["agent", "game", "setting"])["score"].transform("mean")
    best = mean.groupby([scores["agent"], scores["game"]]).transform("max")
    rows = analysis.claims(scores[mean == best], "loglin_dqn", "dqn")
    (over,) = rows[rows["game"] == discount.OVER_GAMES].itertuples()
    said = f"games is {over.value:.2f} ({over.low:.2f} to {over.high:.2f})"
    assert said in page.replace("\n", " ")

    settings = analysis.by_setting(scores).sort_values("game").groupby(["agent", "setting"])
    for (agent, setting), rows in settings:
        cells = (f"{row.value:.3g} ({row.low:.3g} to {row.high:.3g})" for row in rows.itertuples())
        shown(tables.AGENTS[agent].name, best_label(f"gamma=0.96,{setting}"), *cells)
    assert len(settings) == 3


BREAKOUT = {
    "": "the study's", "k=10": "**k 10**", "k=20": "**k 20**", "k=50": "k 50",
    "beta_reg=0.1": "beta_reg 0.1", "beta_reg=1": "beta_reg 1", "c=0.5": "c 0.5", "c=2": "c 2",
    "q_init_plus=0.1": "q_init_plus 0.1", "minus_head=False": "without the minus head",
    "epsilon=1e-05": "the paper's, RMSProp",
    "epsilon=1e-09": "the paper's, RMSProp with epsilon 1e-9",
}  # fmt: skip


def test_the_page_has_the_experiments_on_breakout(stage, shown):
    of_settings = stage("breakout").groupby(["agent", "setting"])["score"]
    found = set()
    for (agent, setting), of_seeds in of_settings:
        name = setting.removeprefix("gamma=0.8").strip(",")
        found.add(name)
        assert len(of_seeds) == 3
        shown(tables.AGENTS[agent].name, BREAKOUT[name], spread(of_seeds))
    assert found == set(BREAKOUT) and len(of_settings) == len(BREAKOUT) + 1


STUDYS = {"log_dqn": "beta_log 0.0025, beta_reg 0.3, c 1", "dqn": "learning rate 0.0005"}
PAPERS = "beta_log 0.0025, beta_reg 0.1, c 0.5"


def test_the_page_has_the_tuning(stage, page, shown):
    of_stage = stage("tuning")
    assert "(400,000 agent steps) of seeds 6 to 8," in page
    for _, seeds in of_stage.groupby(["agent", "game", "setting"])["seed"]:
        assert sorted(seeds) == [6, 7, 8]

    rows = analysis.by_setting(of_stage, repetitions=2)
    rows["share"] = rows["value"] / rows.groupby("game")["value"].transform("max")
    places = list(itertools.product(sorted(set(rows["game"])), (0.5, 0.8, 0.99)))
    settings = rows.groupby(["agent", "setting"])
    for (agent, setting), of_setting in settings:
        label = setting.replace("learning_rate", "learning rate").replace("6.25e-05", "0.0000625")
        label = label.replace("=", " ").replace(",", ", ").replace("1e-08", "1e-8")
        label = {STUDYS[agent]: f"**{label}**", PAPERS: f"{label} (the paper's)"}.get(label, label)
        values = of_setting.set_index(["game", "gamma"])["value"].reindex(places)
        cells = ["-" if np.isnan(value) else f"{value:.3g}" for value in values]
        cells.append("-" if "-" in cells else f"{of_setting['share'].mean():.2f}")
        shown(tables.AGENTS[agent].name, label, *cells)
    assert len(settings) == 17


CONTROLS = {
    ("log_dqn", "controls"): "LogDQN | the paper's, RMSProp",
    ("log_dqn", "main"): "LogDQN | the study's, Adam",
    ("dqn", "controls"): "DQN | the Atari baseline's RMSProp",
    ("dqn", "main"): "DQN | the study's, Adam",
}


def test_the_page_has_the_controls(stage, page, shown):
    found = analysis.by_setting(tables.merge(stage("controls"), stage("main"))).sort_values("gamma")
    for game in ("Asterix", "Breakout", "Freeway"):
        for (agent, name), label in CONTROLS.items():
            of_runs = found[["game", "agent", "stage"]] == (f"MinAtar/{game}", agent, name)
            rows = list(found[of_runs.all(axis=1)].itertuples())
            (seeds,) = {row.seeds for row in rows}
            intervals = [f" ({row.low:.3g} to {row.high:.3g})" * (name != "main") for row in rows]
            cells = [f"{row.value:.3g}{part}" for row, part in zip(rows, intervals, strict=True)]
            assert len(cells) == 5
            shown(game, label, seeds, *cells)
    claims = analysis.claims(tables.whole(stage("controls"))[0])
    assert analysis.as_markdown(claims, "game", ".2f") + "\n" in page


SLOW = {
    ("log_dqn", "controls"): "LogDQN, the paper's settings",
    ("dqn", "controls"): "DQN, the Atari baseline's RMSProp",
    ("log_dqn", "main"): "LogDQN, the study's",
    ("dqn", "main"): "DQN, the study's",
}
SLOW_PLACES = list(itertools.product(("MinAtar/Freeway", "MinAtar/Asterix"), (0.96, 0.99)))


def test_the_page_has_how_slow_the_controls_are(curves, shown):
    after = curves[curves["iteration"] == SHORT - 1]
    returns = after.groupby(["agent", "stage", "game", "gamma"])["mean_return"]
    for of_runs, label in SLOW.items():
        of_places = [returns.get_group((*of_runs, *place)) for place in SLOW_PLACES]
        assert [len(of_seeds) for of_seeds in of_places] == [5] * 4
        shown(label, *map(spread, of_places))


def test_the_page_has_the_scan_of_epsilon(stage, shown):
    found = analysis.means(stage("epsilon")).drop(columns="mean").unstack("setting")
    for game, gamma in SLOW_PLACES:
        of_settings = found.loc[(gamma, "log_dqn"), game]
        scan = [
            of_settings[f"epsilon={epsilon}"] for epsilon in ("1e-05", "1e-07", "1e-09", "1e-11")
        ]
        shown(game, f"{gamma:g}", *(f"{mean:.3g}" for mean in scan))


def test_the_page_has_rewards_of_both_signs(stage, shown):
    rows = analysis.by_setting(stage("signs")).sort_values("gamma")
    labels = {
        ("loglin_dqn", ""): "LogLinDQN", ("log_dqn", "minus_head=True"): "LogDQN",
        ("log_dqn", "minus_head=False"): "without the minus head", ("dqn", ""): "DQN",
    }  # fmt: skip
    for name, label in labels.items():
        of_setting = list(rows[(rows[["agent", "setting"]] == name).all(axis=1)].itertuples())
        assert [row.seeds for row in of_setting] == [5] * 5
        shown(label, *(f"{row.value:.2f} ({row.low:.2f} to {row.high:.2f})" for row in of_setting))


@pytest.mark.parametrize(
    ("step_size", "on_breakout", "on_freeway"),
    [
        ("0.00025", "", ""),
        ("0.002 on Breakout, 0.0005 on Freeway", "learning_rate=0.002", "learning_rate=0.0005"),
    ],
)
def test_the_page_has_the_calibration(curves, shown, step_size, on_breakout, on_freeway):
    curves = curves[curves["stage"] == "calibration"]
    cells = []
    for game, setting, length in (("Breakout", on_breakout, 2), ("Freeway", on_freeway, 5)):
        of_game = curves[(curves["game"] == f"MinAtar/{game}") & (curves["setting"] == setting)]
        returns = of_game.pivot(index="seed", columns="iteration", values="mean_return")
        assert returns.shape == (5, 20)
        for last in (10, 20):
            cells.append(spread(returns.loc[:, last - length : last - 1].mean(axis=1), ".1f"))
    shown("here", step_size, 5, *cells)


def test_the_page_has_what_another_k_does(stage, curves, shown):
    means = analysis.means(tables.beside(stage("floor"), curves[curves["stage"] == "main"], SHORT))
    assert means.shape == (11, 6) and not means.isna().to_numpy().any()
    for (gamma, agent, setting), row in means.iterrows():
        name = "DQN" if agent == "dqn" else f"LogDQN, k {setting.removeprefix('k=') or '100'}"
        shown(f"{gamma:g}", name, *(f"{value:.3g}" for value in row))


def loglin_label(settings):
    """How docs/minatar_loglin.md calls a setting of LogLinDQN, given as {'c': '0.1', ...}."""
    loss = {"huber": "Huber", "mse": "squared error"}[settings["loss_type"]]
    label = f"b {settings['linear_above']}, beta_reg {settings['beta_reg']}, {loss}"
    if settings["beta_log"] != "0.0005":
        label += f", beta_log {settings['beta_log']}"
    return label + ", floor 1e-5" * (settings.get("k", "100") != "100")


def test_the_page_has_the_tuning_of_loglin_dqn(stage, curves, page, shown):
    table = stage("loglin_tuning")
    assert set(table["seed"]) == {6}
    expected = collections.defaultdict(dict)
    for row in table.itertuples():
        settings = dict(part.split("=") for part in row.setting.split(","))
        if row.agent == "dqn":
            label = "DQN | learning rate 0.0005, squared error"
        else:
            label = f"LogLinDQN | {loglin_label(settings)}"
        expected[label][row.game, row.gamma] = row.score
    eighth = curves[(curves["stage"] == "main") & (curves["iteration"] == SHORT - 1)]
    of_study = eighth.groupby(["agent", "game", "gamma"])["mean_return"].mean()
    expected["DQN | learning rate 0.0005, Huber"] = of_study["dqn"]
    expected["LogDQN | the study's"] = of_study["log_dqn"]
    lines = page.replace("**", "").splitlines()
    games = ("MinAtar/Asterix", "MinAtar/Breakout", "MinAtar/Freeway")
    places = list(itertools.product(games, (0.5, 0.8, 0.96, 0.99)))
    for label, cells in expected.items():
        found = (f"{cells[place]:.1f}" if place in cells else "-" for place in places)
        shown(label, *found, lines=lines)


def best_label(setting):
    """A setting of the stage `best` as the page names it, without its discount factor."""
    settings = dict(part.split("=") for part in setting.split(","))
    assert settings.pop("gamma") == "0.96"
    label = {"huber": "Huber", "mse": "squared error"}[settings.pop("loss_type", "huber")]
    label += {"1": "", "3": ", 3 steps"}[settings.pop("update_horizon", "1")]
    return ", ".join([label, *(f"{name} {value}" for name, value in settings.items())])


def test_the_page_has_what_makes_the_best_better(stage, shown):
    games = ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
    settings = stage("best").groupby(["agent", "setting"])
    for (agent, setting), of_setting in settings:
        cells = dict.fromkeys(games, "-")
        for game, of_game in of_setting.groupby("game"):
            assert sorted(of_game["seed"]) == [6, 7, 8]
            cells[game.removeprefix("MinAtar/")] = spread(of_game["score"])
        label = best_label(setting).replace("learning_rate", "learning rate")
        shown(tables.AGENTS[agent].name, label, *cells.values())
    assert len(settings) == 12
