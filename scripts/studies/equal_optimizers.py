"""What docs/reports/plan.md decides by the stage `atari_equal`: Atari with equal optimizers."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from log_dqn.cli import words
from log_dqn.results.request import DQN
from studies import atari
from studies.stages import planned

STAGE = "atari_equal"
STEPS = 2 * atari.PUBLISHED_STEPS
"""Agent steps of a whole run."""

_SMALL, _LOW = "/epsilon=1e-07", "/gamma=0.8,epsilon=1e-07"
_LOGLIN, _DQN = f"loglin_dqn{_SMALL}", f"dqn{_SMALL}"
PAIRS = (
    (_LOGLIN, "loglin_dqn"),
    (_DQN, "dqn"),
    (_LOGLIN, _DQN),
    (_LOGLIN, "dqn"),
    (f"loglin_dqn{_LOW}", f"dqn{_LOW}"),
    (f"loglin_dqn{_LOW}", _LOGLIN),
    (f"dqn{_LOW}", _DQN),
)
"""The agents that are compared, the first less the second."""

CHOSE = "Asterix"
"""The game that chose epsilon 1e-7, and so doesn't judge it."""

Returns = Mapping[str, Mapping[str, float]]
"""Mean returns of the second 250,000 agent steps by agent and game."""


def returns_of(curves: pd.DataFrame) -> Returns:
    """Returns the mean returns of the whole runs of seed 1, by agent with its setting and game."""
    rows = atari.named(atari.halves(curves))
    rows = rows[(rows["half"] == 1) & (rows["end"] == STEPS) & (rows["seed"] == 1)]
    return {
        name: of.set_index("game")["mean_return"].to_dict() for name, of in rows.groupby("name")
    }


def needed(points: np.ndarray, one: float, other: float) -> float:
    """Returns the least difference of two runs that counts, in points per episode.

    Args:
        points: the published DQN's seeds, shape [seeds], whose deviation, as a part of their mean,
            both runs are taken to have.
        one: the mean return of a run.
        other: that of another.
    """
    return atari.smallest_difference(points, 1) * max(one, other) / points.mean()


def compared(returns: Returns, points: Mapping[str, np.ndarray]) -> Iterator[list[str]]:
    """Yields the rows of the table of differences, of `PAIRS` on the games that have both."""
    yield ["agents", "game", "returns", "difference", "needed", "counts"]
    for one, other in PAIRS:
        of_one, of_other = returns.get(one, {}), returns.get(other, {})
        for game in sorted(of_one.keys() & of_other.keys()):
            own, less = of_one[game], of_other[game]
            least = needed(points[game], own, less)
            numbers = map(words.rounded, (own - less, least))
            both = f"{words.rounded(own)}, {words.rounded(less)}"
            counts = "yes" if abs(own - less) > least else "no"
            yield [f"{one} less {other}", game, both, *numbers, counts]


def chosen_epsilon(returns: Returns) -> str:
    """Says which epsilon `loglin_dqn.gin` gets, by the games other than `CHOSE`."""
    small, large = returns[_LOGLIN], returns["loglin_dqn"]
    judges = sorted((small.keys() & large.keys()) - {CHOSE})
    ratio = np.mean([np.log(small[game] / large[game]) for game in judges])
    epsilon = "1e-7" if ratio > 0 else "1e-5"
    on = ", ".join(judges)
    return f"Mean log ratio of LogLinDQN's epsilon 1e-7 to 1e-5 on {on}: {ratio:.3f}, so {epsilon}."


def recommended(returns: Returns, points: Mapping[str, np.ndarray]) -> str:
    """Says on how many games LogLinDQN beats DQN with the better of DQN's two epsilons."""
    games = sorted(returns[_LOGLIN].keys() & returns[_DQN].keys() & returns["dqn"].keys())
    better: list[str] = []
    worse: list[str] = []
    for game in games:
        own, dqn = returns[_LOGLIN][game], max(returns[_DQN][game], returns["dqn"][game])
        if abs(own - dqn) > needed(points[game], own, dqn):
            (better if own > dqn else worse).append(game)
    return (
        f"LogLinDQN less DQN with the better epsilon counts on {len(better)} of {len(games)} games "
        f"in favour ({', '.join(better) or 'none'}), and on {len(worse)} against it "
        f"({', '.join(worse) or 'none'})."
    )


def decide(curves: pd.DataFrame, found: atari.Published) -> str:
    """Answers question 4, what holds on Atari with equal optimizers?, with the table behind it.

    Args:
        curves: committed runs on Atari.
        found: what `atari.published` returns.
    """
    points = {game: of[DQN][:, 1] for game, of in found.items()}
    returns = returns_of(curves)
    runs = [(f"{agent}/{setting}", game) for game, agent, setting in planned(STAGE)]
    whole = sum(game in returns.get(name, {}) for name, game in runs)
    said = [words.markdown(list(compared(returns, points)))]
    if whole < len(runs):
        said.append(f"{whole} of {len(runs)} runs: no verdict before all are there.")
    else:
        said += [chosen_epsilon(returns), recommended(returns, points)]
    return "\n\n".join(said)
