"""What the site has beside the pages in docs/: those of the top level, the API, a style."""

import pathlib
import re
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOP_LEVEL = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")

# Pages of the API: a heading, a sentence or two, and what is shown there, from the docstrings.
API = {
    "index": (
        "From Python",
        "The agents are classes of Dopamine's kind, and the update is plain mathematics beside "
        "them. [An example](../README.md#from-python) plays with both agents.\n\n"
        "| page | what is there |\n|---|---|\n"
        "| [trained agents](trained.md) | `log_dqn.load`, and what it returns |\n"
        "| [agents](agents.md) | `LogDQNAgent` on TensorFlow, `JaxLogDQNAgent` on JAX |\n"
        "| [the update](log_space.md) | `log_dqn.log_space`: targets, errors and greedy actions |\n"
        "| [the mapping](mapping.md) | `log_dqn.mapping`: from values to the log space and back |\n"
        "| [heads](heads.md) | two output heads on a network of Dopamine's |\n"
        "| [games](games.md) | Atari and MinAtar as the agents play them, and quiet imports |",
        (),
    ),
    "trained": (
        "Trained agents",
        "[From Python](../python.md) shows how to use them.",
        (
            "log_dqn.load",
            "log_dqn.film.players.TrainedAgent",
            "log_dqn.film.players.Values",
            "log_dqn.film.evaluation",
        ),
    ),
    "agents": (
        "The agents",
        "Each takes every parameter of Dopamine's `DQNAgent` or `JaxDQNAgent`, which `dopamine` "
        "stands for in the signatures below, then those of "
        "[LogUpdate](log_space.md#log_dqn.log_space.LogUpdate), which `log_update` stands for, "
        "such as `gamma`, `k` and `c`; then its own. Import `log_dqn` first: it makes Dopamine "
        "importable.",
        ("log_dqn.tf.log_dqn_agent.LogDQNAgent", "log_dqn.jax.log_dqn_agent.JaxLogDQNAgent"),
    ),
    "log_space": (
        "The update",
        "The whole update of LogDQN, for NumPy, TensorFlow and JAX.",
        ("log_dqn.log_space",),
    ),
    "mapping": (
        "The mapping",
        "The mapping between the ordinary value space and the log space.",
        ("log_dqn.mapping",),
    ),
    "heads": (
        "Heads",
        "Networks with one head for positive and one for negative rewards.",
        ("log_dqn.tf.heads", "log_dqn.jax.heads"),
    ),
    "games": (
        "Games, and quiet imports",
        "What the example in the README uses beside the agents.",
        (
            "log_dqn.atari.create_environment",
            "log_dqn.minatar.create_environment",
            "log_dqn.compat.quiet",
        ),
    ),
}

STYLE = """
/* Tables of many columns get what room there is; wider ones scroll by themselves. */
.md-typeset table:not([class]) { font-size: 0.6rem; }
.md-typeset table:not([class]) :is(th, td) { padding: 0.5em 0.7em; min-width: 0; }
.md-typeset table:not([class]) :is(th, td):first-child { min-width: 4rem; }
.md-typeset table:not([class]) :is(th, td):nth-child(2) { min-width: 6rem; }
.md-typeset table:not([class]) :is(th, td):last-child { min-width: 4.5rem; }
.md-typeset table:not([class]) td:has(> code) { min-width: 9rem; }
.md-typeset table:not([class]) :is(th, td):has(img) { min-width: 9rem; }
.md-typeset table:not([class]) td:first-child > code { white-space: nowrap; }
.md-typeset :is(th, td) img { height: auto; max-height: 330px; width: auto; }
"""


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages of the top level, the API and the style."""
    for name in TOP_LEVEL:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    for name, (heading, text, shown) in API.items():
        parts = [f"# {heading}", text, *(f"::: {module}" for module in shown)]
        files.append(File.generated(config, f"api/{name}.md", content="\n\n".join(parts) + "\n"))
    files.append(File.generated(config, "site.css", content=STYLE))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Has links between docs/ and the top level lead to where the pages are on the site."""
    uri = page.file.src_uri
    if uri in TOP_LEVEL:
        markdown = re.sub(r"(\]\(|src=\")docs/", r"\1", markdown)
        return re.sub(r"\]\(log_dqn/(\w+)\.py\)", r"](api/\1.md)", markdown)
    if uri.startswith("reports/"):
        return markdown.replace("](../../", "](../")
    if not uri.startswith("api/"):
        markdown = re.sub(r"\]\(\.\./log_dqn/(\w+)\.py\)", r"](api/\1.md)", markdown)
        return markdown.replace("](../", "](")
    return markdown
