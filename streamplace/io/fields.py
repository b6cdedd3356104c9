"""Fields of documents: their types, and checks for unknown and repeated ones.

Pydantic and JSON readers ignore these. Validation ignores unknown fields, because it would collect
millions of them before it reported the first.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from itertools import chain
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, FailFast, Field, TypeAdapter

from streamplace.errors import FormatError
from streamplace.model.messages import quoted, shown, suggestion

STRICT = ConfigDict(extra="forbid", strict=True)
_T = TypeVar("_T")
ListOf = Annotated[list[_T], FailFast()]  # of a million errors, the first is reported
TableOf = Annotated[dict[str, _T], FailFast()]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Quantity = Annotated[float, Field(ge=0, allow_inf_nan=False)] | str

_COLON = re.compile(rb'"[ \t\r\n]*+:')
_PLAIN = frozenset((str, float, int, bool, type(None)))


def doc(text: str) -> Any:
    """Describe a field in the published schema."""
    return Field(description=text)


def check_json(content: bytes, document: Any, where: str, kind: Any) -> None:
    """Check a JSON text for unknown and repeated fields, against its validated document.

    Every field has a colon after its quote. If there are no more of those than validated fields,
    no field was ignored, and the text is not parsed again. Fields that may be left out could stand
    for others that were ignored.
    """
    read = _count(document)
    if content.count(b":") == read or sum(1 for _ in _COLON.finditer(content)) == read:
        return
    check_known(unrepeated(content, where), document, where, kind)


def unrepeated(content: bytes, where: str) -> Any:
    """Parse a valid JSON text without its numbers; raise FormatError for a repeated field."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table: dict[str, Any] = {}
        for key, value in pairs:
            if key in table:
                raise FormatError(f"{where}: {quoted(key)} appears twice; remove one of them")
            table[key] = value
        return table

    return json.loads(content, object_pairs_hook=once, parse_int=_passed, parse_float=_passed)


def check_known(
    given: Any, document: Any, where: str, kind: Any, place: tuple[int | str, ...] = ()
) -> None:
    """Raise FormatError for the first field that validation by a type ignored."""
    allowed = _table(document)
    if isinstance(given, dict) and allowed is not None:
        for key, value in given.items():
            if key not in allowed:
                path = path_text((*place, str(key)))
                remedy = suggestion(str(key), fields_at(kind, place)) or "; correct or remove it"
                raise FormatError(f"{where}: {path} is not a known field{remedy}")
            check_known(value, allowed[key], where, kind, (*place, key))
    elif isinstance(given, list) and isinstance(document, list):
        for i, (value, read) in enumerate(zip(given, document, strict=True)):
            check_known(value, read, where, kind, (*place, i))


def path_text(place: tuple[int | str, ...]) -> str:
    """Place in a document, such as ``operators[2].rate``."""
    return "".join(
        f"[{step}]" if isinstance(step, int) else f".{shown(str(step))}" for step in place
    ).lstrip(".")


def fields_at(kind: Any, place: tuple[int | str, ...]) -> list[str]:
    """Names of the fields that the type allows at a place of a document."""
    schema = TypeAdapter(kind).json_schema()
    part = schema
    for step in place:
        inside = "items" if isinstance(step, int) else "properties"
        part = part.get(inside, {})
        part = _resolved(part if isinstance(step, int) else part.get(step, {}), schema)
    return [*part.get("properties", ())]


def _resolved(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Resolve a reference in a JSON Schema."""
    name = str(part.get("$ref", "")).rpartition("/")[2]
    definition: dict[str, Any] = schema["$defs"][name] if name else part
    return definition


def _count(document: Any) -> int:
    """Number of fields in all tables of a document; -1 if some of them may be left out."""
    count, left = 0, [document]
    while left:
        tables = [value for value in left if type(value) is dict]
        lists: list[Any] = []
        if len(tables) < len(left):
            others = [value for value in left if type(value) is not dict]
            lists = [value for value in others if isinstance(value, list)]
            if any(map(_has_defaults, {type(value) for value in others})):
                return -1
            tables += [dict(table) for value in others if (table := _table(value))]
        count += sum(map(len, tables))
        left = list(chain(*lists, *map(dict.values, tables)))
        if set(map(type, left)) <= _PLAIN:
            break
        left = [value for value in left if type(value) not in _PLAIN]
    return count


def _has_defaults(kind: type) -> bool:
    """Whether a dataclass has fields that may be left out."""
    return is_dataclass(kind) and any(
        field.default is not MISSING or field.default_factory is not MISSING
        for field in fields(kind)
    )


def _table(document: Any) -> Mapping[str, Any] | None:
    """Fields of a dictionary or a dataclass; None for other values."""
    if isinstance(document, dict):
        return document
    if is_dataclass(document):
        return {field.name: getattr(document, field.name) for field in fields(document)}
    return None


def _passed(_: str) -> None:
    """Ignore a number, however many digits it has."""


def plain(number: float) -> int | float:
    """Convert whole numbers to integers, which halves a file."""
    value = float(number)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
