"""The documents: what they link to and name exists, and their examples run as printed."""

import importlib
import importlib.metadata
import pathlib
import re
import runpy
import shlex
import sys

import pytest

import log_dqn
from log_dqn import games, train, train_vectorized
from log_dqn.commands.main import COMMANDS
from log_dqn.dopamine_run import request as dopamine_request
from log_dqn.vectorized import request as vectorized_request
from tests.programs import CARTPOLE, ROOT, iterations, python

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/reports/*.md")])
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text("utf-8") for page in PAGES}
README = TEXTS["README.md"]


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return [
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    ]


def code(text):
    """The blocks of code and the code within lines."""
    return re.findall(r"```.*?```|`[^`]+`", text, re.DOTALL)


PROGRAMS = [
    *(f"log-dqn {name}" for name in ("train", "train-vectorized", "sweep", "compare", "play")),
    *("log-dqn evaluate", "log-dqn figures"),
    *(f"scripts/{name}.py" for name in ("benchmark", "check_versions", "study")),
]


def help_of(program, capsys):
    if program.startswith("scripts/"):
        main = runpy.run_path(str(ROOT / program))["main"]
    else:
        main = importlib.import_module(COMMANDS[program.removeprefix("log-dqn ")].module).main
    with pytest.raises(SystemExit):
        main(["--help"])
    return set(re.findall(r"--[a-z_-]+", capsys.readouterr().out))


@pytest.mark.parametrize("name", TEXTS)
def test_links_and_pictures_exist(name):
    links = re.findall(r"\]\(([^)]+)\)|src=\"([^\"]+)\"", TEXTS[name])
    missing = []
    for target in (markdown or html for markdown, html in links):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        page = (ROOT / name).parent / path if path else ROOT / name
        if not page.exists() or (anchor and anchor not in anchors(page)):
            missing.append(target)
    assert missing == []


def test_every_page_and_picture_is_reached_from_the_readme():
    reached, to_read = set(), [ROOT / "README.md"]
    while to_read:
        page = to_read.pop()
        reached.add(page)
        if page.suffix == ".md":
            links = re.findall(r"\]\(([^)#]+)|src=\"([^\"]+)\"", page.read_text("utf-8"))
            linked = {(page.parent / (a or b)).resolve() for a, b in links if "://" not in a + b}
            to_read += linked - reached
    assert {*PAGES, *ROOT.glob("docs/figures/*.png")} <= reached


@pytest.mark.parametrize("name", [name for name in TEXTS if name.startswith("docs/")])
def test_a_page_begins_with_what_it_is_for(name):
    lines = TEXTS[name].splitlines()
    assert lines[0].startswith("# ") and lines[1] == ""
    # A sentence or two, then the shortest command, or the table that the page is for.
    first, *_ = "\n".join(lines[2:]).split("\n\n")
    assert re.match(r"[A-Z`].*[.:)]$", first, re.DOTALL) and "\n|" not in first
    assert [line for line in lines[3:15] if line.startswith(("```", "| "))]


def test_the_guide_and_the_reports_are_short():
    def words(pattern):
        return sum(len(page.read_text("utf-8").split()) for page in ROOT.glob(pattern))

    assert len(README.splitlines()) <= 130
    assert len(list(ROOT.glob("docs/*.md"))) <= 12
    assert words("docs/*.md") <= 9_000 and words("docs/reports/*.md") <= 9_000


# Words that a native reader stumbles over here, or that say nothing to a newcomer.
REFUSED = re.compile(
    r"\b(mends?|mended|wants|whoever|at hand|another than|beside other work|told apart|likewise|"
    r"nor was|as those do|of which one|run away|at chance|beyond chance|may be chance)\b"
)


def sentences(text):
    """The sentences of a page without code, tables and headings."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)|`[^`]*`", r"\1", text)
    blocks = re.split(r"\n\s*\n|\n(?=[-*] |\d+\. |#)", text)
    plain = [
        " ".join(line for line in block.splitlines() if not line.startswith(("|", "    ", "#")))
        for block in blocks
    ]
    return [sentence for block in plain for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z])", block)]


# The plan is left as it was committed before the runs.
@pytest.mark.parametrize("name", [name for name in TEXTS if name != "docs/reports/plan.md"])
def test_sentences_are_short_and_plain(name):
    lengths = {sentence: len(sentence.split()) for sentence in sentences(TEXTS[name])}
    assert [sentence for sentence in lengths if lengths[sentence] > 35] == []
    spoken = [length for length in lengths.values() if length > 1]
    assert sum(spoken) / len(spoken) <= 18
    assert REFUSED.findall(" ".join(lengths)) == []


@pytest.mark.parametrize("name", TEXTS)
def test_files_that_a_page_names_exist(name):
    parts = "\n".join(code(TEXTS[name]))
    named = re.findall(r"(?<![\w/.{}-])(?:log_dqn|scripts|tests|configs|docs)/[\w/-]+\.\w+", parts)
    gin = [f"configs/{file}" for file in re.findall(r"(?<![\w/{}-])\w+\.gin\b", parts)]
    own = {"configs/operative_config.gin", "configs/my_agent.gin"}  # That a run or a user writes.
    assert [path for path in named + gin if path not in own and not (ROOT / path).exists()] == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_flags_in_commands_exist(program, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["program"])
    known = help_of(program, capsys)
    commands = [
        command
        for text in TEXTS.values()
        for part in code(text)
        for command in re.findall(rf"{re.escape(program)}(?![\w.-])(.*)", part.replace("\\\n", ""))
    ]
    assert commands
    used = {flag for command in commands for flag in re.findall(r"(?<!\S)--[a-z_-]+", command)}
    assert used <= known


TRAININGS = {
    command.strip("`")
    for text in TEXTS.values()
    for part in code(text)
    for command in re.findall(r"log-dqn (train.* --.*_dir=.*)", part.replace("\\\n", ""))
    if "$" not in command
}


@pytest.mark.parametrize("command", sorted(TRAININGS))
def test_settings_in_commands_can_be_read(command, tmp_path, monkeypatch):
    for module in ("corridor", "jax_corridor"):  # The pages' own environments.
        (tmp_path / f"{module}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    program, *flags = shlex.split(command, comments=True)
    parser = {"train": train, "train-vectorized": train_vectorized}[program].create_parser()
    args = parser.parse_args(flags)
    settings = args.gin_files, args.gin_bindings
    if program == "train":
        dopamine_request.parse(*settings, args.agent, args.game, args.seed, args.env)
    else:
        game = args.env or games.select_to_train(args.games.split(","))[0]
        vectorized_request.parse(*settings, args.agent, game, args.scan)


@pytest.mark.parametrize(
    ("page", "program"),
    [
        ("docs/training.md", "log-dqn train"),
        ("docs/vectorized.md", "log-dqn train-vectorized"),
        ("docs/sweeps.md", "log-dqn sweep"),
        ("docs/results.md", "log-dqn compare"),
        ("docs/films.md", "log-dqn play"),
        ("docs/films.md", "log-dqn evaluate"),
    ],
)
def test_a_page_describes_every_flag_of_its_program(page, program, capsys):
    known = help_of(program, capsys)
    described = set(re.findall(r"--[a-z_-]+", "\n".join(code(TEXTS[page]))))
    assert known - described == {"--help", "--version"} & known


def test_the_test_command_stands_where_ci_reads_it():
    block = re.search(r"<!-- test command -->\n```bash\n(.*)\n```", README)
    assert block[1].startswith("python3 -m venv .venv") and block[1].endswith("-m pytest")


def test_the_version_stands_once_beside_the_citations():
    number = log_dqn.__version__
    found = [
        path
        for path in (*ROOT.glob("*.py"), *ROOT.glob("log_dqn/**/*.py"))
        if f'"{number}"' in path.read_text("utf-8")
    ]
    assert found == [ROOT / "log_dqn" / "__init__.py"]
    assert f"version = {{{number}}}" in README
    assert f"\nversion: {number}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


