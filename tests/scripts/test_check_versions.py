"""The matrix of versions: what it makes of uv's answers."""

import check_versions
import pytest

from tests.programs import refusal


@pytest.mark.parametrize(
    ("fails", "jax", "failed", "said"),
    [
        ("compile", "none", "no versions fit", "no compile"),
        ("-r", "0.6.0", "requirements", "no -r"),
        ("pytest", "0.6.0", "tests", "no pytest"),
        (None, "0.6.0", None, ""),
    ],
)
def test_a_step_that_fails_is_named(monkeypatch, tmp_path, capsys, fails, jax, failed, said):
    """Stand-ins for uv and for the environment's Python fail at one step, or at none."""
    program = f"""#!/bin/sh
for word in "$@"; do
  [ "$word" = "{fails}" ] && echo "no {fails}" && exit 1
  case $before in
    --output-file) echo 'jax==0.6.0 ; sys_platform' > "$word";;
    3.11) case $word in */venv) mkdir -p "$word/bin"; cp "$0" "$word/bin/python";; esac;;
  esac
  before=$word
done
echo all passed
"""
    (tmp_path / "uv").write_text(program)
    (tmp_path / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert check_versions.main(["--pythons", "3.11"]) == (failed is not None)
    out, err = capsys.readouterr()
    outcome = f"failed: {failed}" if failed else "all passed"
    assert out.splitlines()[2:] == [
        f"| 3.11 | {age} | none | {jax} | none | none | none | {outcome} |"
        for age in ("oldest", "newest")
    ]
    assert err.split() == 2 * said.split()


@pytest.mark.parametrize("arguments", [["--pythons", "2.7"], ["gpu"], []])
def test_what_is_refused_is_one_line(monkeypatch, capsys, arguments):
    monkeypatch.setenv("PATH", "")  # There is no uv.
    line = refusal(capsys, check_versions.main, arguments)
    assert ": error: " in line and (arguments or ["uv must be installed"])[-1] in line
