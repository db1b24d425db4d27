"""Draws an episode: the screen, and beside it how the agent values each action."""

import itertools
import math
import pathlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import matplotlib.font_manager
import numpy as np
from PIL import GifImagePlugin, Image, ImageChops, ImageDraw, ImageFont

from log_dqn.film.episode import Step, play
from log_dqn.film.game import legend
from log_dqn.film.players import TrainedAgent

FRAMES_PER_SECOND = 15
"""Agent steps a second: a step is four of the emulator's 60 frames a second."""


class Layout(NamedTuple):
    """Where the parts of one agent's frame are, in pixels.

    Attributes:
        is_narrow: whether the panel is below the screen and its legend, not beside them.
        width: of the frame.
        height: of the frame.
        titles: the top of each line of the title; the score ends the last.
        screen: left, top, width and height of the box that the screen fits into.
        panel: left and top of the panel. A narrow panel is lower by the legend's height.
        axes: left of the panel's axes.
        most_rows: the largest height of the rows of all actions.
        fonts: sizes of the title, the labels, the numbers, and at most of the actions' names.
    """

    is_narrow: bool
    width: int
    height: int
    titles: tuple[int, ...]
    screen: tuple[int, int, int, int]
    panel: tuple[int, int]
    axes: int
    most_rows: int
    fonts: tuple[int, int, int, int]

    def corner(self, number: int) -> tuple[int, int]:
        """Returns left and top of an agent's frame in a film of several agents."""
        return (0, number * self.height) if self.is_narrow else (number * self.width, 0)


WIDE = Layout(
    False, 800, 468, (12,), (8, 40, 320, 420), (344, 40), 448, 192, (14, 12, 11, 12)
)  # fmt: skip
NARROW = Layout(
    True, 390, 860, (8, 30), (8, 56, 374, 300), (8, 364), 148, 270, (14, 14, 12, 14)
)  # fmt: skip
"""For phones, which are about 390 pixels wide."""

_LEGEND_COLUMNS, _LEGEND_ROW = 3, 20
_MARGIN = 10  # right of the panel
_GAP = 12  # between two axes
_HISTORY = 150  # agent steps in the strips
_SHRINK = 0.97  # of an axis in a step, at most: so that it doesn't flicker
_LEAST_SPAN = 1e-12
_CHOSEN, _INK, _QUIET, _FAINT = "#D55E00", "#1B1F24", "#57606A", "#C4CAD0"


