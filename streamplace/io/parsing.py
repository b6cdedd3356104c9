"""Parsing of native files; errors are one line with place and remedy."""

import codecs
import re
from collections.abc import Hashable
from functools import cache
from typing import Any, Literal, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from streamplace.errors import FormatError
from streamplace.io.schema import FILES
from streamplace.model.message_text import quoted, shown, suggestion

_T = TypeVar("_T")

GRAPHS = ("graph", "problem")
"""Formats that ``generate`` and ``import`` write."""
MADE = "; make a graph with: streamplace generate, or from another format: streamplace import"
_MAPS = ("assignment", "parallelism", "priority", "pin", "allowed")
_KINDS = {
    "devices": "cluster",
    "offers": "offers",
    **dict.fromkeys(("pin", "colocate", "exlocate", "allowed"), "constraints"),
}
"""Formats of TOML files by a field that only they have."""
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_DEEP_KEY = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){100}""", re.ASCII
)
_UNION_BRANCHES = ("float", "str", "int", "bool", "constrained-float")


def parse_json(name: str, content: bytes, where: str) -> Any:
    """Parse a JSON document of the named format; errors begin with ``where``."""
    try:
        return parse_as(FILES[name], content, where)
    except FormatError as error:
        remedy = _remedy_for(name, content, str(error).removeprefix(f"{where}: "))
        raise FormatError(f"{where}: {remedy}") from None


def parse_as(
    kind: type[_T], content: bytes, where: str, extra: Literal["forbid", "ignore"] = "forbid"
) -> _T:
    """Parse a JSON document of a type; errors begin with ``where``."""
    text = utf8(content, where)
    try:
        document: _T = _adapter(cast(Hashable, kind)).validate_json(text, extra=extra)
    except ValidationError as error:
        raise FormatError(f"{where}: {first_fault(error, kind)}") from None
    return document


def parse_toml(name: str, content: bytes, where: str) -> Any:
    """Parse a TOML document of the named format; errors begin with ``where``."""
    tables = parse_toml_text(content, where)
    kinds = [kind for key, kind in _KINDS.items() if key in tables]
    if kinds and name in _KINDS.values() and name not in kinds:
        wrong, right = (kind.replace("cluster", "a cluster") for kind in (kinds[0], name))
        raise FormatError(f"{where}: is {wrong}, not {right}; give it with --{kinds[0]}")
    return parse_tables(name, tables, where)


def parse_toml_text(content: bytes, where: str) -> dict[str, Any]:
    r"""Parse any TOML document to tables.

    >>> parse_toml_text(b"[training]\nepochs = 3", "here")
    {'training': {'epochs': 3}}
    """
    import tomllib

    text = decoded(content, where)
    try:
        if _DEEP_KEY.search(text):  # tomllib takes quadratic time for it
            raise RecursionError
        return tomllib.loads(text)
    except RecursionError:
        raise FormatError(f"{where}: is nested too deep; flatten it") from None
    except (ValueError, OverflowError) as error:
        if text.lstrip().startswith("{"):
            why = "is JSON, but a TOML file is expected here; correct the path"
        else:
            why = f"is not valid TOML: {shown(str(error), 200)}"
        raise FormatError(f"{where}: {why}") from None


def parse_tables(name: str, tables: dict[str, Any], where: str) -> Any:
    """Check tables of a TOML document against the named format."""
    return checked(FILES[name], tables, where)


def checked(kind: type[_T], tables: object, where: str) -> _T:
    """Check tables against the typed dictionary that describes them."""
    try:
        document: _T = _adapter(cast(Hashable, kind)).validate_python(tables, extra="forbid")
    except ValidationError as error:
        raise FormatError(f"{where}: {first_fault(error, kind)}") from None
    return document


def utf8(content: bytes, where: str) -> bytes:
    """Remove a byte order mark; raise FormatError for UTF-16."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise FormatError(f"{where}: is UTF-16 text; save it as UTF-8")
    return content.removeprefix(codecs.BOM_UTF8)


