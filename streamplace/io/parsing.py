"""Parsing of native files; errors are one line with place and remedy."""

import codecs
import json
from collections.abc import Hashable
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from streamplace.errors import FormatError
from streamplace.io import toml
from streamplace.io.fields import check_json, check_known, fields_at, path_text
from streamplace.io.schema import FILES
from streamplace.model.messages import quoted, shown, suggestion

_T = TypeVar("_T")

GRAPHS = ("graph", "problem")
"""Formats that other commands write."""
_MAPS = ("assignment", "parallelism", "priority", "pin", "allowed")
_UNION_BRANCHES = ("float", "str", "int", "bool", "constrained-float")


def parse_json(name: str, content: bytes, where: str) -> Any:
    """Parse a JSON document of the named format; errors begin with ``where``."""
    try:
        return parse_as(FILES[name], content, where)
    except FormatError as error:
        remedy = remedy_for(name, content, str(error).removeprefix(f"{where}: "))
        raise FormatError(f"{where}: {remedy}") from None


def parse_as(kind: type[_T], content: bytes, where: str) -> _T:
    """Parse a JSON document that a typed dictionary describes."""
    text = utf8(content, where)
    document = valid(kind, text, where)
    check_json(text, document, where, kind)
    return document


def valid(kind: type[_T], text: bytes, where: str) -> _T:
    """Parse a JSON text that a typed dictionary describes, without a check for other fields."""
    try:
        document: _T = _adapter(cast(Hashable, kind)).validate_json(text, extra="ignore")
    except ValidationError as error:
        raise FormatError(f"{where}: {first_fault(error, kind)}") from None
    return document


def parse_toml(name: str, content: bytes, where: str) -> Any:
    """Parse a TOML document of the named format; errors begin with ``where``."""
    return parse_tables(name, parse_toml_text(content, where), where)


def parse_toml_text(content: bytes, where: str) -> dict[str, Any]:
    """Parse any TOML document to tables."""
    try:
        text = utf8(content, where).decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{where}: is not UTF-8 text (byte {error.start})") from None
    return toml.tables(text, where)


def parse_tables(name: str, tables: dict[str, Any], where: str) -> Any:
    """Check tables of a TOML document against the named format."""
    return checked(FILES[name], tables, where)


def checked(kind: type[_T], tables: object, where: str) -> _T:
    """Check tables against the typed dictionary that describes them."""
    try:
        document: _T = _adapter(cast(Hashable, kind)).validate_python(tables, extra="ignore")
    except ValidationError as error:
        raise FormatError(f"{where}: {first_fault(error, kind)}") from None
    check_known(tables, document, where, kind)
    return document


def utf8(content: bytes, where: str) -> bytes:
    """Remove a byte order mark; raise FormatError for UTF-16."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise FormatError(f"{where}: is UTF-16 text; save it as UTF-8")
    return content.removeprefix(codecs.BOM_UTF8)


def untyped(content: bytes) -> Any:
    """Parse any JSON text, with or without a byte order mark; raise ValueError if it is none."""
    return from_json(content.removeprefix(codecs.BOM_UTF8))


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def first_fault(error: ValidationError, kind: Any) -> str:
    """Describe the first fault of a document of a type: place, value and remedy."""
    fault = error.errors(include_url=False, include_context=False)[0]
    path = _path(fault["loc"])
    message = shown(fault["msg"].replace("Input should", "it should"), 200)
    if fault["type"] == "json_invalid":
        return f"is not valid JSON: {message.removeprefix('Invalid JSON: ')}"
    if fault["type"] == "extra_forbidden":
        return f"{path} is not a known field; correct or remove it"
    if fault["type"] == "missing":
        return _missing(fault["loc"], fault["input"], kind)
    return f"{path or 'the document'} is {quoted(fault['input'])}; {message}"


def _missing(location: tuple[int | str, ...], table: object, kind: Any) -> str:
    """Describe a missing field, or an unknown one that probably stands for it."""
    *above, name = location
    known = fields_at(kind, tuple(above))
    for given in table if isinstance(table, dict) else ():
        if given in known:
            continue
        if near := suggestion(str(given), [str(name)]):
            return f"{_path((*above, str(given)))} is not a known field{near}"
    return f"{_path(location)} is missing; add it"


def _path(location: tuple[int | str, ...]) -> str:
    """Place in a document, such as ``operators[2].rate``."""
    parts = location
    if len(parts) > 1 and parts[0] not in _MAPS and parts[-1] in _UNION_BRANCHES:
        parts = parts[: 2 if parts[0] == "attributes" else -1]
    return path_text(parts)


def remedy_for(name: str, content: bytes, fault: str) -> str:
    """Describe the fault of a document, in other words if the file is of another kind."""
    kind = "graph" if name in GRAPHS else name
    if not content.strip():
        return "is empty, and no valid JSON" + (_made() if name in GRAPHS else "")
    try:
        document = untyped(content)
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
