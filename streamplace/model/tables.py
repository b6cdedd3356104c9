"""Tables of the terminal, which fit into its width: cells wrap at spaces, columns go below.

A table keeps every value. If it is too wide, its widest columns wrap; if it is still too wide, it
is split into tables one below the other, each of which begins with the names of the rows.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from rich.cells import cell_len
from rich.table import Table

from streamplace.model.messages import printable
from streamplace.model.report import Bar, Sheet

MOST_WORD = 40
"""Longest word that always stays on one line; longer ones break where the line is too short."""
LEAST_TEXT = 24
"""Width below which no column shrinks, so that short cells stay on one line."""
MOST_ROWS = 20
"""Rows of a table that is split; further rows follow in further tables."""
PADDING = 2
"""Spaces beside every cell, together."""
BARS = (20, 10)
"""Widths of a full bar; the first is drawn if the table then fits."""
JOINT = "\ue000"
"""Private character that stands for a space at which a line must not break."""
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|[kMGT]?(?:bps|B)|[mµn]?s|MIPS)(?!\w))")


def tables_of(sheet: Sheet, width: int) -> Iterator[Table]:
    """Tables of the terminal that show a sheet in lines of at most this width."""
    cells = _texts(sheet, BARS[0])
    if _least(cells, range(len(cells))) > width:
        cells = _texts(sheet, BARS[-1])
    parts = list(_split(cells, width, 1 + (sheet.names or 0)))
    size = max(1, len(sheet.rows) if len(parts) == 1 else MOST_ROWS)
    for begin in range(0, max(1, len(sheet.rows)), size):
        for columns in parts:
            table = Table(box=None, show_header=any(sheet.head))
            widths = _widths([cells[i] for i in columns], width)
            for i, wide in zip(columns, widths, strict=True):
                table.add_column(cells[i][0], width=wide, overflow="fold")
            rows = zip(*(cells[i][1:] for i in columns), strict=True)
            for row in islice(rows, begin, begin + size):
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


def joined(text: str) -> str:
    """Replace the spaces between numbers and units by `JOINT`."""
    return _BEFORE_UNIT.sub(JOINT, text)


def _texts(sheet: Sheet, bars: int) -> list[list[str]]:
    """Cells by column, the head first."""
    rows = [
        [cell if isinstance(cell, str) else bar(cell, bars) for cell in row] for row in sheet.rows
    ]
    return [[head, *(row[i] for row in rows)] for i, head in enumerate(sheet.head)]


def _split(cells: list[list[str]], width: int, n_names: int) -> Iterator[list[int]]:
    """Columns of every table: those of names, and as many others as fit beside them."""
    names = list(range(min(n_names, len(cells))))
    columns = list(names)
    for i in range(len(names), len(cells)):
        if len(columns) > len(names) and _least(cells, [*columns, i]) > width:
            yield columns
            columns = list(names)
        columns.append(i)
    yield columns


def _least(cells: list[list[str]], columns: Sequence[int]) -> int:
    """Least width of a table of these columns."""
    return sum(_least_width(cells[i]) + PADDING for i in columns)


def _widths(columns: list[list[str]], width: int) -> list[int]:
    """Widths of the columns of a table: the widest ones shrink until the table fits."""
    room = max(len(columns), width - PADDING * len(columns))
    least = [_least_width(column) for column in columns]
    if sum(least) > room:  # the names and one other column, with long words
        least = [min(size, room // len(columns)) for size in least]
    widths = [_text_width(column) for column in columns]
    while sum(widths) > room:
        spare = [size if size > low else 0 for size, low in zip(widths, least, strict=True)]
        widths[spare.index(max(spare))] -= 1
    return widths


def _text_width(column: list[str]) -> int:
    return max(1, *(cell_len(printable(text).rstrip()) for text in column))


def _least_width(column: list[str]) -> int:
    """Least width at which neither words nor short cells break; the head may wrap at spaces."""
    words = (word for text in column for word in joined(printable(text)).split())
    longest = max((min(MOST_WORD, cell_len(word)) for word in words), default=1)
    return max(longest, min(_text_width(["", *column[1:]]), LEAST_TEXT))
