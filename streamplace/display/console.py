"""Lines of a report for a console: names hold no markup or terminal control codes.

Tables fit into its width and keep every value, except bars and some of many names. If a table is
too wide, its bars shrink and vanish and its widest columns wrap; if it is still too wide, it is
split into tables one below the other. Each begins with the names of the rows.

Only the module of rich that measures texts is imported: all of rich takes twenty times as long.
"""

import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size

from streamplace.display.report import (
    MAX_ROWS,
    MAX_SHORT_CELL,
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
MAX_WORD = 40
"""Characters of a word that always stays on one line; longer words may break."""
PADDING = 2
"""Spaces beside every cell, together."""
BARS = (20, 10, 0)
"""Widths of a full bar; the first with which the table fits is drawn."""
_WORD = re.compile(r"\s*\S+\s*")


def lines_of(
    parts: Iterable[PlainPart], width: int, bold: Callable[[str], str] = str
) -> Iterator[str]:
    """Lines of sentences and tables; ``bold`` highlights names and heads of tables."""
    for part in parts:
        if isinstance(part, Sheet):
            for table in tables_of(part, width):
                yield from table.lines(bold)
        elif isinstance(part, Heading):
            yield from _titled(printable(part.name), printable(part.rest), width, bold)
        else:
            yield from (_cut(line, width) for line in _wrapped(printable(part), width))


def as_text(report: Report) -> str:
    """Plain text of a report, without details, as wide as the terminal (80 without one)."""
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if on_terminal else WIDTH
    title = (report.title,) if report.title else ()
    return "\n".join(line.rstrip() for line in lines_of((*title, *report.main_parts), width))


class TextTable(NamedTuple):
    """Texts of a table that fits into the width of the terminal."""

    head: Sequence[str]  # empty if no column has one
    rows: Sequence[Sequence[str]]
    widths: Sequence[int]

    def lines(self, bold: Callable[[str], str]) -> Iterator[str]:
        """Lines of the head, whose cells end on its last line, and of the rows."""
        if self.head:
            head = self._cells(self.head)
            height = max(map(len, head))
            yield from map(bold, self._lines([[""] * (height - len(c)) + c for c in head]))
        for row in self.rows:
            yield from self._lines(self._cells(row))

    def _cells(self, texts: Sequence[str]) -> list[list[str]]:
        """Lines of each cell of a row."""
        return [_wrapped(printable(t), w) for t, w in zip(texts, self.widths, strict=True)]

    def _lines(self, cells: list[list[str]]) -> Iterator[str]:
        for line in zip_longest(*cells, fillvalue=""):
            pairs = zip(line, self.widths, strict=True)
            yield "".join(f" {set_cell_size(text, width)} " for text, width in pairs)


def tables_of(sheet: Sheet, width: int) -> Iterator[TextTable]:
    """Tables that show a sheet in lines of at most this width."""
    for bars in BARS:
        cells = list(_columns(sheet, bars))
        most = width if bars == BARS[0] else MAX_WORD
        if sum(column.wanted(most) + PADDING for column in cells) <= width:
            break
    parts = list(_split(cells, width, 1 + sheet.names))
    size = max(1, len(sheet.rows) if len(parts) == 1 else MAX_ROWS)
    for begin in range(0, max(1, len(sheet.rows)), size):
        for columns in parts:
            widths = _widths([cells[i] for i in columns], width)
            shown = [cells[i].shown(wide) for i, wide in zip(columns, widths, strict=True)]
            rows = list(islice(zip(*shown, strict=True), begin, begin + size))
            head = [cells[i].texts[0] for i in columns] if any(sheet.head) else ()
            yield TextTable(head, rows, widths)


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
        """Minimum width at which no word or short cell breaks; the head may wrap at spaces."""
        short = min(_TableColumn(self.cells, ["", *self.texts[1:]]).width, MAX_SHORT_CELL)
        return short if self.has_names else max(_longest_word(self.texts), short)

    def wanted(self, most: int) -> int:
        """Width for which bars make room: of names up to a limit, else the minimum."""
        return min(self.width, most) if self.has_names else self.least

    @property
    def has_names(self) -> bool:
        """Whether its cells have names; some of these may be left out."""
        return any(isinstance(cell, Names) for cell in self.cells)

    def shown(self, width: int) -> list[str]:
        """Texts of the cells in lines of a width."""
        pairs = zip(self.cells, self.texts[1:], strict=True)
        return [_fitted(cell, width) if isinstance(cell, Names) else text for cell, text in pairs]


def _fitted(cell: Names, width: int) -> str:
    """Names that fit into the lines of a cell, at least the beginning of the first.

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
    return max((min(MAX_WORD, cell_len(word)) for word in words), default=1)


def _n_lines(text: str, width: int) -> int:
    """Number of lines of a text, which break at spaces and within words longer than a line."""
    lines = room = 0
    for word in text.split():
        size = cell_len(word)
        if size < room:
            room -= size + 1
        else:
            lines += -(-size // width)
            room = width - (size - 1) % width - 1
    return lines


def _titled(name: str, rest: str, width: int, bold: Callable[[str], str]) -> Iterator[str]:
    """Lines of a sentence that begins with a name in bold."""
    n_bold = len(name)
    for line in _wrapped(name + rest, width):
        shown = _cut(line, width)
        yield bold(shown[:n_bold]) + shown[n_bold:] if n_bold else shown
        n_bold = max(0, n_bold - len(line))


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of a text, which break at spaces and within words longer than a line.

    >>> _wrapped("a sentence of words", 8)
    ['a ', 'sentence ', 'of words']
    """
    lines = [""]
    for word in _WORD.findall(text) or [text]:
        size = cell_len(word.rstrip())
        if cell_len(lines[-1]) + size <= width:
            lines[-1] += word
        else:
            lines += [word] if size <= width else chop_cells(word, width)
    return lines if lines[0] or len(lines) == 1 else lines[1:]


def _cut(line: str, width: int) -> str:
    """Line without the spaces at its end that do not fit."""
    return line if cell_len(line) <= width else set_cell_size(line, width)
