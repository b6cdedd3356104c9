"""Reports as HTML for notebooks: tables and bars without scripts, every text escaped."""

from html import escape

from streamplace.display.report import MAX_SHORT_CELL, Bar, Cell, Heading, Names, Report, Sheet
from streamplace.model.message_text import printable

FULL, OVER, EMPTY = "#3366aa", "#cc3333", "#88888840"
CELL = "text-align:left;padding:1px 10px 1px 0"
LINE = "margin:0.2em 0"
WIDTH = 9.0
"""Width of a full bar in em."""


def as_html(report: Report, picture: str | None = None) -> str:
    """Render a report as HTML, below its picture if there is one.

    >>> as_html(Report(("Fine & well.",)))
    '<div style="overflow-x:auto"><p style="margin:0.2em 0">Fine &amp; well.</p></div>'
    """
    title = f'<p style="{LINE}"><b>{escaped(report.title)}</b></p>' if report.title else ""
    drawn = f"<div>{picture}</div>" if picture else ""
    parts = "".join(map(_part, report.main_parts))
    return f'<div style="overflow-x:auto">{title}{drawn}{parts}</div>'


def _part(part: str | Sheet | Heading) -> str:
    if isinstance(part, Sheet):
        head = "".join(f'<th style="{CELL}">{escaped(name)}</th>' for name in part.head)
        rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in part.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    if isinstance(part, Heading):
        return f'<p style="{LINE}"><b>{escaped(part.name)}</b>{escaped(part.rest)}</p>'
    return f'<p style="{LINE}">{escaped(part)}</p>'


def _cell(cell: Cell) -> str:
    if isinstance(cell, Bar):
        return f'<td style="{CELL}">{_bar(cell.load)}</td>'
    text = cell.text() if isinstance(cell, Names) else cell
    style = f"{CELL};white-space:nowrap" if len(text) <= MAX_SHORT_CELL else CELL
    return f'<td style="{style}">{escaped(text)}</td>'


def _bar(load: float) -> str:
    """Bar that is full at a load of 1 and red above."""
    full = WIDTH * min(load, 1.0)
    colour = FULL if load <= 1 else OVER
    return (
        f'<div style="width:{WIDTH:g}em;background:{EMPTY}">'
        f'<div style="width:{full:.2f}em;height:0.8em;background:{colour}"></div></div>'
    )


def escaped(text: str) -> str:
    """Text of an HTML element; unprintable characters are shown as escapes."""
    return escape(printable(text))
