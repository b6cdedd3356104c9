"""Construction of a report's document from its subject; its words, also as plain HTML."""

from collections.abc import Callable, Mapping
from html import escape
from importlib.metadata import version
from typing import Any

from streamplace.drawing.graphs import NamedPlacements
from streamplace.model.assumptions import assumed, assumptions
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import printable
from streamplace.model.report import Bar, Cell, Heading, Names, Report, Sheet, percent
from streamplace.placers.result import Result, bound_in_words, verdict
from streamplace.report.boxes import MOST_OPERATORS
from streamplace.report.document import VERSION, ReportDocument, TablePart, WordsPart
from streamplace.report.placements import Shown
from streamplace.report.problems import errors_part, graph_part, placing_title, problem_part

Add = Callable[[ReportDocument, Any], None]
"""Function that adds the subject of a report to a document."""


def document_of(report: Report) -> ReportDocument:
    """Build the document of a report."""
    subject = report.subject
    words = _words_of_result(subject) if isinstance(subject, Result) else report
    document = ReportDocument(
        version=VERSION,
        made_by=f"streamplace {version('streamplace')}",
        title=_title(subject) or printable(words.title),
        words=words_part(words),
        notes=[],
        problems=[],
    )
    if subject is not None:
        _added_by(subject)(document, subject)
    document["title"] = document["title"] or "Report"
    if report.command:
        for problem in document["problems"]:
            problem["command"] = report.command
    for problem in document["problems"]:
        if problem["level"] == "units":
            boxes = "A box stands for the operators of some layers on one device, because"
            document["notes"].append(f"{boxes} {problem['what_if']}.")
    return document


def _added_by(subject: object) -> Add:
    """Function that adds a subject to a document; types of other packages are imported last."""
    plain: Mapping[type, Add] = {
        StreamGraph: lambda document, graph: document.update({"problems": [graph_part(graph)]}),
        NamedPlacements: _add_placements,
        Result: _add_result,
    }
    for kind, add in plain.items():
        if isinstance(subject, kind):
            return add
    from streamplace.report.results import add_results

    return add_results


def _title(subject: object) -> str:
    """Graph and question of the subject; empty if there are several graphs or none."""
    if isinstance(subject, NamedPlacements | Result):
        return placing_title(subject.problem)
    return subject.title if isinstance(subject, StreamGraph) else ""


def _words_of_result(result: Result) -> Report:
    """Words on the value, the bottleneck and advice, without times that vary between runs."""
    explanation = result.explain()
    large = result.problem.n_operators > MOST_OPERATORS
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


def _add_placements(document: ReportDocument, subject: NamedPlacements) -> None:
    shown = [Shown(name, placement) for name, placement in subject.placements]
    part = problem_part(subject.problem, shown, subject.judge)
    document["problems"] = [part]
    if len(part["placements"]) < len(shown):
        document["notes"].append(
            f"Only the best of {len(shown)} placements is shown, because {part['what_if']}."
        )


def _add_result(document: ReportDocument, result: Result) -> None:
    named = NamedPlacements(result.problem, ((result.placer, result.placement),), result.judge)
    _add_placements(document, named)
    if result.errors is not None:
        document["problems"][0]["errors"] = errors_part(result.errors)
    if result.bound is not None:
        for placement in document["problems"][0]["placements"]:
            placement["bound"] = result.bound


def words_part(report: Report) -> WordsPart:
    """Sentences and tables of a report for the document."""
    parts = [_part(part) for part in report.all_parts]
    return WordsPart(title=printable(report.title), parts=parts)


def _part(part: str | Sheet | Heading) -> str | tuple[str, str] | TablePart:
    if isinstance(part, Heading):
        return printable(part.name), printable(part.rest)
    if isinstance(part, Sheet):
        rows = [[_cell(cell) for cell in row] for row in part.rows]
        return TablePart(head=[printable(text) for text in part.head], rows=rows)
    return printable(part)


def _cell(cell: Cell) -> str | float:
    if isinstance(cell, Bar):
        return cell.load
    return printable(cell.text() if isinstance(cell, Names) else cell)


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
