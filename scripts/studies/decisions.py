"""What docs/reports/plan.md decides by the stages `mechanism` and `best_again`."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from log_dqn.program import words
from studies import data
from studies.minatar import by_agent, contrast, contrasts, parts_of, status, without_gamma_in
from studies.stages import planned

LOGLIN, LINE, START, HEAD, DQN = "LogLinDQN", "line only", "no optimistic start", "one head", "DQN"
VARIANTS = {
    ("loglin_dqn", ""): LOGLIN,
    ("loglin_dqn", "linear_above=1e-09,c=1e-09"): LINE,
    ("loglin_dqn", "q_init_plus=0"): START,
    ("loglin_dqn", "minus_head=False"): HEAD,
    ("dqn", ""): DQN,
}
"""The variants of LogLinDQN, by agent and setting without the discount factor."""

Scores = dict[str, np.ndarray]
"""Normalised scores at a discount factor by variant, shape [seeds, games] each."""


def gap_left(scores: Scores, variant: str) -> float:
    """Returns which part of the gap between DQN and LogLinDQN a variant leaves open.

    0 is LogLinDQN's mean, 1 DQN's; NaN if LogLinDQN isn't above DQN, so that there is no gap.
    """
    own, dqn, loglin = (float(scores[name].mean()) for name in (variant, DQN, LOGLIN))
    return (loglin - own) / (loglin - dqn) if loglin > dqn else np.nan


def is_superior(scores: Scores, other: str) -> bool:
    """Returns whether LogLinDQN is superior to another variant."""
    return status(contrast(scores[LOGLIN], scores[other]).difference) == "superior"


def logarithm_does_it(scores: Scores) -> bool:
    """Returns whether LogLinDQN is superior to the line, and that closes less than half the gap."""
    return is_superior(scores, LINE) and gap_left(scores, LINE) > 0.5


def mechanism(scores: pd.DataFrame) -> str:
    """Answers question 1, does the logarithm do it?, with the tables behind the answer."""
    keys = without_gamma_in(scores)[["agent", "setting"]].itertuples(index=False, name=None)
    scores = scores.assign(agent=[VARIANTS[key] for key in keys])
    agents, parts = by_agent(scores), parts_of(sorted(scores["game"].unique()))
    left, said = [["gamma", "games", LINE, START, HEAD]], []
    for gamma in agents[DQN]:
        tuned, held_out = (
            {name: of[gamma][:, parts[part]] for name, of in agents.items()}
            for part in ("tuned", "held out")
        )
        for part, group in (("tuned", tuned), ("held out", held_out)):
            cells = (f"{gap_left(group, name):.2f}" for name in (LINE, START, HEAD))
            left.append([f"{gamma:g}", part, *cells])
            for name in (START, HEAD):
                if gap_left(group, name) > 0.5:
                    said.append(
                        f"At {gamma:g}, {part} games: {name} loses over half, so that part does it."
                    )
        does_it = logarithm_does_it(tuned) and logarithm_does_it(held_out)
        does = "does it" if does_it else "is not shown to do it"
        said.append(f"At {gamma:g} the logarithm {does}.")
        if not is_superior(held_out, DQN):
            said.append(
                f"At {gamma:g} LogLinDQN is not called better: held-out games don't show it."
            )
    return "\n\n".join(
        [
            contrasts(scores, LOGLIN, [LINE, START, HEAD, DQN]),
            "Part of the gap between LogLinDQN (0) and DQN (1) that a variant leaves open:",
            words.markdown(left),
            "\n".join(said),
        ]
    )


def best_again(scores: pd.DataFrame) -> str:
    """Answers question 3, is LogLinDQN's best DQN's?, with the table behind the answer."""
    agents = by_agent(scores)
    (own,), (dqn,) = (agents[name].values() for name in ("loglin_dqn", "dqn"))
    decided = {
        "superior": "is better than DQN's",
        "as good as": "is as good as DQN's",
        "worse": "is worse than DQN's",
        "neither": "is not shown to be as good as DQN's",
    }[status(contrast(own, dqn).difference)]
    return f"{contrasts(scores, 'loglin_dqn', ['dqn'])}\n\nLogLinDQN's best {decided}."


DECISIONS: dict[str, Callable[[pd.DataFrame], str]] = {
    "mechanism": mechanism,
    "best_again": best_again,
}


def decide(stage: str, scores: pd.DataFrame) -> str:
    """Returns the answer by the scores of a stage; before all seeds are whole, how many are."""
    seeds, runs = data.seeds_of(stage), scores.groupby("seed").size()
    whole = [seed for seed in seeds if runs.get(seed, 0) == len(planned(stage))]
    if len(whole) < len(seeds):
        return f"{len(whole)} of {len(seeds)} seeds: no verdict before all are there."
    return DECISIONS[stage](scores)
