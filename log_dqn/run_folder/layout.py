"""Where runs lie, what lies where in a run's folder, and writing what others read of it."""

import contextlib
import os
import pathlib
import pickle
import re
from collections.abc import Mapping
from typing import Any

from log_dqn import games
from log_dqn.run_folder import checkpoints

GIN_CONFIG = "operative_config.gin"
"""The gin configuration in force, in gin's language: to look at, and to run again."""

CONFIG = "config.json"
"""The same as data: values by the parameters' full names."""

LOGS_KEPT = 4
"""Dopamine keeps as many logs; each holds the statistics of all iterations so far."""

# Of Weights & Biases, whose own name for it this is.
_TRACKING = "wandb"

_EVENTS = "events.out.tfevents."

_LOG = re.compile(r"log_(\d+)")

# What a run writes, by folder.
_WRITTEN = {
    folder: re.compile(rf"(\.writing-)?({pattern})")
    for folder, pattern in {
        "": rf"{re.escape(GIN_CONFIG)}|{re.escape(CONFIG)}|{re.escape(_EVENTS)}.*",
        "checkpoints": r"\d+|checkpoint|(tf_)?ckpt[.-]\d+.*|.*_ckpt\.\d+\.gz"
        r"|sentinel_checkpoint_complete\.\d+",
        "logs": _LOG.pattern,
        "metrics": "console|tensorboard",
        "metrics/pickle": r"pickle_\d+\.pkl",
        _TRACKING: ".*",
    }.items()
}

Log = dict[str, dict[str, list[Any]]]
"""Dopamine's log: statistics by name by `iteration_N`."""


def run_dir(
    results_dir: pathlib.Path, agent: str, setting: str, game: str, seed: int
) -> pathlib.Path:
    """Returns where a run lies: `{results_dir}/{agent}[/{setting}]/{game}/{seed}`.

    Without a scan the setting is empty.
    """
    return results_dir / agent / setting / games.folder_name(game) / str(seed)


def results_dir_of(run: pathlib.Path) -> pathlib.Path | None:
    """Returns the folder of results above a run that lies as `run_dir` says, if there is one."""
    above = list(run.parents)[1:]
    if above and "=" in above[0].name:  # A setting of a scan.
        del above[0]
    return above[1] if len(above) > 1 else None


def find_runs(results_dir: pathlib.Path) -> list[tuple[str, str, str, pathlib.Path]]:
    """Lists (agent[/setting], game folder, seed, path) of each run under a results folder.

    One that failed before its first log is a run too, and has a configuration.
    """
    found = []
    for pattern in ("*/*/*", "*/*=*/*/*"):
        for path in sorted(results_dir.glob(pattern)):
            if os.path.isdir(path / "logs") or os.path.isfile(path / CONFIG):
                *agent, game, seed = path.relative_to(results_dir).parts
                found.append(("/".join(agent), game, seed, path))
    return found


def closed_folders(results_dir: pathlib.Path) -> list[pathlib.Path]:
    """Lists what `find_runs` cannot look into: folders of runs, and above, closed to the user."""
    return [
        path
        for pattern in ("[!.]*", "[!.]*/*", "[!.]*/*/*", "[!.]*/*=*/*/*")
        for path in sorted(results_dir.glob(pattern))
        if os.path.isdir(path) and not os.access(path, os.R_OK | os.X_OK)
    ]


def files(folder: pathlib.Path) -> list[pathlib.Path]:
    """Returns what a run writes into its folder, ours or Dopamine's, as far as it is there.

    What else lies there is the user's. A folder that is a link counts as one file.
    """
    found: list[pathlib.Path] = []
    for name, pattern in _WRITTEN.items():
        place = folder / name
        if any(parent in found for parent in (place, *place.parents)):
            continue
        if name and place.is_symlink():
            found.append(place)
        elif place.is_dir():
            found += sorted(path for path in place.iterdir() if pattern.fullmatch(path.name))
    return found


def events(folder: pathlib.Path) -> list[pathlib.Path]:
    """Returns the files with TensorBoard's events of a run that has begun in a folder."""
    present = files(folder)
    begun = {folder / GIN_CONFIG, folder / CONFIG} <= set(present)
    return [path for path in present if begun and path.name.startswith(_EVENTS)]


