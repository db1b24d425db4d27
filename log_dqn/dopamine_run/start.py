"""Starts one run: its configuration, its folder and its runner."""

import collections
import contextlib
import pathlib
import secrets
import shutil
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import gin
import tensorflow as tf

from log_dqn import compat
from log_dqn.checks import is_installed
from log_dqn.cli import environments, settings, shell
from log_dqn.cli import gin_files as files
from log_dqn.dopamine_run import agents, request, runner
from log_dqn.run_folder import configuration, layout, lock


def can_be_filmed() -> bool:
    """Returns whether `log-dqn play` can film what is configured, with what is installed."""
    reference = files.bound("Runner.create_environment_fn", "@create_atari_environment")
    factory = request.configurable(reference)
    if any(name.partition(".")[0] == factory for name in request.GAME_PARAMETERS):
        return True
    # A film imports no module that a run names, and gymnasium's own environments draw by pygame.
    is_own = ":" in str(files.bound(f"{request.GYMNASIUM_FACTORY}.environment_id"))
    is_of_gym = factory in (request.GYMNASIUM_FACTORY, "create_gym_environment")
    return is_of_gym and not is_own and is_installed("pygame")


def configure(written: files.Written) -> None:
    """Makes gin read files and bindings, and checks what only they import."""
    files.read(written)
    settings.check_bound(written)
    name, version = (
        files.bound(f"create_gym_environment.{parameter}")
        for parameter in ("environment_name", "version")
    )
    if isinstance(name, str):
        environments.check_id(f"{name}-{version or 'v0'}")
    agents.check_network_fits(agents.agent_name())


def try_out(written: files.Written) -> dict[str, Any]:
    """Returns the parameters that a run writes, which are those that it reads.

    They are of a run that is thrown away. Gin's own configuration is replaced.
    """
    gin.clear_config()
    configure(written)
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default(), compat.quiet():
        runner.create_runner(folder)
        recorded = configuration.read(pathlib.Path(folder))
    lines = [line for line in written.lines if line.option == "gin_files"]
    settings.check_is_read(lines, runner.operative())
    return recorded


def create_runner(
    base_dir: str,
    lines: Sequence[files.Line],
    restart: bool,
    stack: contextlib.ExitStack,
    as_json: bool = False,
    track: bool = False,
) -> runner.ResumableRunner:
    """Creates a run's folder, locks it, and creates the runner, which must read all lines.

    If that fails, the folder is as before, except for the file of the lock. `restart` removes the
    run in the folder; `stack` releases the lock.
    """
    folder = pathlib.Path(base_dir)
    # No process's number, which the next start in a container would have too.
    old = folder / f".restart-{secrets.token_hex(4)}"
    with contextlib.ExitStack() as undo:
        lock.claim(folder, stack, undo)
        for left in folder.glob(".restart-*"):
            shell.warn("train", f"a --restart that was killed has left the run before it in {left}")
        before, events = layout.files(folder), layout.events(folder)
        if restart:
            request.check_restart(folder)
        if restart and before:
            undo.callback(_put_back, old, folder)
            for path in sorted(before, key=_shows_a_run):
                _move(path, folder, old)
        undo.callback(_remove_files, folder, but=layout.files(folder))
        experiment = runner.create_runner(base_dir, as_json, track)
        settings.check_is_read(lines, runner.operative())
        undo.pop_all()
    if old.exists():
        shutil.rmtree(old)
        line = f"--restart removed the run in {base_dir}: {_summary(before, folder)}"
        print(line, file=sys.stderr if as_json else sys.stdout, flush=True)
    elif not experiment.finished_iterations:
        for path in events:  # TensorBoard would draw both starts as one curve.
            path.unlink()
    return experiment


def _move(path: pathlib.Path, source: pathlib.Path, target: pathlib.Path) -> None:
    """Moves a path in one folder to the same place in another."""
    new = target / path.relative_to(source)
    new.parent.mkdir(parents=True, exist_ok=True)
    path.rename(new)


def _shows_a_run(path: pathlib.Path) -> bool:
    """Returns whether a file lets --restart remove a run: it goes last, and comes back first."""
    return path.name == layout.GIN_CONFIG


def _put_back(old: pathlib.Path, folder: pathlib.Path) -> None:
    for path in sorted(layout.files(old), key=_shows_a_run, reverse=True):
        _move(path, old, folder)
    shutil.rmtree(old)


def _remove_files(folder: pathlib.Path, but: Sequence[pathlib.Path]) -> None:
    for path in layout.files(folder):
        if path in but:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    layout.remove_empty(folder)


def _summary(paths: Sequence[pathlib.Path], folder: pathlib.Path) -> str:
    """Returns, in words, the content of a folder: `2 of checkpoints, config.json`."""
    parts = [path.relative_to(folder).parts for path in paths]
    of_folders = collections.Counter(first for first, *rest in parts if rest)
    counted = [f"{count} of {name}" for name, count in of_folders.items()]
    return ", ".join([*counted, *(first for first, *rest in parts if not rest)])
