"""Legends: the devices of the colours, and the meanings of the lines."""

from collections.abc import Iterator

from streamplace.drawing import style
from streamplace.drawing.scene import Arrowhead, Curve, Label, Rectangle, Shape
from streamplace.drawing.style import text_width

Legend = tuple[tuple[str, str], ...]
"""Colours with their meanings."""

ROW, SWATCH, GAP = 18.0, 12.0, 16.0
MOST_ENTRIES = 24
SAMPLE = 34.0
"""Length of the sample lines."""


def shortened(legend: Legend) -> Legend:
    """Shorten a legend to 24 entries, the last of which counts the others."""
    if len(legend) <= MOST_ENTRIES:
        return legend
    more = len(legend) - MOST_ENTRIES + 1
    return (*legend[: MOST_ENTRIES - 1], (style.PAPER, f"and {more} more devices"))


def wrapped(widths: list[float], widest: float) -> list[list[int]]:
    """Distribute entries over rows, as many in each as fit.

    >>> wrapped([40, 40, 40], 100)
    [[0, 1], [2]]
    """
    rows: list[list[int]] = []
    free = -1.0
    for i, width in enumerate(widths):
        if not rows or width > free:
            rows.append([])
            free = widest
        rows[-1].append(i)
        free -= width
    return rows


def legend_widths(legend: Legend) -> list[float]:
    """Width of every entry, with the space after it."""
    return [SWATCH + 6 + text_width(text, style.SMALL) + GAP for _, text in legend]


def legend_shapes(legend: Legend, left: float, top: float, widest: float) -> Iterator[Shape]:
    """Swatches with texts, in rows."""
    widths = legend_widths(legend)
    for row, entries in enumerate(wrapped(widths, widest + GAP)):
        x, y = left, top + row * ROW
        for i in entries:
            colour, text = legend[i]
            outline = "none" if colour == style.PAPER else style.OUTLINE
            yield Rectangle(x, y, SWATCH, SWATCH, colour, outline, 0.6, 2.5)
            yield Label(x + SWATCH + 6, y + SWATCH - 2, text, style.SMALL, style.INK)
            x += widths[i]


def legend_height(legend: Legend, widest: float) -> float:
    """Height of all rows."""
    return ROW * len(wrapped(legend_widths(legend), widest + GAP))


class Key:
    """Colour, dashes and meaning of each kind of line of a page, and a note after them."""

    def __init__(self, entries: tuple[tuple[str, bool, str], ...], note: str) -> None:
        self.entries, self.note = entries, note

    def widths(self) -> list[float]:
        """Width of every entry, with the note last."""
        lines = [SAMPLE + 6 + text_width(t, style.SMALL) + GAP for *_, t in self.entries]
        return [*lines, text_width(self.note, style.SMALL) + GAP]

    def height(self, widest: float) -> float:
        """Height of all rows."""
        return ROW * len(wrapped(self.widths(), widest + GAP))

    def shapes(self, left: float, top: float, widest: float) -> Iterator[Shape]:
        """Sample lines with their meanings, in rows."""
        widths = self.widths()
        for row, entries in enumerate(wrapped(widths, widest + GAP)):
            x, y = left, top + row * ROW
            for i in entries:
                if i < len(self.entries):
                    yield from self._entry(i, x, y)
                else:
                    yield Label(x, y + SWATCH - 2, self.note, style.SMALL, style.GREY)
                x += widths[i]

    def _entry(self, i: int, x: float, y: float) -> Iterator[Shape]:
        colour, dashed, text = self.entries[i]
        middle, tip = y + SWATCH / 2, x + SAMPLE
        third = SAMPLE / 3
        points = ((x, middle), (x + third, middle), (x + 2 * third, middle), (tip - 6, middle))
        yield Curve(points, colour, 2.0, dashed)
        yield Arrowhead(((tip, middle), (tip - 8, middle - 4), (tip - 8, middle + 4)), colour)
        yield Label(tip + 6, y + SWATCH - 2, text, style.SMALL, style.GREY)


def key(tasks: bool, placed: bool) -> Key:
    """Key for task graphs or other graphs, with or without placements."""
    width = f"width: bytes{'' if tasks else '/s'}"
    if not placed:
        return Key(((style.INSIDE, False, "stream"),), width)
    limit = "on the critical chain" if tasks else "limits the rate"
    return Key(
        (
            (style.INSIDE, False, "inside a device"),
            (style.ACROSS, True, "crosses the network"),
            (style.LIMIT, False, limit),
        ),
        width,
    )
