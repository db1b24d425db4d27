"""Sets runs beside each other in one table: their protocols, and the experience that counts."""

from collections.abc import Iterable, Sequence

import pandas as pd

from log_dqn.cli import words
from log_dqn.cli.words import counted
from log_dqn.results import labels, protocol
from log_dqn.results.protocol import PUBLISHED
from log_dqn.results.runs import LearningCurve, Notify


def tabulate(curves: Sequence[LearningCurve], agents: Sequence[str]) -> pd.DataFrame:
    """Returns the table of the runs of some agents, in their order, which all else is made of.

    It has a row for each run, with the columns of `LearningCurve`; `length`, the emulator frames of
    an iteration; and `trained`, those of the run.
    """
    curves = sorted(
        (run for run in curves if run.agent in agents), key=lambda run: agents.index(run.agent)
    )
    table = pd.DataFrame(curves, columns=LearningCurve._fields)
    length = [run.protocol.frames_per_iteration for run in curves]
    return table.assign(length=length, trained=table["returns"].map(len) * length)


def frame_skip(rows: pd.DataFrame) -> int | None:
    """Returns the emulator frames of an agent step of some runs; None where that differs."""
    known = {under.frames_an_agent_step for under in rows["protocol"]} - {None}
    skips = known or {PUBLISHED.frames_an_agent_step}
    return skips.pop() if len(skips) == 1 else None


def compare_protocols(table: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Compares protocols with the baselines', or on a game without, with the reference agent's.

    Where that has no runs on such a game, it is the first agent's there.

    Returns:
        The table with `standard`, whose protocol a run's is compared with, and `differs`, a tuple
        of `protocol.Difference`.
    """
    published = {*table.loc[~table["own"], "game"]}
    usual = dict.fromkeys(published, (protocol.BASELINES, "baselines", PUBLISHED))
    of_own = table[~table["game"].isin(published)]
    first = of_own.sort_values("agent", key=lambda agents: agents != reference, kind="stable")
    for run in first.drop_duplicates("game").itertuples():
        updates = None if run.protocol.any_update is None else True
        usual[run.game] = (run.agent, run.agent, run.protocol._replace(any_update=updates))
    standards = [usual[game] for game in table["game"]]
    differs = [
        protocol.differences(run.protocol, standard, whose) if run.own else ()
        for run, (_, whose, standard) in zip(table.itertuples(), standards, strict=True)
    ]
    return table.assign(standard=[whose for whose, *_ in standards], differs=differs)


def strictly(table: pd.DataFrame, note: Notify) -> pd.DataFrame:
    """Leaves out the runs whose protocol differs from the standard."""
    differs = table["differs"].str.len() > 0
    for agent, rows in labels.by_agent(table[differs]).items():
        count = counted(len(rows), "run")
        note(f"{agent}: {count} left out by --strict: {labels.marked_for(rows)}")
    return table[~differs]


def align(
    table: pd.DataFrame, iteration: int | str, human: Iterable[str], note: Notify
) -> pd.DataFrame:
    """Finds the emulator frames up to which returns count.

    Args:
        table: runs; see `tabulate`.
        iteration: see `Request`.
        human: the games that have human scores.
        note: is told what sets the frames.

    Returns:
        The table with `apart`, whether a game has neither human scores nor published runs, and so
        an experience of its own, `until`, the frames, NaN for each run's own end, and `common`,
        `common_words` of them.
    """
    apart = ~table["game"].isin({*human, *table.loc[~table["own"], "game"]})
    until: dict[str, int] = {}
    common: dict[str, str] = {}
    if iteration != "final":
        of_own = ((f"{game}: ", rows) for game, rows in table[apart].groupby("game"))
        for where, rows in (("", table[~apart]), *of_own):
            if len(rows):
                frames = _common_frames(rows, iteration, where, note)
                until |= dict.fromkeys(rows["game"], frames)
                common |= dict.fromkeys(rows["game"], common_words(rows, frames))
    of_games = {
        "until": table["game"].map(until).astype(float),
        "common": table["game"].map(common),
    }
    return table.assign(apart=apart, **of_games)


def _common_frames(rows: pd.DataFrame, iteration: int | str, where: str, note: Notify) -> int:
    """Returns the emulator frames that all runs have, or those of the chosen iteration.

    The former end an iteration of the runs with the longest, if these have one by then.
    """
    if iteration != "common":
        published = rows[~rows["own"]]
        return (int(iteration) + 1) * int((rows if published.empty else published)["length"].max())
    shortest = rows.loc[rows["trained"].idxmin()]
    skip, frames, longest = frame_skip(rows), int(shortest.trained), int(rows["length"].max())
    frames -= frames % longest if frames > longest else 0
    # 198 and 199 (published and own full runs) are as good as equal.
    if frames < 0.95 * rows["trained"].max():
        note(
            f"{where}all are compared after {words.frames(frames, skip)}, "
            f"{common_words(rows, frames)} (set by "
            f"{'/'.join(shortest[['agent', 'game', 'seed']])}); --iteration=final compares each "
            "run at its own end"
        )
    return frames


def common_words(runs: pd.DataFrame, frames: float) -> str:
    """Says what the frames are that runs have in common."""
    setting = runs[runs["trained"] == frames]
    if setting.empty:  # Its last iteration ends later than another's.
        return "the last at which an iteration of all runs ends"
    return f"the last that all {'own ' * bool(setting['own'].any())}runs have"
