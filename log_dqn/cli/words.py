"""Numbers in words, as notes, captions and tables say them, and tables as text."""

from collections.abc import Iterable, Sequence


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Returns a number with its noun: 1 run, 2 runs; the default plural adds an s."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def rounded(value: float) -> str:
    """Returns a number with three digits, or, from 100 on, as a whole one: 3.06, 1,103."""
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"


def span(values: Sequence[int]) -> str:
    """Returns the smallest and the largest number: 2 to 5."""
    least, greatest = min(values), max(values)
    return f"{least:,}" if least == greatest else f"{least:,} to {greatest:,}"


def printable(text: str) -> str:
    """Returns a text that a terminal can show: with escapes, if it can't be printed."""
    return text if text.isprintable() else ascii(text)


def seeds(counts: Sequence[int]) -> str:
    """Returns how many seeds an agent has on its games: 1 seed, 2 to 5 seeds."""
    return counted(1, "seed") if max(counts) == 1 else f"{span(counts)} seeds"


def frames(number: float, frame_skip: int | None = None) -> str:
    """Returns a number of frames, or of agent steps if these are the same: 12.5M frames.

    `frame_skip` is how many emulator frames an agent step has.
    """
    unit = "agent steps" if frame_skip == 1 else "frames"
    return f"{number / 1e6:g}M {unit}" if number >= 1e6 else f"{number:,.0f} {unit}"


def array(dtype: object, shape: Iterable[int]) -> str:
    """Returns an array's dtype and shape: float32[4]."""
    return f"{dtype}{list(shape)}"


def markdown(rows: Iterable[Sequence[str]], rule: str = "---") -> str:
    """Returns a table in Markdown; the first row has the headings.

    Args:
        rows: the texts of cells; characters that would end a cell or a row are escaped.
        rule: below each heading except the first; `---:` aligns a column right.
    """
    heads, *others = ([printable(cell).replace("|", "\\|") for cell in row] for row in rows)
    rules = ["---", *[rule] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, rules, *others))
