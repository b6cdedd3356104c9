"""Pages of reports, with policy, style, words, document and script: files, and notebooks."""

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from streamplace.errors import FormatError
from streamplace.io.files import spot, write_text
from streamplace.model.report import Report
from streamplace.report.document import ReportDocument
from streamplace.report.documents import document_of, words_as_html

SCRIPT, STYLE = "page.js", "page.css"
SUFFIX = ".html"
HEIGHT = 720
"""Height of a report in a notebook, in pixels."""
NO_SCRIPT = "This browser runs no scripts: the page below has the words of the report alone."
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}


def as_page(document: ReportDocument) -> str:
    """Render the HTML file."""
    script, style = page_file(SCRIPT), page_file(STYLE)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script, style)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="{escape(document["made_by"])}">\n'
        f"<title>{escape(document['title'])}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<main id="page"><div id="words"><noscript><p>{NO_SCRIPT}</p></noscript>'
        f"{words_as_html(document['words'])}</div></main>\n"
        f'<script type="application/json" id="report">{as_json(document)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def as_frame(page: str) -> str:
    """Render a page as an element of a notebook, isolated from the rest of it."""
    return (
        f'<iframe title="report" srcdoc="{escape(page)}" width="100%" height="{HEIGHT}" '
        'frameborder="0" sandbox="allow-scripts allow-downloads"></iframe>'
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


def page_of(report: Report) -> str:
    """Render a report as the text of one HTML file."""
    return as_page(document_of(report))


def frame_of(report: Report) -> str:
    """Render a report as an element of a notebook."""
    return as_frame(page_of(report))


def save_page(report: Report, path: Path) -> None:
    """Write the page of a report to a file whose name ends in .html."""
    if path.suffix != SUFFIX:
        raise FormatError(f"{spot(path)}: the name of a report must end in {SUFFIX}")
    write_text(path, page_of(report))
