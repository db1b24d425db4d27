"""The matrix of versions: what it makes of uv's answers."""

import pytest


@pytest.fixture
def check_versions(load):
    return load("check_versions")


@pytest.fixture
def uv(monkeypatch, tmp_path):
    """Puts an uv on the path that does what a line of shell does."""

    def write(line):
        command = tmp_path / "bin" / "uv"
        command.parent.mkdir(exist_ok=True)
        command.write_text(f"#!/bin/sh\n{line}\n")
        command.chmod(0o755)
        monkeypatch.setenv("PATH", f"{command.parent}:/bin:/usr/bin")

    return write


def test_versions_that_are_resolved_are_shown(check_versions, uv, capsys):
    uv("printf 'tensorflow==2.21.0\\njax==0.10.2\\nnvidia-cudnn-cu12==9.1 ; sys_platform\\n'")
    assert check_versions.main(["gpu"]) == 0
    cells = "2.21.0 | 0.10.2 | none | none | 9.1 | none |"
    assert capsys.readouterr().out.splitlines()[2:] == [f"| 3.11 | {cells}", f"| 3.12 | {cells}"]


def test_versions_that_do_not_fit_are_rows_too(check_versions, uv, capsys):
    uv("echo 'no solution' >&2; exit 1")
    assert check_versions.main(["--pythons", "3.11"]) == 1
    out, err = capsys.readouterr()
    assert [line for line in out.splitlines() if "fit" in line] == [
        "| 3.11 | no versions fit |",
        "| 3.12 | no versions fit |",
        "| 3.11 | oldest | none | none | none | none | none | failed: no versions fit |",
        "| 3.11 | newest | none | none | none | none | none | failed: no versions fit |",
    ]
    assert err.split("\n\n")[:4] == ["no solution"] * 4


def test_a_step_that_fails_is_named(check_versions, uv, capsys):
    uv('[ "$2" = compile ] && echo jax==0.6.0 || { echo no disk; exit 1; }')
    assert check_versions.main(["--pythons", "3.11"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == (
        "| 3.11 | newest | none | 0.6.0 | none | none | none | failed: install |"
    )
    assert err.splitlines()[0] == "no disk"


@pytest.mark.parametrize("arguments", [["--pythons", "2.7"], ["cpu"], ["gpu"]])
def test_what_is_refused_is_one_line(check_versions, monkeypatch, capsys, arguments):
    monkeypatch.setenv("PATH", "")  # There is no uv.
    with pytest.raises(SystemExit) as stop:
        check_versions.main(arguments)
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert ": error: " in line and (arguments[-1] in line or "uv must be installed" in line)
