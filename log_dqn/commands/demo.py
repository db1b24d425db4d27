"""Trains LogLinDQN and DQN at a low discount factor, and shows both on a page: `log-dqn demo`."""

import argparse
import contextlib
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple, NoReturn

from log_dqn import checks, games
from log_dqn.cli import progress, shell, threads
from log_dqn.run_folder import layout

_SHOWN = {"loglin_dqn": "LogLinDQN", "log_dqn": "LogDQN"}
# DQN's step-size is the one that docs/reports/minatar_appendix.md found best for it.
_SETTINGS = {
    **{agent: ["VectorizedLogDQNAgent.gamma={gamma}"] for agent in _SHOWN},
    "dqn": ["VectorizedDQNAgent.gamma={gamma}", "VectorizedDQNAgent.learning_rate=0.0005"],
}

_ITERATIONS, _STEPS = 6, 50_000  # Agent steps of an iteration on MinAtar.
_WARM_UP = 1_000
_FILM_STEPS = 150
_FILMED = "--run", "--compare"

_PAGE = "demo.html"


class Commands(NamedTuple):
    """The command lines of the demo, without `log-dqn`; training's by agent."""

    train: dict[str, list[str]]
    compare: list[str]
    play: list[str]


def create_parser() -> shell.Parser:
    """Returns the parser of the command line."""
    parser = shell.Parser(
        prog=shell.started_as("demo"),
        description="Trains LogLinDQN and DQN at a low discount factor, and writes a page with the "
        "results, in about two minutes on two cores. The same command resumes it.",
    )
    add = parser.add_argument
    add("--agent", default="loglin_dqn", help="agent beside DQN: loglin_dqn or log_dqn")
    add("--game", default="MinAtar/Freeway", help="a game of MinAtar (default: %(default)s)")
    add("--gamma", type=shell.real, default=0.5, help="discount factor (default: %(default)s)")
    add("--seed", type=shell.whole, default=1, help="seed of both agents (default: %(default)s)")
    add("--out", default="demo", help="folder of the runs and the page (default: %(default)s)")
    return parser


def _results(flags: argparse.Namespace) -> pathlib.Path:
    return pathlib.Path(flags.out) / f"gamma={flags.gamma!r}"


def _run(flags: argparse.Namespace, agent: str) -> pathlib.Path:
    return layout.run_dir(_results(flags), agent, "", flags.game, flags.seed)


def plan(flags: argparse.Namespace) -> Commands:
    """Returns what a user would type to do the same."""
    out, results = pathlib.Path(flags.out), f"--results_dir={_results(flags)}"
    train = {}
    for agent in (flags.agent, "dqn"):
        bindings = [f"VectorizedRunner.num_iterations={_ITERATIONS}"]
        bindings += [line.format(gamma=flags.gamma) for line in _SETTINGS[agent]]
        train[agent] = [
            *("train-vectorized", f"--agent={agent}", f"--games={flags.game}"),
            *(f"--seeds={flags.seed}-{flags.seed}", results, "--threads=1"),
            *(f"--gin_bindings={line}" for line in bindings),
        ]
    shown = f"--agents={','.join(train)}", f"--games={flags.game}"
    runs = [f"{option}={_run(flags, agent)}" for option, agent in zip(_FILMED, train, strict=True)]
    film = (
        f"--out={out / 'film.gif'}",
        "--narrow",
        f"--max_steps={_FILM_STEPS}",
        f"--seed={flags.seed}",
    )
    return Commands(
        train,
        ["compare", results, *shown, f"--out={out / 'report'}"],
        ["play", *runs, *film],
    )


@contextlib.contextmanager
def _started(
    arguments: Sequence[str], output: IO[bytes], **settings: Any
) -> Iterator[subprocess.Popen]:
    """Starts a command of `log-dqn`, and stops it at the end if it is still running."""
    command = [sys.executable, "-m", "log_dqn.commands.main", *arguments]
    process = subprocess.Popen(command, stdout=output, stderr=output, **settings)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _check_ended(name: str, process: subprocess.Popen, output: IO[bytes]) -> None:
    if process.wait():
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines()
        raise shell.RunStopped(f"{name} ended: {lines[-1] if lines else process.returncode}")


