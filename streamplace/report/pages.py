"""Pages of reports: files, and elements of notebooks."""

from pathlib import Path

from streamplace.errors import FormatError
from streamplace.io.files import write_text
from streamplace.model.display import picture_of
from streamplace.model.report import Report
from streamplace.report.documents import document_of
from streamplace.report.html import as_frame, as_page

SUFFIX = ".html"


def page_of(report: Report) -> str:
    """Render a report as the text of one HTML file."""
    return as_page(document_of(report), _picture_of(report.subject))


def _picture_of(subject: object) -> str:
    """SVG of a subject that the page does not draw itself; empty for others."""
    from streamplace.evaluate.watch_history import WatchHistory

    return (picture_of(subject) or "") if isinstance(subject, WatchHistory) else ""


def frame_of(report: Report) -> str:
    """Render a report as an element of a notebook."""
    return as_frame(page_of(report))


def check_page(path: Path) -> None:
    """Raise FormatError unless a file's name ends in .html."""
    if path.suffix != SUFFIX:
        raise FormatError(f"{path}: the name of a report must end in {SUFFIX}")


def save_page(report: Report, path: Path) -> None:
    """Write the page of a report to a file whose name ends in .html."""
    check_page(path)
    write_text(path, page_of(report))
