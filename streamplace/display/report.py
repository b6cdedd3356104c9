"""Reports: texts and tables for people, independent of any terminal."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import TypeVar

from streamplace.model.mixins import Displayed

T = TypeVar("T")

MAX_ROWS, MAX_NAMES = 12, 12
"""Rows of a table, or of each part of one that is split, and names in a sentence."""
MAX_SHORT_CELL = 24
"""Characters of a cell that always stays on one line."""
PAGES = "streamplace.report.pages"
"""Module of pages of reports. It imports this one, so it is loaded by name."""
_SIZE = {"d": 86400, "h": 3600, "min": 60, "s": 1}
_PAIRS = (("d", "h"), ("h", "min"), ("min", "s"))
_FRACTIONS = ((1, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns"))


@dataclass(frozen=True, slots=True)
class Bar:
    """A load drawn as a bar; 1 is full."""

    load: float


@dataclass(frozen=True, slots=True)
class Names:
    """The first of many names in a cell; a terminal shows as many as fit into its lines."""

    names: tuple[str, ...]
    more: int = 0  # names that are not among them
    separator: str = ", "
    before: str = ""
    lines: int | None = None  # None shows all names

    @classmethod
    def of(
        cls,
        things: Sequence[T],
        label: Callable[[T], str] = str,
        separator: str = ", ",
        *,
        before: str = "",
        lines: int | None = None,
    ) -> "Names":
        """Name the first of many things."""
        first = tuple(map(label, things[:MAX_NAMES]))
        return cls(first, len(things) - len(first), separator, before, lines)

    def text(self, most: int = MAX_NAMES) -> str:
        """The first names, and the number of the others.

        >>> Names(("a", "b", "c"), more=4, before="all: ").text(2)
        'all: a, b and 5 more'
        """
        rest = len(self.names[most:]) + self.more
        text = self.before + self.separator.join(self.names[:most])
        return text + (f" and {rest} more" if rest > 0 else "")


Cell = str | Bar | Names


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    # Index of the last column that names a row. A sheet that is too wide for the terminal is split
    # into tables, each of which begins with these columns.
    names: int = 0


@dataclass(frozen=True, slots=True)
class Heading:
    """A line that begins with a highlighted name."""

    name: str
    rest: str


PlainPart = str | Sheet | Heading


@dataclass(frozen=True, slots=True)
class Detail:
    """A sentence or table that pages always show, and a terminal only with ``-v``."""

    part: PlainPart


@dataclass(frozen=True, slots=True)
class Brief:
    """A sentence or table for a terminal without ``-v``; with it, details replace it."""

    part: PlainPart


Part = PlainPart | Detail | Brief


def brief_and_detail(sheet: Callable[[bool], Sheet]) -> tuple[Brief, Detail]:
    """Make a short form of a table for terminals, and a long one for pages and ``-v``."""
    return Brief(sheet(True)), Detail(sheet(False))


@dataclass(frozen=True, slots=True)
class Report(Displayed):
    """Sentences and tables, in the order in which they are shown.

    Examples
    --------
    >>> print(Report(("Fine.", Sheet(("device", "load"), (("d0", Bar(0.5)),))), "All of it"))
    All of it
    Fine.
     device  load
     d0      ██████████··········|
    """

    parts: tuple[Part, ...]
    title: str = ""  # first line; commands print the name of the graph before it
    # Object that the page shows; without it the page has only sentences and tables.
    subject: object = field(default=None, repr=False, compare=False)
    # Shell command, for the page, that simulates a placement of the subject, read as JSON from
    # standard input. Empty if there is none.
    command: str = field(default="", repr=False, compare=False)

    def report(self) -> "Report":
        """Return the report itself."""
        return self

    @property
    def main_parts(self) -> tuple[PlainPart, ...]:
        """Parts without the details."""
        shown = (part for part in self.parts if not isinstance(part, Detail))
        return tuple(part.part if isinstance(part, Brief) else part for part in shown)

    @property
    def all_parts(self) -> tuple[PlainPart, ...]:
        """All parts, details among them."""
        shown = (part for part in self.parts if not isinstance(part, Brief))
        return tuple(part.part if isinstance(part, Detail) else part for part in shown)

    def html(self) -> str:
        """Render the report as a page: one self-contained HTML file."""
        page: str = importlib.import_module(PAGES).page_of(self)
        return page

    def save(self, path: str | PathLike[str]) -> None:
        """Write the report as a page to a file whose name ends in .html."""
        importlib.import_module(PAGES).save_page(self, Path(path))

    def _repr_html_(self) -> str:
        if self.subject is None:
            return Displayed._repr_html_(self)
        frame: str = importlib.import_module(PAGES).frame_of(self)
        return frame

    def __repr__(self) -> str:
        return f"<Report: {self.title or f'{len(self.parts)} parts'}>"


def percent(share: float) -> str:
    """Share as a percentage.

    >>> percent(0.97312), percent(1.184)
    ('97.3 %', '118.4 %')
    """
    return f"{100 * share:.1f} %"


def quantity(value: float, unit: str) -> str:
    """Number with its unit; seconds as `duration` writes them.

    >>> quantity(0.0741, "s"), quantity(3, "devices"), quantity(1e-7, "J")
    ('74.1 ms', '3 devices', '1e-07 J')
    >>> quantity(1, "devices")
    '1 device'
    """
    if unit == "s":
        return duration(value)
    return "1 device" if (value, unit) == (1, "devices") else f"{value:.4g} {unit}"


def duration(seconds: float) -> str:
    """Seconds in a suitable unit, or in two units from a minute on.

    >>> duration(2.5e-6), duration(0.4463), duration(42), duration(982), duration(13790)
    ('2.5 µs', '446.3 ms', '42 s', '16 min 22 s', '3 h 50 min')
    """
    size = abs(seconds)
    if not isfinite(size) or size >= 1000 * _SIZE["d"]:
        return f"{seconds / _SIZE['d']:.4g} d"
    if round(size) >= _SIZE["min"]:
        return ("-" if seconds < 0 else "") + _in_two_units(size)
    size = float(f"{size:.4g}")
    factor, unit = next(((f, u) for f, u in _FRACTIONS if size * f >= 1), _FRACTIONS[-1])
    return f"{seconds * factor:.4g} {unit}" if seconds else "0 s"


def _in_two_units(seconds: float) -> str:
    """Write at least a minute in two adjacent units, rounded to the smaller one."""
    for large, small in _PAIRS:
        size, part = _SIZE[large], _SIZE[small]
        count, rest = divmod(round(seconds / part) * part, size)
        if count:
            break
    return f"{count} {large}" + (f" {rest // part} {small}" if rest else "")


def by_device(counts: Mapping[str, int]) -> str:
    """Numbers of subtasks by device, in words.

    >>> by_device({"tm-2": 1, "tm-1": 3}), by_device({})
    ('tm-1 × 3, tm-2', '—')
    """
    return ", ".join(f"{d} × {n}" if n > 1 else d for d, n in sorted(counts.items())) or "—"


def some(
    things: Sequence[T],
    label: Callable[[T], str] = str,
    separator: str = " ",
    most: int = MAX_NAMES,
) -> str:
    """First few of many things, and the number of the others.

    >>> some(["a", "b", "c"], most=2)
    'a b and 1 more'
    """
    return Names.of(things, label, separator).text(most)
