"""Pages of reports: the document of a subject, with policy, style, words and script in one file."""

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from streamplace.display.assumptions import assumed, assumptions
from streamplace.display.html import escaped
from streamplace.display.report import Bar, Cell, Heading, Names, Report, Sheet, percent
from streamplace.drawing.graphs import NamedPlacements
from streamplace.io.files import check_suffix, write_text
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import printable
from streamplace.placers.result import Result, bound_in_words, verdict
from streamplace.report.document import VERSION, ReportDocument
from streamplace.report.limits import MAX_OPERATORS, TOO_LARGE
from streamplace.report.problems import (
    Shown,
    errors_part,
    graph_part,
    placing_title,
    problem_part,
)

SCRIPT, STYLE = "page.js", "page.css"
HEIGHT = 720
"""Height of a report in a notebook, in pixels."""
NO_SCRIPT = "This browser runs no scripts: the page below is only the text of the report."
METER = '<meter value="{:.3f}" low="0.7" high="0.9" optimum="0"></meter>'
"""Bar without a style, which the policy forbids; its colour changes at loads of low and high."""
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}


def save_page(report: Report, path: Path) -> None:
    """Write the page of a report to a file whose name ends in .html."""
    check_suffix(path, "a report", ".html")
    write_text(path, page_of(report))


def page_of(report: Report) -> str:
    """Render a report as the text of one HTML file."""
    subject = report.subject
    words = _words_of_result(subject) if isinstance(subject, Result) else report
    return as_page(document_of(report), words)


def frame_of(report: Report) -> str:
    """Render a report as an element of a notebook, isolated from the rest of it."""
    return (
        f'<iframe title="report" srcdoc="{escape(page_of(report))}" width="100%" '
        f'height="{HEIGHT}" frameborder="0" sandbox="allow-scripts allow-downloads"></iframe>'
    )


def document_of(report: Report) -> ReportDocument:
    """Build the document of a report."""
    subject = report.subject
    document = ReportDocument(
        version=VERSION,
        made_by=f"streamplace {version('streamplace')}",
        title=printable(report.title),
        notes=[],
        problems=[],
    )
    if isinstance(subject, StreamGraph):
        document["title"] = subject.title or document["title"]
        if subject.n_operators <= MAX_OPERATORS:
            document["problems"] = [graph_part(subject)]
        else:
            document["notes"].append(TOO_LARGE)
    elif isinstance(subject, NamedPlacements | Result):
        _add_placements(document, subject)
    elif subject is not None:
        from streamplace.report.results import add_results

        add_results(document, subject)
    document["title"] = document["title"] or "Report"
    if report.command:
        for problem in document["problems"]:
            problem["command"] = report.command
    return document


def _words_of_result(result: Result) -> Report:
    """Text on the value, the bottleneck and advice, without times, which vary between runs."""
    explanation = result.explain()
    large = result.problem.n_operators > MAX_OPERATORS
    report = explanation.brief() if large else explanation.report()
    bound = bound_in_words(result.judge, result.value, result.bound)
    parts = (
        *report.parts,
        *(assumed(assumptions(result.problem)) if large else ()),
        *([] if bound is None else [bound]),
        *result.likely(),
        f"Verdict: {verdict(result.value, result.bound, explanation)}",
    )
    return Report(parts, report.title)


def _add_placements(document: ReportDocument, subject: NamedPlacements | Result) -> None:
    problem = subject.problem
    document["title"] = placing_title(problem)
    if problem.n_operators > MAX_OPERATORS:
        document["notes"].append(TOO_LARGE)
        return
    if isinstance(subject, Result):
        shown = [Shown(subject.placer, subject.placement, subject.bound)]
    else:
        shown = [Shown(name, placement) for name, placement in subject.placements]
    part = problem_part(problem, shown, subject.judge)
    if isinstance(subject, Result) and subject.errors is not None:
        part["errors"] = errors_part(subject.errors)
    document["problems"] = [part]


def words_as_html(words: Report) -> str:
    """Sentences and tables of a report as plain HTML.

    >>> words_as_html(Report((Heading("x", ": y"),), "a < b"))
    '<h1>a &lt; b</h1><p><strong>x</strong>: y</p>'
    """
    title = f"<h1>{escaped(words.title)}</h1>" if words.title else ""
    return title + "".join(map(_element, words.all_parts))


def _element(part: str | Sheet | Heading) -> str:
    if isinstance(part, Heading):
        return f"<p><strong>{escaped(part.name)}</strong>{escaped(part.rest)}</p>"
    if not isinstance(part, Sheet):
        return f"<p>{escaped(part)}</p>"
    head = "".join(f"<th>{escaped(text)}</th>" for text in part.head)
    rows = "".join(f"<tr>{''.join(map(_data, row))}</tr>" for row in part.rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _data(cell: Cell) -> str:
    if isinstance(cell, Bar):
        return f"<td>{METER.format(min(cell.load, 1.0))} {percent(cell.load)}</td>"
    return f"<td>{escaped(cell.text() if isinstance(cell, Names) else cell)}</td>"


def as_page(document: ReportDocument, words: Report) -> str:
    """Render the HTML file, with the words as text for browsers that run no scripts."""
    script, style = page_file(SCRIPT), page_file(STYLE)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script, style)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="{escape(document["made_by"])}">\n'
        f"<title>{escape(document['title'])}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<main id="page"><div id="words"><noscript><p>{NO_SCRIPT}</p></noscript>'
        f"{words_as_html(words)}</div></main>\n"
        f'<script type="application/json" id="report">{as_json(document)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def as_json(document: Any) -> str:
    r"""Encode JSON in ASCII, without characters that could end its HTML element.

    >>> as_json(["</script>", "é"])
    '["\\u003c/script\\u003e","\\u00e9"]'
    """
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)


@cache
def page_file(name: str) -> str:
    """Text of the script or of the style sheet, which all pages share."""
    return files("streamplace.report").joinpath(name).read_text(encoding="utf-8")


def _policy(script: str, style: str) -> str:
    """Content security policy that allows this script and this style, and no requests."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
