"""Names and notes as the texts of other languages hold them."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from streamplace.errors import FormatError
from streamplace.io.schema import utf8
from streamplace.model.messages import quoted, shown

CHECK = (
    "Check: `streamplace export FILE --to json --graph GRAPH -o p.json` reads it back, "
    "`streamplace simulate GRAPH p.json` says what it sustains."
)
"""How to check a form that no engine reads."""


def comment(lines: Iterable[str], mark: str = "#") -> str:
    r"""Lines as comments.

    >>> comment(["one", "", "two"], "//")
    '// one\n//\n// two\n'
    """
    return "".join(f"{mark} {line}".rstrip() + "\n" for line in lines)


def listed(names: Iterable[str]) -> str:
    r"""Names for a comment: on one line, whatever they hold.

    A backslash is doubled: Java reads ``\u`` even in comments.
    """
    return ", ".join(shown(name.replace("\\", "\\\\")) for name in names)


def quoted_yaml(text: str) -> str:
    r"""Text as a YAML string in double quotes.

    >>> print(quoted_yaml('größe "1"'), quoted_yaml("two\nlines\x85"))
    "größe \"1\"" "two\nlines\U00000085"
    """
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in plain)


def quoted_toml(text: str) -> str:
    r"""Text as a TOML string in double quotes.

    >>> print(quoted_toml('größe "1"\nmips = 9'))
    "größe \"1\"\nmips = 9"
    """
    return quoted_yaml(text)  # what YAML escapes, TOML reads


def quoted_java(text: str) -> str:
    r"""Text as a Java string literal.

    >>> print(quoted_java('größe "1"'))
    "gr\u00f6\u00dfe \"1\""
    """
    return json.dumps(text)


def decoded(content: bytes) -> str:
    """Text of a UTF-8 file, with or without a byte order mark."""
    try:
        return utf8(content, "the file").decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"is not UTF-8 text (byte {error.start})") from None


def unique(pairs: Iterable[tuple[str | None, str | None]]) -> dict[str, str]:
    """Operator → device from pairs read from a file; missing and repeated names are refused."""
    assignment: dict[str, str] = {}
    for operator, device in pairs:
        if not operator or not device:
            known = f"operator {quoted(operator)}" if operator else f"device {quoted(device)}"
            raise FormatError(f"{known} has no partner; complete or remove it")
        if operator in assignment:
            raise FormatError(f"operator {quoted(operator)} stands twice; remove one of them")
        assignment[operator] = device
    if not assignment:
        raise FormatError("places no operator; name a file that streamplace export wrote")
    return assignment


def python_table(rows: Mapping[Any, Any]) -> str:
    """Dictionary as Python source, one entry per line.

    >>> print(python_table({"a": [1]}))
    {
        'a': [1],
    }
    """
    return "{\n" + "".join(f"    {key!r}: {value!r},\n" for key, value in rows.items()) + "}"


def python_docstring(text: str) -> str:
    """Text that may stand in a docstring in triple quotes."""
    return text.replace("\\", "\\\\").replace('"', "'")


def indented(lines: Iterable[str], by: int) -> str:
    """Lines, each moved to the right."""
    return "\n".join(f"{' ' * by}{line}" for line in lines)
