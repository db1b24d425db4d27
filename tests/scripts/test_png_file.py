import os

import matplotlib
import png_file
import pytest
from matplotlib.figure import Figure


def test_a_figure_is_a_png_in_a_folder_that_was_not_there(tmp_path):
    with matplotlib.rc_context({"savefig.format": "pdf"}):
        png_file.write(Figure(figsize=(2, 1)), tmp_path / "new" / "a.png")
    data = (tmp_path / "new" / "a.png").read_bytes()
    # The signature, and the size at 150 dots an inch.
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")) == (300, 150)


@pytest.mark.parametrize("stop", [OSError, SystemExit, KeyboardInterrupt])
def test_a_figure_that_is_not_written_leaves_what_was_there(tmp_path, monkeypatch, stop):
    path = tmp_path / "a.png"
    path.write_bytes(b"before")

    def replace(*_):
        raise stop

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(stop):
        png_file.write(Figure(), path)
    assert [(found.name, found.read_bytes()) for found in tmp_path.iterdir()] == [
        ("a.png", b"before")
    ]
