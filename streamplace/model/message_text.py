"""Names and values in messages: printable, short, on one line."""

import reprlib
from collections.abc import Iterable, Iterator

MAX_LENGTH = 80
MAX_NAMES = 3
"""Most names that a note lists."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60
_SHORT.maxlevel = 3


def quoted(value: object) -> str:
    r"""Value as Python writes it, shortened if it is long.

    >>> quoted("two\nlines"), quoted(-0.5)
    ("'two\\nlines'", '-0.5')
    """
    try:
        text = _SHORT.repr(value)
    except ValueError:  # Python refuses to write out integers of thousands of digits
        text = "a number of thousands of digits"
    return shown(text, 2 * MAX_LENGTH)


def shown(text: str, longest: int = MAX_LENGTH) -> str:
    r"""Text without quotes, shortened if it is long, with unprintable characters escaped.

    >>> shown("join"), shown("two\nlines")
    ('join', 'two\\nlines')
    """
    return printable(text if len(text) <= longest else text[: longest - 1] + "…")


def printable(text: str) -> str:
    r"""Text on one line, with characters that cannot be printed or steer a terminal escaped.

    >>> printable("two\nlines"), printable("\x1b[2J")
    ('two\\nlines', '\\x1b[2J')
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def listed(names: list[str] | tuple[str, ...], limit: int = 8) -> str:
    """First few names, quoted and separated by commas.

    >>> listed(["a", "b", "c"], limit=2)
    "'a', 'b', …"
    """
    return ", ".join(map(quoted, names[:limit])) + (", …" if len(names) > limit else "")


def suggestion(name: str, names: Iterable[str]) -> str:
    """Question whether a similar name was meant, to end a message; empty if there is none.

    Case is ignored.

    >>> suggestion("tset", ["train", "test"]), suggestion("mine", ["train", "test"])
    ("; did you mean 'test'?", '')
    >>> suggestion("METIS", ["metis"])
    "; did you mean 'metis'?"
    """
    from difflib import get_close_matches

    names_by_lower = {other.lower(): other for other in names}
    near = get_close_matches(name.lower(), names_by_lower, n=1)
    return f"; did you mean {quoted(names_by_lower[near[0]])}?" if near else ""


def counted(number: int, noun: str) -> str:
    """Number of things in words.

    >>> counted(1, "graph"), counted(2, "graph")
    ('1 graph', '2 graphs')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def grouped_notes(notes: Iterable[str]) -> Iterator[str]:
    """Yield each note once; notes that differ in their name only share a line.

    >>> list(grouped_notes(["a: is full", "b: is full", "cold"]))
    ['note: a, b: is full', 'note: cold']
    """
    names: dict[str, list[str]] = {}
    for note in dict.fromkeys(notes):
        name, colon, words = note.partition(": ")
        names.setdefault(f"{colon}{words}" if colon else note, []).append(name if colon else "")
    for words, subjects in names.items():
        more = f" and {len(subjects) - MAX_NAMES} more" if len(subjects) > MAX_NAMES else ""
        yield f"note: {', '.join(subjects[:MAX_NAMES])}{more}{words}"