def decoded(content: bytes, where: str) -> str:
    """Decode UTF-8 text, with or without a byte order mark; raise FormatError if it is none."""
    try:
        return utf8(content, where).decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{where}: is not UTF-8 text (byte {error.start})") from None


def untyped(content: bytes) -> Any:
    """Parse any JSON text, with or without a byte order mark; raise ValueError if it is none."""
    return from_json(content.removeprefix(codecs.BOM_UTF8))


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def first_fault(error: ValidationError, kind: Any) -> str:
    """Describe the first fault of a document of a type: place, value and remedy.

    An unknown field is reported before a missing one, which may have been misspelt.
    """
    faults = error.errors(include_url=False, include_context=False)
    fault = faults[0]
    if fault["type"] == "missing":
        fault = next((other for other in faults if other["type"] in _UNKNOWN), fault)
    path = _path(fault["loc"])
    message = shown(fault["msg"].replace("Input should", "it should"), 200)
    if fault["type"] == "json_invalid":
        return f"is not valid JSON: {message.removeprefix('Invalid JSON: ')}"
    if fault["type"] in _UNKNOWN:
        near = suggestion(str(fault["loc"][-1]), _fields_beside(kind, fault["loc"]))
        return f"{path} is not a known field{near or '; correct or remove it'}"
    if fault["type"] == "missing":
        return f"{path} is missing; add it"
    if fault["loc"][-1:] == ("[key]",) and fault["type"] == "string_type":
        table, name = _path(fault["loc"][:-2]), fault["input"]
        return f"{table} names {quoted(name)}; names are texts; write {quoted(str(name))}"
    return f"{path or 'the document'} is {quoted(fault['input'])}; {message}"


def _fields_beside(kind: Any, location: tuple[int | str, ...]) -> list[str]:
    """Names of the fields that a type allows in the table of a place in a document."""
    schema = part = _adapter(kind).json_schema()
    for step in location[:-1]:
        part = part.get("items" if isinstance(step, int) else "properties", {})
        part = part if isinstance(step, int) else part.get(step, {})
        part = schema.get("$defs", {}).get(part.get("$ref", "").rpartition("/")[2], part)
    return [*part.get("properties", ())]


def _path(location: tuple[int | str, ...]) -> str:
    """Place in a document, such as ``operators[2].rate``."""
    parts = location
    if len(parts) > 1 and parts[0] not in _MAPS and parts[-1] in _UNION_BRANCHES:
        parts = parts[: 2 if parts[0] == "attributes" else -1]
    return "".join(
        f"[{step}]" if isinstance(step, int) else f".{shown(str(step))}" for step in parts
    ).lstrip(".")


def _remedy_for(name: str, content: bytes, fault: str) -> str:
    """Describe the fault of a document, or the kind of its file if that is another."""
    is_graph, text = name in GRAPHS, content.strip()
    made = MADE if is_graph else ""
    if not text:
        return f"is empty, and not valid JSON{made}"
    try:
        document = untyped(content)
    except ValueError as error:
        if str(error).startswith("trailing characters") and text.endswith(b"}"):
            return "holds several JSON documents; write each on one line of a .jsonl file"
        return fault if text.startswith((b"{", b"[")) else fault + made
    fields = set(document) if isinstance(document, dict) else set()
    if is_graph and "assignment" in fields:
        return (
            "is a placement, not a graph; give the graph here, and its placement, if the command "
            "reads one, after it"
        )
    if is_graph and fields and fields.isdisjoint(("graph", "operators", "streams")):
        return f"is no graph{made}"
    if name == "placement" and "points" in fields:
        return "is a front of several placements; write the assignment of one into a file"
    if name == "placement" and "assignment" not in fields and fields & {"operators", "graph"}:
        return "is a graph, not a placement; give the placement that belongs to it"
    return fault
