"""TOML within limits, as the standard parser needs time and memory quadratic in the depth."""

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from streamplace.errors import FormatError
from streamplace.model.messages import quoted, shown

MOST_PARTS = 2**19
"""Most lines, commas and dots of a document; at worst, they take seconds and half a gigabyte."""
DEEPEST = 32
"""Most parts of a dotted name, and most nested tables and arrays."""
_WHOLE = range(-(2**63), 2**63)

_QUOTED = re.compile(  # unclosed strings end with the text, so that nothing is scanned twice
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*+(?:"{3,5})?'
    r"|'''(?:[^']|'{1,2}(?!'))*+(?:'{3,5})?"
    r'|"(?:[^"\\\n]|\\[^\n])*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+",
    re.DOTALL,
)
_BETWEEN_NAMES = re.compile(r"[=,\[\]{}\n]")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def tables(text: str, where: str) -> dict[str, Any]:
    r"""Tables of a TOML document; errors begin with ``where``.

    >>> tables("[training]\nepochs = 3", "here")
    {'training': {'epochs': 3}}
    """
    bare = _QUOTED.sub("", text)
    if sum(map(bare.count, "\n,.")) > MOST_PARTS:
        raise FormatError(
            f"{where}: has more than {MOST_PARTS} lines and values; describe equal devices once "
            "with a count, and only the links that differ"
        )
    names = _BETWEEN_NAMES.split(bare)
    if any(name.count(".") >= DEEPEST for name in names):
        raise _too_deep(where)
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise _too_deep(where) from None
    except (ValueError, OverflowError) as error:
        if _is_json(text):
            raise FormatError(
                f"{where}: is JSON, but a TOML file is expected here; correct the path"
            ) from None
        raise FormatError(f"{where}: is not valid TOML: {shown(str(error), 200)}") from None
    _check(document, where)
    return document


def _check(document: dict[str, Any], where: str) -> None:
    """Raise FormatError for deep nesting and for integers of more than 64 bits."""
    level: list[Any] = [document]
    for _ in range(DEEPEST):
        inside: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inside += value.values()
            elif isinstance(value, list):
                inside += value
            elif isinstance(value, int) and value not in _WHOLE:
                raise FormatError(
                    f"{where}: is not valid TOML: {quoted(value)} has more than 64 bits"
                )
        level = inside
    if level:
        raise _too_deep(where)


def _is_json(text: str) -> bool:
    """Whether a text begins with a JSON object."""
    try:
        return isinstance(json.JSONDecoder().raw_decode(text.lstrip())[0], dict)
    except (ValueError, RecursionError):
        return False


def _too_deep(where: str) -> FormatError:
    return FormatError(f"{where}: is nested too deep; flatten it")


def text_of(document: Mapping[str, Any]) -> str:
    """Write plain tables, such as those of a cluster, as TOML text.

    >>> print(text_of({"bandwidth": 1e9, "devices": [{"name": "a", "tags": ["gpu"]}]}))
    bandwidth = 1000000000.0
    <BLANKLINE>
    [[devices]]
    name = "a"
    tags = ["gpu"]
    <BLANKLINE>
    """
    lists = {
        key: value
        for key, value in document.items()
        if isinstance(value, list) and value and isinstance(value[0], Mapping)
    }
    plain = {key: value for key, value in document.items() if key not in lists}
    lines = [f"{_quoted_key(key)} = {_inline(value)}" for key, value in plain.items()]
    for key, rows in lists.items():
        for row in rows:
            lines += [*([""] if lines else []), f"[[{_quoted_key(key)}]]"]
            lines += [f"{_quoted_key(name)} = {_inline(value)}" for name, value in row.items()]
    return "".join(f"{line}\n" for line in lines)


def _quoted_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _inline(key)


def _inline(value: Any) -> str:
    """Value on one line."""
    if isinstance(value, Mapping):
        pairs = (f"{_quoted_key(key)} = {_inline(inner)}" for key, inner in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    if isinstance(value, str):
        escaped = json.dumps(value, ensure_ascii=False)
        return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped)
    return repr(value).lower() if isinstance(value, bool) else repr(value)
