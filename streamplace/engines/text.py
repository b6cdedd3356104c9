"""Names and notes as texts of other languages."""

import json
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from streamplace.errors import FormatError
from streamplace.model.message_text import printable, quoted, shown

if TYPE_CHECKING:
    from streamplace.engines.deployment import Deployment

FORMULA = re.compile(r"'*(?:\s*[=+\-@＝＋－＠]|[\t\r\n])")
"""Beginnings of texts that spreadsheets evaluate, after any number of apostrophes."""
PLAIN_CELL = re.compile(r"[\w.:#/-]*")
PLAIN_DOT = frozenset(map(chr, range(32, 127))) - {"%", '"', "\\"}
NOT_XML = re.compile("[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def comment(lines: Iterable[str], mark: str = "#") -> str:
    r"""Format lines as comments of any language.

    >>> print(comment(["one", "", "two\nlines \\"], "//"), end="")
    // one
    //
    // two\\nlines \\.
    """
    return "".join(f"{mark} {_note(line)}".rstrip() + "\n" for line in lines)


def _note(line: str) -> str:
    r"""Escape the end of a line: Java reads ``\u`` in comments, other languages a final ``\``."""
    note = printable(line).replace("\\", "\\\\").rstrip()
    return f"{note}." if note.endswith("\\") else note


def listed(names: Iterable[str]) -> str:
    """Names for a comment, shortened if they are long."""
    return ", ".join(map(shown, names))


def group_notes(deployment: "Deployment") -> Iterator[str]:
    """Notes on groups of operators that must or must not share a device."""
    for group in deployment.colocated:
        yield f"Must share a device: {listed(group)}"
    for group in deployment.exlocated:
        yield f"Must not share one: {listed(group)}"


def quoted_yaml(text: str) -> str:
    r"""Text as a string of YAML or TOML in double quotes.

    >>> print(quoted_yaml('größe "1"'), quoted_yaml("two\nlines\x85"))
    "größe \"1\"" "two\nlines\U00000085"
    """
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in plain)


def quoted_java(text: str) -> str:
    r"""Text as a Java string literal.

    >>> print(quoted_java('größe "1"'))
    "gr\u00f6\u00dfe \"1\""
    """
    return json.dumps(text)


def quoted_shell(text: str) -> str:
    """Text as one word of a POSIX shell, in single quotes.

    >>> print(quoted_shell("box0"), quoted_shell("it's $HOME"))
    'box0' 'it'"'"'s $HOME'
    """
    if "\0" in text:
        raise FormatError(
            f"{quoted(text)} contains '\\x00', which a shell cannot pass on; rename it"
        )
    return "'" + text.replace("'", "'\"'\"'") + "'"


def quoted_csv(text: str) -> str:
    r"""Text as a cell of a table; formulas of spreadsheets get an apostrophe.

    >>> print(quoted_csv("join"), quoted_csv("a, b"), quoted_csv("=1+1"))
    join "a, b" "'=1+1"
    """
    safe = f"'{text}" if FORMULA.match(text) else text
    return safe if PLAIN_CELL.fullmatch(safe) else '"' + safe.replace('"', '""') + '"'


def unquoted_csv(cell: str) -> str:
    """Original text of a cell without its quotes.

    >>> unquoted_csv("'=1+1"), unquoted_csv("'quoted'")
    ('=1+1', "'quoted'")
    """
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def quoted_dot(text: str) -> str:
    r"""Text as an ID of DOT; invalid and ambiguous characters are percent-encoded.

    >>> print(quoted_dot("join"), quoted_dot("größe"), quoted_dot('a "b" 5%\n'))
    "join" "größe" "a %22b%22 5%25%0A"

    Graphviz ignores names that begin with a percent sign, so an equals sign is put before it.

    >>> print(quoted_dot("%"), quoted_dot("=x"))
    "=%25" "=%3Dx"
    """
    safe = "".join(
        c if c in PLAIN_DOT or (c.isprintable() and ord(c) > 126) else urllib.parse.quote(c)
        for c in text
    )
    if safe.startswith("="):
        safe = urllib.parse.quote("=") + safe[1:]
    return f'"={safe}"' if safe.startswith("%") else f'"{safe}"'


def dot_label(text: str) -> str:
    r"""Text as a label of DOT, in which a backslash would be an escape.

    >>> print(dot_label("join"), dot_label('a "b" \\N'))
    "join" "a \"b\" \\N"
    """
    return '"' + shown(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def xml_text(text: str) -> str:
    """Return the text, or raise FormatError if XML cannot represent it."""
    if bad := NOT_XML.search(text):
        raise FormatError(
            f"{quoted(text)} contains {bad[0]!r}, which XML cannot represent; rename it or export "
            "to json"
        )
    return text


def unique(pairs: Iterable[tuple[str | None, str | None]]) -> dict[str, str]:
    """Operator → device from pairs of a file; missing and repeated names raise FormatError."""
    assignment: dict[str, str] = {}
    for operator, device in pairs:
        if not operator or not device:
            partner = f"operator {quoted(operator)}" if operator else f"device {quoted(device)}"
            raise FormatError(f"{partner} has no partner; complete or remove it")
        if operator in assignment:
            raise FormatError(f"operator {quoted(operator)} appears twice; remove one of them")
        assignment[operator] = device
    if not assignment:
        raise FormatError("places no operator; name a file that streamplace export wrote")
    return assignment


def python_table(rows: Mapping[Any, Any]) -> str:
    """Format a dictionary as Python source, one entry per line.

    >>> print(python_table({"a": [1]}))
    {
        'a': [1],
    }
    """
    return "{\n" + "".join(f"    {key!r}: {value!r},\n" for key, value in rows.items()) + "}"


def python_docstring(text: str) -> str:
    """Text that is valid in a docstring in triple quotes."""
    return printable(text).replace("\\", "\\\\").replace('"', "'")
