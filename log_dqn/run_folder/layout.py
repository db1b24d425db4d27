"""Where things lie in a run's folder."""

import pathlib
import re

_LOG = re.compile(r"log_(\d+)")


def logs(run_dir: pathlib.Path) -> list[pathlib.Path]:
    """Lists a run's logs, `logs/log_N`, the newest first.

    Raises:
        OSError: the folder `logs` can't be listed.
    """
    numbers = [
        (int(match[1]), path)
        for path in (run_dir / "logs").iterdir()
        if (match := _LOG.fullmatch(path.name))
    ]
    return [path for _, path in sorted(numbers, reverse=True)]
