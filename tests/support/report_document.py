"""Checks of documents of reports against their description."""

import json
from typing import Any

from pydantic import TypeAdapter

from streamplace.report.document import ReportDocument

_DESCRIBED = TypeAdapter(ReportDocument)


def check_document(text: str) -> dict[str, Any]:
    """Return the document of a text whose fields are all described and of their types."""
    document: dict[str, Any] = json.loads(text)
    described = _DESCRIBED.validate_json(text, strict=True)
    assert _DESCRIBED.dump_python(described, mode="json") == document
    return document
