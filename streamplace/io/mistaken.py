"""Errors for files of the wrong kind: a placement for a graph, several documents for one."""

import json
from typing import Any

from pydantic_core import from_json

GRAPHS = ("graph", "problem")
"""Formats that other commands write."""


def remedy_for(name: str, content: bytes, fault: str) -> str:
    """Describe the fault of a document, in other words if the file is of another kind."""
    kind = "graph" if name in GRAPHS else name
    if not content.strip():
        return "is empty, and no valid JSON" + (_made() if name in GRAPHS else "")
    try:
        document = from_json(content)
    except ValueError:
        return _of_invalid(kind, content, fault)
    other = _kind_of(document)
    if other is None or other == kind:
        return fault
    if kind == "graph":
        return (
            "is a placement, not a graph; give the graph here, and its placement, if the command "
            "reads one, after it"
        )
    return f"is a graph, not a {kind}; give the {kind} that belongs to it"


def _kind_of(document: Any) -> str | None:
    """Kind of a document by its fields, graph or placement; None for others."""
    if not isinstance(document, dict):
        return None
    if "assignment" in document:
        return "placement"
    return "graph" if {"operators", "graph"} & set(document) else None


def _of_invalid(kind: str, content: bytes, fault: str) -> str:
    """Describe the fault of a text that is not a JSON document."""
    if _several(content):
        return "holds several JSON documents; write each on one line of a .jsonl file"
    other_format = kind == "graph" and not content.lstrip().startswith((b"{", b"["))
    return fault + (_made() if other_format else "")


def _several(content: bytes) -> bool:
    """Whether one JSON object follows another."""
    text = content.decode(errors="replace").lstrip()
    try:
        document, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and text[end:].lstrip().startswith("{")


def _made() -> str:
    return "; make a graph with: streamplace generate, or from another format: streamplace import"
