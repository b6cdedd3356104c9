"""Console that treats every text as data: names hold no markup or terminal control codes.

Tables fit into its width and keep every value. If one is too wide, its widest columns wrap; if it
is still too wide, it is split into tables one below the other, each of which begins with the names
of the rows.
"""

import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import islice

from rich.cells import cell_len
from rich.console import (
    Console,
    ConsoleOptions,
    HighlighterType,
    JustifyMethod,
    OverflowMethod,
    RenderableType,
)
from rich.containers import Lines
from rich.measure import Measurement
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from streamplace.model.messages import printable
from streamplace.model.report import Bar, Heading, PlainPart, Report, Sheet

WIDTH = 100
"""Columns of output that does not go to a terminal."""
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


class DataText(Text):
    """Text whose lines do not break between a number and its unit."""

    def wrap(
        self,
        console: Console,
        width: int,
        *,
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        tab_size: int = 8,
        no_wrap: bool | None = None,
    ) -> Lines:
        """Break the text into lines of at most this width."""
        lines = _joined(self).wrap(
            console, width, justify=justify, overflow=overflow, tab_size=tab_size, no_wrap=no_wrap
        )
        for line in lines:
            line.plain = line.plain.replace(JOINT, " ")
        return lines

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Measure the text: at least its longest word, at most all of it on one line."""
        return _joined(self).__rich_measure__(console, options)


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
        return DataText(printable(text), style=style, justify=justify, overflow=overflow)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Make data of joined texts, which rich builds as plain `Text`."""
        text = _data_text(renderable) if type(renderable) is Text else renderable
        return super().render(text, options)


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
    """Plain text of a report, without details, as wide as the terminal (100 without one)."""
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


def _data_text(text: Text) -> DataText:
    """Convert a text so that its lines do not break before units."""
    data = DataText(justify=text.justify, overflow=text.overflow, no_wrap=text.no_wrap)
    data.end = text.end
    data.append_text(text)
    return data


def _joined(text: Text) -> Text:
    """Replace the spaces before units by `JOINT`."""
    copy = text.copy()
    copy.plain = joined(text.plain)
    return copy


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
