"""Checks the configurations of a sweep, and finds out how long the runs are.

But for requests and machines, it runs in a process of its own, because it imports TensorFlow and
fills gin's global configuration.
"""

import itertools
import pathlib
import re
import socket
from collections.abc import Collection, Sequence
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import gin

from log_dqn import checks, compat, games, scan
from log_dqn.cli import gin_files, threads
from log_dqn.cli.shell import explain
from log_dqn.dopamine_run import request as dopamine_request
from log_dqn.sweeps import plan
from log_dqn.vectorized import request as vectorized_request

# Files in /dev where there are GPUs, or what Ray takes for such; it counts them once it is started.
_GPUS = ("nvidia[0-9]*", "kfd", "dri", "accel*", "vfio")


class SweepOptions(NamedTuple):
    """Options of the sweep, its games or environments, and whether it is vectorized."""

    agents: list[str]
    scans: list[str]
    gin_files: list[str]
    gin_bindings: list[str]
    games: list[str]
    vectorized: bool

    @property
    def unlike(self) -> list[str]:
        """All environments, or one of the games, whose configurations are alike."""
        return self.games[:1] if self.games[0] in games.KNOWN else self.games


def check_requests(options: SweepOptions) -> None:
    """Checks the options of each agent's runs as far as possible without importing the agents."""
    for game, agent in itertools.product(options.unlike, options.agents):
        _written(options, agent, game, options.gin_bindings, options.scans)


def check_machines(
    ray_address: str | None, cpus_per_run: float, gpus_per_run: float | None = None
) -> None:
    """Checks, without importing Ray, what runs are to be trained on; see `cluster.connect`.

    A machine that is used alone must have the CPUs and GPUs of a run.
    """
    if ray_address is None:
        most = threads.cores()
        allowed = f"at most {most}, the CPUs that may be used here"
        checks.check("cpus_per_run", cpus_per_run, cpus_per_run <= most, allowed)
        has_gpus = any(any(pathlib.Path("/dev").glob(files)) for files in _GPUS)
        allowed = "0, since there is no GPU here"
        checks.check("gpus_per_run", gpus_per_run, has_gpus or not gpus_per_run, allowed)
    elif ray_address != "auto":
        host, _, port = ray_address.rpartition(":")
        is_address = host and "://" not in host and port.isdecimal() and 0 < int(port) < 65536
        allowed = "auto, or the HOST:PORT of a Ray head node"
        checks.check("ray_address", ray_address, bool(is_address), allowed)
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
        except (OSError, UnicodeError) as error:  # A host's name may not be one.
            reason = getattr(error, "strerror", None) or error
            allowed = f"the address of a Ray head node that is running ({reason})"
            checks.check("ray_address", ray_address, False, allowed)


def _written(
    options: SweepOptions, agent: str, game: str, bindings: Sequence[str], scans: Sequence[str]
) -> gin_files.Written:
    """Returns what an agent's runs are to read of gin, with each scan's first value."""
    given = options.gin_files, bindings
    if options.vectorized:
        return vectorized_request.parse(*given, agent, game, scans)
    where = plan.game_or_env(game)
    written = dopamine_request.parse(*given, agent=agent, scans=scans, **where).written
    gin_files.check_left_out(written, dopamine_request.SEED, "seed")
    return written


def _settings(written: gin_files.Written, scans: Sequence[str], to_read: Collection[str]) -> list:
    """Returns the settings of an agent's vectorized runs, which must read lines of some options."""
    from log_dqn.vectorized import start

    gin.clear_config()
    gin_files.read(written)
    return start.read_settings([line for line in written.lines if line.option in to_read], scans)


def _lengths(
    options: SweepOptions, agent: str, bindings: Sequence[str], scans: Sequence[str]
) -> list[tuple[int, int]]:
    """Checks an agent's settings in the grid of some scans; returns each one's lengths."""
    game = options.games[0]
    if options.vectorized:
        from log_dqn.vectorized.start import check_fits

        written = _written(options, agent, game, bindings, scans)
        found = _settings(written, scans, ["gin_files", "gin_bindings", "scan"])
        check_fits(found[0].runner, game, found[0].environment)  # They are alike.
        return [(one.runner.num_iterations, one.runner.steps_per_iteration) for one in found]
    with compat.quiet():
        from log_dqn.dopamine_run import runner, start
    lengths = []
    for setting in scan.parse(scans):
        gin.clear_config()
        try:
            lines = [*bindings, *setting.gin_bindings()]
            start.configure(_written(options, agent, game, lines, []))
            lengths.append(runner.length())
        except (ValueError, TypeError) as error:
            where = "/".join(filter(None, (agent, setting.name)))
            raise ValueError(f"{error} ({where})") from error
    return lengths


def _used(lines: Sequence[gin_files.Line], texts: Sequence[str], read: Collection[str]) -> set[str]:
    """Returns which texts bind what is read, define what those refer to, or bind nothing."""
    of_text = {text: [line for line in lines if line.text == text] for text in texts}
    used = {
        text
        for text, bound in of_text.items()
        if not bound or any(line.name in read for line in bound)
    }
    values = [line.value for line in lines if line.name in read]
    seen = set[str]()
    while macros := set(re.findall(r"%([\w./]+)", " ".join(map(str, values)))) - seen:
        seen |= macros  # A macro may name another.
        values = [line.value for line in lines if line.name in macros]
    return used | {text for text in texts if any(line.name in seen for line in of_text[text])}


def _configured(options: SweepOptions, written: gin_files.Written) -> dict[str, Any]:
    """Returns the parameters that an agent's runs read with the first setting."""
    if options.vectorized:
        return _settings(written, [], ["gin_files"])[0].config.parameters
    with compat.quiet():
        from log_dqn.dopamine_run import start
    return start.try_out(written)


def plans(options: SweepOptions) -> list[plan.AgentPlan]:
    """Checks all configurations of a sweep; returns the plan of each agent."""
    from log_dqn.cli import settings  # It imports NumPy.

    texts = [*options.gin_bindings, *options.scans]
    found, unused, all_read = [], dict[str, gin_files.Line](), dict[str, None]()
    used_by_any = set[str]()
    for agent in options.agents:
        lines = options.gin_bindings, options.scans
        of_unlike = {game: _written(options, agent, game, *lines) for game in options.unlike}
        tried = {game: _configured(options, of_game) for game, of_game in of_unlike.items()}
        recorded = {game: plan.comparable(reads) for game, reads in tried.items()}
        parameters = dict.fromkeys(options.games, recorded[options.games[0]]) | recorded
        written, reads = of_unlike[options.games[0]], tried[options.games[0]]
        read = dict.fromkeys(map(gin_files.short_name, reads))
        used = _used(written.lines, texts, read)
        all_read |= read
        unused |= {line.text: line for line in written.lines if line.text in texts}
        scans = [text for text in options.scans if text in used]
        bindings = [text for text in options.gin_bindings if text in used]
        lengths = _lengths(options, agent, bindings, scans)
        found.append(plan.AgentPlan(agent, scans, bindings, lengths, parameters))
        used_by_any |= used
    for text in texts:
        if text not in used_by_any:
            raise settings.unread(unused[text], all_read)
    return found


def answer(connection: Connection, options: SweepOptions) -> None:
    """Sends the plans through a connection, or a ValueError of one line."""
    try:
        connection.send(plans(options))
    except Exception as error:  # Whatever a gin file makes a configurable raise.
        connection.send(ValueError(explain(error)))