class Gif:
    """A gif that is written frame by frame. Pillow's own way holds all of them until the end."""

    def __init__(self, path: pathlib.Path) -> None:
        """Opens the file."""
        self._path, self._count = path, 0
        self._before: Image.Image | None = None

    def __enter__(self) -> "Gif":
        self._file = self._path.open("wb")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.write(b";")
        self._file.close()

    def append_data(self, pixels: np.ndarray) -> None:
        """Writes what has changed since the last frame; pixels are [height, width, 3]."""
        frame = Image.fromarray(pixels)
        # Hundredths of a second: delays of 60 and 70 ms take turns.
        begin, end = (100 * n // FRAMES_PER_SECOND for n in (self._count, self._count + 1))
        settings = {"duration": 10 * (end - begin), "include_color_table": True}
        if self._before is None:
            shown, corner = frame.quantize(), (0, 0)
            header, _ = GifImagePlugin.getheader(shown, info={"loop": 0})
            self._file.writelines(header)
        else:
            box = ImageChops.difference(frame, self._before).getbbox() or (0, 0, 1, 1)
            part, before, corner = frame.crop(box), self._before.crop(box), box[:2]
            shown = part.quantize(255)
            palette = shown.getpalette() or []
            settings["transparency"] = len(palette) // 3
            is_same = (np.asarray(part) == np.asarray(before)).all(axis=-1)
            # Long rows of one number take few bytes.
            numbers = np.where(is_same, settings["transparency"], np.asarray(shown))
            shown = Image.fromarray(numbers.astype(np.uint8))
            shown.putpalette([*palette, 0, 0, 0])
        self._file.writelines(GifImagePlugin.getdata(shown, corner, **settings))
        self._before, self._count = frame, self._count + 1


class _Series:
    """One quantity of the panel: its name, its numbers and how they are written.

    Its axis shows the differences between a few numbers, wherever they lie: it goes from the
    smallest to the largest of them, and shrinks slowly.
    """

    def __init__(self, name: str, is_log: bool) -> None:
        self.name, self.is_log = name, is_log
        self._span = 0.0

    def limits(self, numbers: np.ndarray) -> tuple[float, float]:
        """Returns the ends of the axis for these numbers, a step after the last."""
        low, high = float(numbers.min()), float(numbers.max())
        self._span = max(high - low, _SHRINK * self._span)
        middle = (low + high) / 2
        return middle - self._span / 2, middle + self._span / 2

    def bounds(self, low: float, high: float) -> tuple[str, str]:
        """Returns two numbers as text, with as many digits as tell them apart."""
        for digits in range(3, 9):
            texts = _text(low, digits, self.is_log), _text(high, digits, self.is_log)
            if texts[0] != texts[1] or low == high:
                break
        return texts


def _text(value: float, digits: int, is_log: bool) -> str:
    """Writes a number, or one that is given by ln, which may be beyond floats."""
    if not is_log or -9 < value < 9 or value == -math.inf:
        number = math.exp(value) if is_log else value
        return f"{number:.{digits}g}".replace("e-0", "e-").replace("-", "\u2212")
    exponent = math.floor(value / math.log(10))
    mantissa = math.exp(value - exponent * math.log(10))
    if round(mantissa, digits - 1) >= 10:
        mantissa, exponent = mantissa / 10, exponent + 1
    return f"{mantissa:.{digits - 1}f}e{exponent}".replace("-", "\u2212")


class Painter:
    """Draws frames of an episode."""

    def __init__(self, player: TrainedAgent, title: str, layout: Layout = WIDE) -> None:
        """Initializes the painter; the title is written above the screen, a board's legend below.

        A narrow frame has what follows three blanks in the title on a second line.
        """
        self._title, self._gamma = title, player.gamma
        self._actions = player.game.action_names
        self._legend = legend(player.game_name, getattr(player.game, "channel_names", ()))
        self._history: list[Step] = []
        self._series: list[_Series] = []
        self._layout, self._right = layout, layout.width - _MARGIN
        self._panel_x, self._panel_top = layout.panel
        if layout.is_narrow:
            self._panel_top += _LEGEND_ROW * math.ceil(len(self._legend) / _LEGEND_COLUMNS)
        # A narrow axis has its two numbers in two lines.
        self._high_bound = self._panel_top + (36 if layout.is_narrow else 20)
        self._rows_top = self._high_bound + 24
        self._row = min(24.0, layout.most_rows / len(self._actions))
        *sizes, of_rows = layout.fonts
        self._font, self._small, self._tiny, self._of_rows = map(
            _font, (*sizes, min(of_rows, int(self._row) + 1))
        )

    def frame(self, step: Step, is_over: bool = False) -> Image.Image:
        """Draws one step; those before it are remembered for the strips."""
        if not is_over:
            self._history = [*self._history[-_HISTORY + 1 :], step]
        if not self._series:
            heads = [_Series("q+", True), _Series("q\u2212", True)]
            self._series = [*(heads if step.values.heads is not None else []), _Series("Q", False)]
        layout = self._layout
        image = Image.new("RGB", (layout.width, layout.height), "white")
        self._draw_screen(image, step.screen)
        draw = ImageDraw.Draw(image)
        over = "   (over)" if is_over else ""
        score = f"\u03b3 = {self._gamma:g}   return {step.score:g}{over}".replace("-", "\u2212")
        *_, last = layout.titles
        draw.text((self._right, last), score, _INK, self._font, anchor="ra")
        lines = self._title.split("   ", len(layout.titles) - 1)
        for y, line in zip(layout.titles, lines, strict=False):
            score_width = draw.textlength(score, self._font) + 20 if y == last else 0
            room = self._right - layout.screen[0] - score_width
            title = " ".join(line.split())
            while draw.textlength(title, self._font) > room:
                title = f"\u2026{title[2:]}"
            draw.text((layout.screen[0], y), title, _INK, self._font)
        self._draw_actions(draw, step)
        self._draw_strips(draw)
        return image

    def _draw_screen(self, image: Image.Image, pixels: np.ndarray) -> None:
        left, top, width, height = self._layout.screen
        screen = Image.fromarray(pixels)
        scale = min(width / screen.width, height / screen.height)
        resample = Image.Resampling.NEAREST if scale >= 1 else Image.Resampling.LANCZOS
        size = max(round(screen.width * scale), 1), max(round(screen.height * scale), 1)
        image.paste(screen.resize(size, resample), (left, top))
        right, bottom = left + size[0], top + size[1]
        draw = ImageDraw.Draw(image)
        draw.rectangle((left - 1, top - 1, right, bottom), outline=_FAINT)
        for number, (name, colour) in enumerate(self._legend.items()):
            row, column = divmod(number, _LEGEND_COLUMNS)
            x, y = left + column * width // _LEGEND_COLUMNS, bottom + 12 + _LEGEND_ROW * row
            draw.rectangle((x, y, x + 11, y + 11), fill=colour)
            draw.text((x + 16, y + 6), name, _INK, self._small, anchor="lm")

    def _numbers(self, steps: Sequence[Step]) -> np.ndarray:
        """Returns the series of some steps, shape [num_series, num_steps, num_actions]."""
        found = [[*(() if v.heads is None else v.heads), v.q] for v in (s.values for s in steps)]
        return np.swapaxes(found, 0, 1)

    def _draw_actions(self, draw: ImageDraw.ImageDraw, step: Step) -> None:
        """Draws a row for each action: for each series a dot on an axis of the series' own."""
        for action, name in enumerate(self._actions):
            chosen = action == step.action
            text = f"{chr(0x25B6) if chosen else ' '} {name}"
            x = self._panel_x if chosen else self._panel_x + 8
            y = self._middle(action)
            draw.text((x, y), text, _CHOSEN if chosen else _INK, self._of_rows, anchor="lm")
        width = (self._right - self._layout.axes + _GAP) / len(self._series)
        bottom = self._middle(len(self._actions) - 0.5)
        for number, (series, values) in enumerate(
            zip(self._series, self._numbers([step])[:, 0], strict=True)
        ):
            left = self._layout.axes + number * width
            right = left + width - _GAP
            low, high = series.limits(values)
            low_text, high_text = series.bounds(low, high)
            heading = f"{series.name} (log)" if series.is_log else series.name
            top, at = self._panel_top, (left + right) / 2
            draw.text((at, top), heading, _INK, self._small, anchor="ma")
            draw.text((left, top + 20), low_text, _QUIET, self._tiny)
            if low_text != high_text:
                at_right = right, self._high_bound
                draw.text(at_right, high_text, _QUIET, self._tiny, anchor="ra")
            draw.rectangle((left, self._rows_top - 6, right, bottom + 4), outline=_FAINT)
            places = _place(values, low, high, left + 7, right - 7)
            radius = max(min(5.0, self._row / 2 - 1), 0.5)
            for action, x in enumerate(places.tolist()):
                y = self._middle(action)
                colour = _CHOSEN if action == step.action else _QUIET
                draw.line((left + 1, y, right - 1, y), "#EEF0F2")
                draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)

    def _middle(self, action: float) -> float:
        return self._rows_top + (action + 0.5) * self._row

    def _draw_strips(self, draw: ImageDraw.ImageDraw) -> None:
        """Draws the series of all actions over the last steps, and how far Q is from its mean."""
        numbers = self._numbers(self._history)
        q = numbers[-1]
        rows = [*self._series, _Series("Q \u2212 mean", False)]
        values = [*numbers, q - q.mean(axis=-1, keepdims=True)]
        first = self._middle(len(self._actions) - 0.5) + 18
        height = (self._layout.height - 2 - first) / len(rows)
        for number, (series, of_row) in enumerate(zip(rows, values, strict=True)):
            top = first + number * height
            self._draw_strip(draw, series, of_row, top, top + height - 6)

    def _draw_strip(
        self,
        draw: ImageDraw.ImageDraw,
        series: _Series,
        values: np.ndarray,
        top: float,
        bottom: float,
    ) -> None:
        """Draws a series, shape [num_steps, num_actions], the chosen action's in colour."""
        low, high = float(values.min()), float(values.max())
        low_text, high_text = series.bounds(low, high)
        left, right = self._layout.axes, self._right
        draw.rectangle((left, top, right, bottom), outline=_FAINT)
        middle = (top + bottom) / 2
        two_lines = series.name.replace(" mean", "\nmean")
        draw.text((self._panel_x, middle), two_lines, _INK, self._small, anchor="lm")
        draw.text((left - 6, top), high_text, _QUIET, self._tiny, anchor="ra")
        if low_text != high_text:
            draw.text((left - 6, bottom), low_text, _QUIET, self._tiny, anchor="rd")
        if len(values) < 2:
            return
        x = left + (right - left) * np.arange(len(values)) / (_HISTORY - 1)
        y = _place(values, low, high, bottom - 4, top + 4)
        for action in range(values.shape[1]):
            draw.line(list(zip(x.tolist(), y[:, action].tolist(), strict=True)), _FAINT, 1)
        chosen = [float(y[i, step.action]) for i, step in enumerate(self._history)]
        draw.line(list(zip(x.tolist(), chosen, strict=True)), _CHOSEN, 2)


