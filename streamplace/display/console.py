"""Console that treats every text as data: names hold no markup or terminal control codes.

Tables fit into its width and keep every value but bars and some of many names. If one is too wide,
its bars shrink and vanish and its widest columns wrap; if it is still too wide, it is split into
tables one below the other, each of which begins with the names of the rows.
"""

import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from io import StringIO
from itertools import islice

from rich.cells import cell_len
from rich.console import Console, HighlighterType, JustifyMethod, OverflowMethod
from rich.style import Style
from rich.table import Table
from rich.text import Text

from streamplace.display.report import (
    LEAST_TEXT,
    MOST_ROWS,
    Bar,
    Cell,
    Heading,
    Names,
    PlainPart,
    Report,
    Sheet,
)
from streamplace.model.message_text import printable

WIDTH = 80
"""Columns of output that does not go to a terminal."""
MOST_WORD = 40
"""Longest word that always stays on one line; longer ones break where the line is too short."""
PADDING = 2
"""Spaces beside every cell, together."""
BARS = (20, 10, 0)
"""Widths of a full bar; the first with which the table fits is drawn."""


class DataConsole(Console):
    """Prints texts literally, on one line, with unprintable characters escaped.

    Styles are given apart from texts, by ``style=`` or `titled`.
    """

    def render_str(
        self,
        text: str,
        *,
        style: str | Style = "",
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        emoji: bool | None = None,
        markup: bool | None = None,
        highlight: bool | None = None,
        highlighter: HighlighterType | None = None,
    ) -> Text:
        """Make data of a text; lines and table cells come through here."""
        return Text(printable(text), style=style, justify=justify, overflow=overflow)


def titled(name: str, rest: str) -> Text:
    """Line that begins with a name in bold."""
    return Text.assemble((printable(name), "bold"), printable(rest))


def print_parts(console: Console, parts: Iterable[PlainPart]) -> None:
    """Print sentences and tables."""
    for part in parts:
        if isinstance(part, Sheet):
            for table in tables_of(part, console.width):
                console.print(table)
        elif isinstance(part, Heading):
            console.print(titled(part.name, part.rest))
        else:
            console.print(part)


def as_text(report: Report) -> str:
    """Plain text of a report, without details, as wide as the terminal (80 without one)."""
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if on_terminal else WIDTH
    file = StringIO()
    console = DataConsole(
        file=file, width=width, highlight=False, color_system=None, force_terminal=False,
        force_jupyter=False,
    )  # fmt: skip
    if report.title:
        console.print(report.title)
    print_parts(console, report.main_parts)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def tables_of(sheet: Sheet, width: int) -> Iterator[Table]:
    """Tables of the terminal that show a sheet in lines of at most this width."""
    for bars in BARS:
        cells = list(_columns(sheet, bars))
        most = width if bars == BARS[0] else MOST_WORD
        if sum(column.wanted(most) + PADDING for column in cells) <= width:
            break
    parts = list(_split(cells, width, 1 + sheet.names))
    size = max(1, len(sheet.rows) if len(parts) == 1 else MOST_ROWS)
    for begin in range(0, max(1, len(sheet.rows)), size):
        for columns in parts:
            table = Table(box=None, show_header=any(sheet.head))
            widths = _widths([cells[i] for i in columns], width)
            for i, wide in zip(columns, widths, strict=True):
                table.add_column(cells[i].texts[0], width=wide, overflow="fold")
            shown = [cells[i].shown(wide) for i, wide in zip(columns, widths, strict=True)]
            for row in islice(zip(*shown, strict=True), begin, begin + size):
                table.add_row(*row)
            yield table


