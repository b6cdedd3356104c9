"""Console that treats every text as data: names hold no markup or terminal control codes."""

import shutil
import sys
from collections.abc import Iterable
from io import StringIO

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
from rich.text import Text

from streamplace.model.messages import printable
from streamplace.model.report import Heading, Report, Sheet
from streamplace.model.tables import JOINT, joined, tables_of

WIDTH = 100
"""Columns of output that does not go to a terminal."""


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


def print_parts(console: Console, report: Report) -> None:
    """Print the sentences and tables of a report."""
    for part in report.parts:
        if isinstance(part, Sheet):
            for table in tables_of(part, console.width):
                console.print(table)
        elif isinstance(part, Heading):
            console.print(titled(part.name, part.rest))
        else:
            console.print(part)


def as_text(report: Report) -> str:
    """Report as plain text, as wide as the terminal (100 columns without one)."""
    width = shutil.get_terminal_size().columns if _on_terminal() else WIDTH
    file = StringIO()
    console = DataConsole(
        file=file, width=width, highlight=False, color_system=None, force_terminal=False,
        force_jupyter=False,
    )  # fmt: skip
    if report.title:
        console.print(report.title)
    print_parts(console, report)
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


def _on_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()
