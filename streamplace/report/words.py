"""Sentences and tables of a report, for the document and as HTML without scripts."""

from html import escape

from streamplace.model.messages import printable
from streamplace.model.report import Bar, Heading, Report, Sheet, percent
from streamplace.report.document import TablePart, WordsPart


def words_part(report: Report) -> WordsPart:
    """Sentences and tables of a report for the document."""
    return WordsPart(title=printable(report.title), parts=[_part(part) for part in report.parts])


def _part(part: str | Sheet | Heading) -> str | tuple[str, str] | TablePart:
    if isinstance(part, Heading):
        return printable(part.name), printable(part.rest)
    if isinstance(part, Sheet):
        rows = [[_cell(cell) for cell in row] for row in part.rows]
        return TablePart(head=[printable(text) for text in part.head], rows=rows)
    return printable(part)


def _cell(cell: str | Bar) -> str | float:
    return cell.load if isinstance(cell, Bar) else printable(cell)


def words_as_html(words: WordsPart) -> str:
    """Sentences and tables as plain HTML.

    >>> words_as_html({"title": "a < b", "parts": [("x", ": y")]})
    '<h1>a &lt; b</h1><p><strong>x</strong>: y</p>'
    """
    title = f"<h1>{escape(words['title'])}</h1>" if words["title"] else ""
    return title + "".join(map(_element, words["parts"]))


def _element(part: str | tuple[str, str] | TablePart) -> str:
    if isinstance(part, str):
        return f"<p>{escape(part)}</p>"
    if isinstance(part, tuple):
        return f"<p><strong>{escape(part[0])}</strong>{escape(part[1])}</p>"
    head = "".join(f"<th>{escape(text)}</th>" for text in part["head"])
    rows = "".join(f"<tr>{''.join(map(_data, row))}</tr>" for row in part["rows"])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _data(cell: str | float) -> str:
    return f"<td>{escape(cell) if isinstance(cell, str) else percent(cell)}</td>"
