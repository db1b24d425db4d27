"""Warns during a run that its values have diverged to their bound."""

from collections.abc import Mapping
from typing import Any

from log_dqn import log_space

RUNAWAY = 0.5
"""Mean share of clipped values in an iteration from which values count as diverged."""


class Watch:
    """Follows the share of clipped values of a run, and warns once when its values have diverged.

    A resumed run may warn again.
    """

    def __init__(self) -> None:
        """Begins with no values."""
        self._shares: list[float] = []
        self._told = False

    def see(self, statistics: Mapping[str, Any]) -> None:
        """Takes the statistics of an update, by their TensorBoard tags."""
        if log_space.CLIPPED in statistics:
            self._shares.append(float(statistics[log_space.CLIPPED]))

    def end_iteration(self) -> str | None:
        """Returns a warning, once, if values have diverged in the iteration that ends here."""
        shares, self._shares = self._shares, []
        if self._told or not shares or sum(shares) / len(shares) < RUNAWAY:
            return None
        self._told = True
        return (
            f"values have diverged: in {sum(shares) / len(shares):.0%} of this iteration's sampled "
            "transitions the bootstrapped value was above its bound, 1 / (1 - gamma); where "
            "good policies reach it, set clip_bootstrap to False; else a lower gamma may help, and "
            "with LogDQN a larger c, or --agent=loglin_dqn"
        )