def test_the_installed_package_has_the_version_and_its_types():
    try:
        distribution = importlib.metadata.distribution("log_dqn")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("log_dqn is not installed")
    assert distribution.version == log_dqn.__version__
    assert pathlib.Path(log_dqn.__file__).with_name("py.typed").is_file()


EXAMPLES = {
    f"{name}, {number}": example
    for name, text in TEXTS.items()
    for number, example in enumerate(re.findall(r"```python\n(.*?)```", text, re.DOTALL), 1)
}


@pytest.mark.slow
# The two environments are imported and trained on in `tests/vectorized/test_start.py`.
@pytest.mark.parametrize("name", [name for name in EXAMPLES if "environments" not in name])
def test_python_examples_run_as_printed(name, tmp_path):
    process = python("-c", EXAMPLES[name], cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    # Dopamine's own runner writes lines of its log.
    assert process.stderr == "" or name.startswith("docs/python.md")
    if name == "README.md, 1":
        lines = process.stdout.splitlines()
        assert [line.split(" chose action ")[0] for line in lines] == [
            "LogDQNAgent",
            "JaxLogDQNAgent",
        ]
        assert all(0 <= int(line.split()[-1]) < 6 for line in lines)


@pytest.mark.slow
def test_the_agent_that_is_shown_trains_and_is_evaluated(tmp_path):
    _, page = TEXTS["docs/python.md"].split("## An agent of your own")
    blocks = re.findall(r"```\w*\n(.*?)```", page, re.DOTALL)
    for name, text in zip(("my_agent.py", "my_agent.gin", "mine.py"), blocks, strict=False):
        (tmp_path / name).write_text(text)
    commands = re.findall(r"^python (mine\.py .*)", page, re.MULTILINE)
    for command, sizes in zip(
        commands, ([*CARTPOLE[1:], iterations(1)], ["--episodes=1"]), strict=True
    ):
        process = python(*command.split(), *sizes, cwd=tmp_path)
        assert process.returncode == 0, process.stderr
    assert "mean return" in process.stdout
    config = (tmp_path / "results/my_agent/CartPole/1/operative_config.gin").read_text()
    assert "MyAgent.my_parameter = 0.2" in config and "LogDQNAgent.gamma = 0.9\n" in config


def test_the_environment_that_is_shown_draws_itself_for_a_film():
    shown = {}
    exec(EXAMPLES["docs/environments.md, 1"], shown)
    corridor = shown["Corridor"]()
    assert "rgb_array" in corridor.metadata["render_modes"]
    cell, _ = corridor.reset(seed=1)
    screen = corridor.render()
    # Its cell alone is white, 16 pixels of 160.
    assert screen[:, 16 * cell : 16 * (cell + 1)].mean() == 255 and screen.mean() == 25.5
