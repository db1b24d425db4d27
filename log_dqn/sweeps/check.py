"""Checks the configurations of a sweep, and finds out how long the runs are.

But for requests and machines, it runs in a process of its own, because it imports TensorFlow and
fills gin's global configuration.
"""

import pathlib
import socket
from collections.abc import Collection, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import gin

from log_dqn import checks, compat, scan
from log_dqn.program import gin_files, threads
from log_dqn.program.shell import explain
from log_dqn.run_folder import configuration
from log_dqn.single import request as single_request
from log_dqn.sweeps import plan
from log_dqn.vectorized import request as vectorized_request

# Files in /dev where there are GPUs, or what Ray takes for such; it counts them once it is started.
_GPUS = ("nvidia[0-9]*", "kfd", "dri", "accel*", "vfio")


class SweepOptions(NamedTuple):
    """Options of the sweep, one of its games or environments, and whether it is vectorized."""

    agents: list[str]
    scans: list[str]
    gin_files: list[str]
    gin_bindings: list[str]
    game: str
    vectorized: bool


def check_requests(options: SweepOptions) -> None:
    """Checks the options of each agent's runs as far as possible without importing the agents."""
    for agent in options.agents:
        if options.vectorized:
            vectorized_request.parse(options.gin_files, options.gin_bindings, agent, options.game)
        else:
            _request(options, agent, options.gin_bindings)
    gin_files.parse_checked(options.gin_files, options.gin_bindings, options.scans)


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


def _request(options: SweepOptions, agent: str, bindings: Sequence[str]) -> single_request.Request:
    """Returns the options of an agent's runs, each in its own process."""
    where = plan.game_or_env(options.game)
    return single_request.parse(options.gin_files, bindings, agent=agent, **where)


def _settings(
    options: SweepOptions,
    agent: str,
    bindings: Sequence[str],
    scans: Sequence[str],
    to_read: Collection[str],
) -> list[Any]:
    """Returns the settings of an agent's vectorized runs, which must read the lines of options."""
    from log_dqn.vectorized import start

    written = vectorized_request.parse(options.gin_files, bindings, agent, options.game, scans)
    gin.clear_config()
    start.configure(written)
    lines = [line for line in written.lines if line.option in to_read]
    return start.read_settings(lines, scans, agent)


def _read(
    options: SweepOptions, agent: str, bindings: Sequence[str]
) -> configuration.Configuration:
    """Returns what an agent's runs read of gin; lines of files that they don't are refused."""
    if options.vectorized:
        return _settings(options, agent, bindings, [], ["gin_files"])[0].config
    with compat.quiet():
        from log_dqn.single import start
    return start.try_out(_request(options, agent, bindings))


def _lengths(
    options: SweepOptions, agent: str, bindings: Sequence[str], scans: Sequence[str]
) -> list[tuple[int, int]]:
    """Checks an agent's settings in the grid of some scans; returns each one's lengths."""
    if options.vectorized:
        from log_dqn.vectorized.start import check_fits

        all_options = ["gin_files", "gin_bindings", "scan"]
        settings = _settings(options, agent, bindings, scans, all_options)
        runners = [setting.runner for setting in settings]
        check_fits(runners[0], options.game, settings[0].environment)  # They are alike.
        return [(runner.num_iterations, runner.steps_per_iteration) for runner in runners]
    with compat.quiet():
        from log_dqn.single import runner, start
    found = []
    for setting in scan.parse(scans):
        gin.clear_config()
        try:
            start.configure(_request(options, agent, [*bindings, *setting.gin_bindings()]))
            found.append(runner.length())
        except (ValueError, TypeError) as error:
            where = "/".join(filter(None, (agent, setting.name)))
            raise ValueError(f"{error} ({where})") from error
    return found


def _used(texts: Mapping[str, str], read: Collection[str]) -> set[str]:
    """Returns which texts bind what is read, define what those refer to, or bind nothing.

    The lines of gin are by the texts that they are of.
    """
    written = {text: gin_files.parse([], [line]) for text, line in texts.items()}
    names = {text: [line.name for line in said.lines] for text, said in written.items()}
    used = {text for text in texts if not names[text] or not set(read).isdisjoint(names[text])}
    macros = set().union(*(written[text].macros for text in used))
    return used | {text for text in texts if not macros.isdisjoint(names[text])}


def plans(options: SweepOptions) -> list[plan.AgentPlan]:
    """Checks all configurations of a sweep; returns the plan of each agent."""
    texts = {text: text for text in options.gin_bindings}
    for text in options.scans:
        parameter, values = scan.read(text)
        texts[text] = f"{parameter} = {values[0]!r}"
    found = []
    unused, all_read = dict(texts), dict[str, None]()
    for agent in options.agents:
        used = set[str]()
        if texts or options.gin_files:
            config = _read(options, agent, list(texts.values()))
            read = dict.fromkeys(map(gin_files.short_name, config.parameters))
            used = _used(texts, read)
            all_read |= read
        scans = [text for text in options.scans if text in used]
        bindings = [text for text in options.gin_bindings if text in used]
        found.append(
            plan.AgentPlan(agent, scans, bindings, _lengths(options, agent, bindings, scans))
        )
        unused = {text: line for text, line in unused.items() if text not in used}
    for line in gin_files.parse([], list(unused.values())).lines:
        raise gin_files.unread(line, all_read)
    return found


def answer(connection: Connection, options: SweepOptions) -> None:
    """Sends the plans through a connection, or a ValueError of one line."""
    try:
        connection.send(plans(options))
    except Exception as error:  # Whatever a gin file makes a configurable raise.
        connection.send(ValueError(explain(error)))