def is_run(folder: pathlib.Path) -> bool:
    """Returns whether a folder is a run's, which --restart may remove."""
    return os.path.lexists(folder / GIN_CONFIG)


def has_folders(folder: pathlib.Path) -> bool:
    """Returns whether a folder has one of those that a run has, whatever is in it."""
    return any(os.path.lexists(folder / name) for name in _WRITTEN if name)


def remove_empty(folder: pathlib.Path) -> None:
    """Removes the folders within a run's that hold nothing."""
    for name in reversed(_WRITTEN):
        if name and not (folder / name).is_symlink():
            with contextlib.suppress(OSError):
                (folder / name).rmdir()


def tracking_id(folder: pathlib.Path) -> pathlib.Path:
    """Returns the file with the name by which Weights & Biases knows a run."""
    return folder / _TRACKING / "run_id"


def checkpoints_dir(folder: pathlib.Path) -> pathlib.Path:
    """Returns where a run's checkpoints lie."""
    return folder / "checkpoints"


def log_path(folder: pathlib.Path, iteration: int) -> pathlib.Path:
    """Returns where the log lies that is written after an iteration."""
    return folder / "logs" / f"log_{iteration}"


def logs(folder: pathlib.Path) -> list[pathlib.Path]:
    """Lists a run's logs, `logs/log_N`, the newest first."""
    place = folder / "logs"
    numbers = [
        (int(match[1]), path)
        for path in (place.iterdir() if place.exists() else ())
        if (match := _LOG.fullmatch(path.name))
    ]
    return [path for _, path in sorted(numbers, reverse=True)]


def results(entry: Mapping[str, list[Any]]) -> list[str]:
    """Returns, in words, each phase's mean return in an iteration's entry of Dopamine's log."""
    return [
        f"{mode} return {entry[f'{mode}_average_return'][0]:.2f} "
        f"({episodes} episode{'s' * (episodes != 1)})"
        for mode in ("train", "eval")
        if f"{mode}_average_return" in entry
        for episodes in [len(entry[f"{mode}_episode_returns"])]
    ]


def write_log(folder: pathlib.Path, log: Log, iteration: int, kept: int = LOGS_KEPT) -> None:
    """Writes Dopamine's `logs/log_N` whole or not at all, and removes an old one: `kept` stay.

    The log holds statistics of all iterations up to `iteration`.
    """
    _write_pickle(log_path(folder, iteration), log)
    log_path(folder, iteration - kept).unlink(missing_ok=True)


def write_metrics(
    folder: pathlib.Path, metrics: dict[str, dict[str, list[Any]]], iteration: int
) -> None:
    """Writes `metrics/pickle/pickle_N.pkl`, values by tag by `iteration_N`, as Dopamine does."""
    _write_pickle(folder / "metrics" / "pickle" / f"pickle_{iteration}.pkl", metrics)


def next_metrics_number(folder: pathlib.Path) -> int:
    """Returns the number of the next file of metrics."""
    written = (folder / "metrics" / "pickle").glob("pickle_*.pkl")
    numbers = [int(path.stem.removeprefix("pickle_")) for path in written]
    return max(numbers, default=-1) + 1


def _write_pickle(path: pathlib.Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    checkpoints.replace_file(path, pickle.dumps(data, protocol=pickle.HIGHEST_PROTOCOL))


def newest_checkpoint(
    folder: pathlib.Path, report: checkpoints.Report, remedy: str
) -> tuple[pathlib.Path, dict[str, Any]] | None:
    """Returns folder and manifest of a run's newest usable checkpoint; None if it has none yet.

    `report` and `remedy` are those of `checkpoints.newest_usable`.

    Raises:
        checkpoints.CheckpointError: if there are checkpoints or logs, but nothing to resume from.
    """
    root = checkpoints_dir(folder)
    newest = checkpoints.newest_usable(root, report, remedy)
    if newest is not None:
        return root / str(newest[0]), newest[1]
    if any(_LOG.fullmatch(path.name) for path in (folder / "logs").glob("*")):
        raise checkpoints.CheckpointError(f"{folder} has logs but no checkpoint; {remedy}")
    return None