def _font(size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(matplotlib.font_manager.findfont("DejaVu Sans"), size)


def _place(values: np.ndarray, low: float, high: float, start: float, end: float) -> np.ndarray:
    """Returns where on an axis numbers lie; in the middle, where all are equal."""
    if high - low <= _LEAST_SPAN * max(abs(low), abs(high)):
        return np.full(values.shape, (start + end) / 2)
    return start + (end - start) * (values - low) / (high - low)


def film(
    players: Sequence[TrainedAgent],
    titles: Sequence[str],
    max_steps: int,
    seed: int,
    layouts: Sequence[Layout] = (WIDE,),
) -> Iterator[tuple[list[Image.Image], list[Step]]]:
    """Plays an episode of each player, and draws all of them in one frame, under their titles.

    An episode is left after `max_steps` agent steps, if training didn't before. Where one ends
    before another, the picture of the last step stays. The seed decides the random actions.

    Yields:
        A frame in each layout, and the last step of each episode so far.
    """
    painters = [
        [Painter(*both, layout) for both in zip(players, titles, strict=True)] for layout in layouts
    ]
    episodes = [play(player, max_steps, seed, draws=True) for player in players]
    last: list[Step | None] = [None] * len(players)
    for steps in itertools.zip_longest(*episodes):
        last = [step or before for step, before in zip(steps, last, strict=True)]
        shown = [step for step in last if step is not None]
        frames = []
        for layout, of_layout in zip(layouts, painters, strict=True):
            left, top = layout.corner(len(players) - 1)
            frame = Image.new("RGB", (left + layout.width, top + layout.height))
            for number, (painter, step) in enumerate(zip(of_layout, shown, strict=True)):
                frame.paste(painter.frame(step, steps[number] is None), layout.corner(number))
            frames.append(frame)
        yield frames, shown