def bar(load: Bar, width: int = BARS[0]) -> str:
    """Draw a load as a bar with a mark at the capacity; overload adds up to half its width.

    >>> bar(Bar(0.5), 10), bar(Bar(1.3), 10), bar(Bar(9), 10)
    ('█████·····|     ', '██████████|▓▓▓  ', '██████████|▓▓▓▓▓')
    """
    full = round(min(load.load, 1.0) * width)
    over = min(round(max(load.load - 1.0, 0.0) * width), width // 2)
    return "█" * full + "·" * (width - full) + "|" + "▓" * over + " " * (width // 2 - over)


@dataclass(frozen=True, slots=True)
class _TableColumn:
    """Cells of a column."""

    cells: tuple[Cell, ...]
    texts: list[str]  # of the head and the cells

    @property
    def width(self) -> int:
        """Width at which no line breaks."""
        return max(1, *(cell_len(printable(text).rstrip()) for text in self.texts))

    @property
    def least(self) -> int:
        """Least width at which neither words nor short cells break; the head may wrap at spaces."""
        short = min(_TableColumn(self.cells, ["", *self.texts[1:]]).width, LEAST_TEXT)
        return short if self.has_names else max(_longest_word(self.texts), short)

    def wanted(self, most: int) -> int:
        """Width for which bars make room: for names their own, up to a limit."""
        return min(self.width, most) if self.has_names else self.least

    @property
    def has_names(self) -> bool:
        """Whether its cells have names, of which some may be left out."""
        return any(isinstance(cell, Names) for cell in self.cells)

    def shown(self, width: int) -> list[str]:
        """Texts of the cells in lines of a width."""
        pairs = zip(self.cells, self.texts[1:], strict=True)
        return [_fitted(cell, width) if isinstance(cell, Names) else text for cell, text in pairs]


def _fitted(cell: Names, width: int) -> str:
    """As many of the names as fit into the lines of a cell, at least the beginning of the first.

    >>> _fitted(Names(("parse", "join", "sink"), lines=1), 16)
    'parse and 2 more'
    >>> _fitted(Names(("deduplicate",), lines=1), 8)
    'dedupli…'
    """
    if cell.lines is None:
        return cell.text()
    for most in range(len(cell.names), 0, -1):
        if _n_lines(text := printable(cell.text(most)), width) <= cell.lines:
            return text
    text = printable(replace(cell, names=cell.names[:1], more=0).text())
    rest = cell.more + len(cell.names) - 1
    end = f"… and {rest} more" if rest > 0 else "…"
    while text and _n_lines(text + end, width) > cell.lines:
        text = text[:-1]
    return text + end


def _columns(sheet: Sheet, bars: int) -> Iterator[_TableColumn]:
    """Columns of a table with bars of a width; without bars if that is 0."""
    for i, head in enumerate(sheet.head):
        cells = tuple(row[i] for row in sheet.rows)
        if bars or not any(isinstance(cell, Bar) for cell in cells):
            yield _TableColumn(cells, [head, *(_text(cell, bars) for cell in cells)])


def _text(cell: Cell, bars: int) -> str:
    if isinstance(cell, Names):
        return cell.text()
    return bar(cell, bars) if isinstance(cell, Bar) else cell


def _split(columns: list[_TableColumn], width: int, n_names: int) -> Iterator[list[int]]:
    """Columns of every table: those of names, and as many others as fit beside them."""
    names = list(range(min(n_names, len(columns))))
    chosen = list(names)
    for i in range(len(names), len(columns)):
        least = sum(columns[c].least + PADDING for c in (*chosen, i))
        if len(chosen) > len(names) and least > width:
            yield chosen
            chosen = list(names)
        chosen.append(i)
    yield chosen


def _widths(columns: list[_TableColumn], width: int) -> list[int]:
    """Widths of the columns of a table: the widest ones shrink until the table fits."""
    room = max(len(columns), width - PADDING * len(columns))
    least = [column.least for column in columns]
    if sum(least) > room:  # the names and one other column, with long words
        least = [min(size, room // len(columns)) for size in least]
    widths = [column.width for column in columns]
    while sum(widths) > room:
        spare = [size if size > low else 0 for size, low in zip(widths, least, strict=True)]
        widths[spare.index(max(spare))] -= 1
    return widths


def _longest_word(texts: Iterable[str]) -> int:
    """Length of the longest word that stays on one line."""
    words = (word for text in texts for word in printable(text).split())
    return max((min(MOST_WORD, cell_len(word)) for word in words), default=1)


def _n_lines(text: str, width: int) -> int:
    """Lines that a text fills where they break at spaces, and within words that are longer."""
    lines = room = 0
    for word in text.split():
        size = cell_len(word)
        if size < room:
            room -= size + 1
        else:
            lines += -(-size // width)
            room = width - (size - 1) % width - 1
    return lines
