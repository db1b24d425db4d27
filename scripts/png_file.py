"""Figures as PNG files."""

import io
import pathlib
from typing import Any

from log_dqn.run_folder import checkpoints


def write(figure: Any, path: pathlib.Path) -> None:
    """Writes a figure of matplotlib whole, in a folder that is made if it isn't there.

    Raises:
        OSError: it can't be written; what was there before is as it was.
    """
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=150)
    path.parent.mkdir(parents=True, exist_ok=True)
    checkpoints.replace_file(path, png.getvalue())
