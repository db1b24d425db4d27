"""Question 4 of docs/reports/plan.md: Atari with equal optimizers, by the stage `atari_equal`."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from log_dqn.cli import words
from log_dqn.results.request import DQN
from studies import atari

STEPS = 2 * atari.PUBLISHED_STEPS
"""Agent steps of a whole run."""

LARGE, SMALL = "loglin_dqn", "loglin_dqn/epsilon=1e-07"
"""LogLinDQN with RMSProp's epsilon 1e-5, and with 1e-7."""

BETTER = "dqn, its better epsilon"
_DQNS = ("dqn", "dqn/epsilon=1e-07")
_LOW = "gamma=0.8,epsilon=1e-07"
PAIRS = (
    (SMALL, LARGE),
    (_DQNS[1], _DQNS[0]),
    (SMALL, _DQNS[1]),
    (SMALL, BETTER),
    (LARGE, BETTER),
    (f"loglin_dqn/{_LOW}", f"dqn/{_LOW}"),
    (f"loglin_dqn/{_LOW}", SMALL),
    (f"dqn/{_LOW}", _DQNS[1]),
)
"""The agents that are compared."""

EPSILON_GAMES, AGENT_GAMES = ("Alien",), ("Alien", "Breakout")
"""The games that decide the epsilon, and whether LogLinDQN is recommended. Asterix chose epsilon
1e-7, and decides nothing."""

Returns = Mapping[str, Mapping[str, float]]
"""Mean returns of the second 250,000 agent steps by agent, with its setting, and game."""

Points = Mapping[str, np.ndarray]
"""The same of the seeds of the published DQN on TensorFlow, shape [seeds], by game."""


def returns_of(curves: pd.DataFrame) -> Returns:
    """Returns the mean returns of the whole runs of seed 1, `BETTER` among the agents."""
    rows = atari.named(atari.halves(curves))
    rows = rows[(rows["half"] == 1) & (rows["end"] == STEPS) & (rows["seed"] == 1)]
    found = {
        name: dict(zip(of["game"], of["mean_return"], strict=True))
        for name, of in rows.groupby("name")
    }
    large, small = (found.get(name, {}) for name in _DQNS)
    both = large.keys() & small.keys()
    return found | {BETTER: {game: max(large[game], small[game]) for game in both}}


def least(points: np.ndarray, one: float, other: float) -> float:
    """Returns the least difference of two runs that counts, in points per episode.

    Args:
        points: of the game, shape [seeds]: both runs are taken to have their deviation, as a part
            of their mean.
        one: the mean return of a run.
        other: that of another.
    """
    return atari.smallest_difference(points, 1) * max(one, other) / points.mean()


def favoured(returns: Returns, points: Points, one: str, other: str, game: str) -> str:
    """Returns the agent in whose favour the difference on a game counts, or "neither"."""
    own, less = returns[one][game], returns[other][game]
    if not abs(own - less) > least(points[game], own, less):  # NaN for one published seed.
        return "neither"
    return one if own > less else other


def compare(returns: Returns, points: Points) -> Iterator[list[str]]:
    """Yields the rows of the table of differences, for `PAIRS` on the games that have both."""
    yield ["agents", "game", "returns", "least difference that counts", "counts for"]
    for one, other in PAIRS:
        of_one, of_other = returns.get(one, {}), returns.get(other, {})
        for game in sorted(of_one.keys() & of_other.keys()):
            both = of_one[game], of_other[game]
            needed = words.rounded(least(points[game], *both))
            cells = (", ".join(map(words.rounded, both)), needed)
            counts = favoured(returns, points, one, other, game)
            yield [f"{one} against {other}", game, *cells, counts]


def lacking(returns: Returns, agents: Sequence[str], games: Sequence[str]) -> str:
    """Names the scores that a decision needs and that are not there; empty if there are all."""
    needed = ((agent, game) for agent in agents for game in games)
    return "; ".join(f"{of} on {game}" for of, game in needed if game not in returns.get(of, {}))


def chosen_epsilon(returns: Returns) -> str:
    """Returns LogLinDQN with the epsilon that its gin file gets."""
    ratios = [np.log(returns[SMALL][game] / returns[LARGE][game]) for game in EPSILON_GAMES]
    return SMALL if np.mean(ratios) > 0 else LARGE


def decide(curves: pd.DataFrame, found: atari.Published) -> str:
    """Returns the table of differences, and what can be decided with the runs that are there.

    Args:
        curves: committed runs on Atari.
        found: what `atari.published` returns.
    """
    points = {game: of[DQN][:, 1] for game, of in found.items()}
    returns = returns_of(curves)
    said = [words.markdown(list(compare(returns, points)))]
    if missing := lacking(returns, (SMALL, LARGE), EPSILON_GAMES):
        return "\n\n".join(
            [*said, f"The epsilon of loglin_dqn.gin is not decided without {missing}."]
        )
    loglin = chosen_epsilon(returns)
    said.append(f"loglin_dqn.gin gets the epsilon of {loglin}.")
    there = [game for game in AGENT_GAMES if not lacking(returns, (loglin, BETTER), [game])]
    if any(favoured(returns, points, loglin, BETTER, game) != loglin for game in there):
        said.append("LogLinDQN is not recommended over DQN.")
    elif missing := lacking(returns, (loglin, BETTER), AGENT_GAMES):
        said.append(f"Whether LogLinDQN is recommended is not decided without {missing}.")
    else:
        said.append("LogLinDQN is recommended over DQN.")
    return "\n\n".join(said)