def _train(commands: dict[str, list[str]], at_once: int, finished: Sequence[int]) -> None:
    """Trains the agents, some at once, from finished iterations on, and shows how far they are."""
    waiting = list(commands)
    shown = progress.Progress(finished, _ITERATIONS, _STEPS, _WARM_UP)
    with shown, contextlib.ExitStack() as stack:
        running: dict[str, tuple[subprocess.Popen, IO[bytes], int]] = {}
        while waiting or running:
            while waiting and len(running) < at_once:
                agent = waiting.pop(0)
                output, numbers = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
                file = numbers.fileno()
                environment = {**os.environ, progress.FILE_VARIABLE: str(file)}
                started = _started(commands[agent], output, env=environment, pass_fds=[file])
                running[agent] = stack.enter_context(started), output, file
            time.sleep(0.5)
            for index, agent in enumerate(commands):
                if agent not in running:
                    continue
                process, said, file = running[agent]
                done = progress.read(file).fraction
                if process.poll() is not None:
                    del running[agent]
                    _check_ended(f"the training of {agent}", process, said)
                    done = 1.0
                iterations, steps = divmod(done * _ITERATIONS * _STEPS, _STEPS)
                shown.report(iterations, steps, runs=index)


def _do(title: str, arguments: Sequence[str]) -> None:
    shell.say(title)
    with tempfile.TemporaryFile() as output, _started(arguments, output) as process:
        _check_ended(title, process, output)


def _returns(folder: pathlib.Path) -> list[float]:
    """Returns the mean return of each iteration of a run so far."""
    from log_dqn.results import runs

    found = runs.read_run(folder, "train", lambda _: None)
    return found[1].tolist() if found else []


def _prepare(flags: argparse.Namespace, _: contextlib.ExitStack) -> shell.Training:
    flags.game = games.canonical(flags.game) or flags.game
    checks.check_one_of("agent", flags.agent, _SHOWN)
    checks.check_one_of("game", flags.game, games.MINATAR5)
    checks.check_gamma(flags.gamma)
    checks.check_count("seed", flags.seed, 1, checks.LAST_SEED)
    shell.check_writable("out", flags.out)
    each = f"{_ITERATIONS * _STEPS:,} agent steps each"
    name = _SHOWN[flags.agent]
    shell.print_start(f"{name} and DQN on {flags.game}, gamma {flags.gamma}, {each}")

    def show() -> int:
        from log_dqn.run_folder import checkpoints

        commands, page = plan(flags), pathlib.Path(flags.out) / _PAGE
        finished = [len(_returns(_run(flags, agent))) for agent in commands.train]
        _train(commands.train, min(threads.cores(), len(commands.train)), finished)
        with contextlib.suppress(OSError):  # There may be none; else writing it says why.
            page.unlink()  # Its pictures change before it does.
        _do("Drawing the learning curves", commands.compare)
        _do("Filming both", commands.play)
        returns = {}
        for agent in commands.train:
            curve = _returns(_run(flags, agent))
            if len(curve) < _ITERATIONS:
                raise shell.RunStopped(f"{_run(flags, agent)} is damaged; remove it to train again")
            returns[agent] = curve[-1]
        try:
            checkpoints.replace_file(page, _render(flags, returns, commands).encode())
        except OSError as error:
            raise shell.RunStopped(f"{page} can't be written: {error}") from error
        own, dqn = returns.values()
        shell.say(f"{name}'s mean return is {own:.1f}, DQN's {dqn:.1f}", page)
        return 0

    def stop(number: int) -> NoReturn:
        raise shell.stopped_by(number)

    return show, stop


def _render(flags: argparse.Namespace, returns: dict[str, float], commands: Commands) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("log_dqn.commands"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    typed = [*commands.train.values(), commands.compare, commands.play]
    return environment.get_template(_PAGE).render(
        game=flags.game,
        gamma=flags.gamma,
        agent=flags.agent,
        name=_SHOWN[flags.agent],
        returns=list(returns.values()),
        commands=[shlex.join(["log-dqn", *arguments]) for arguments in typed],
        steps=_ITERATIONS * _STEPS,
        last=_STEPS,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Trains, and writes the page; returns the exit status."""
    return shell.run(create_parser(), _prepare, arguments)
