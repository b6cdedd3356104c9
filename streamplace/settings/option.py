"""Fields of settings: options of a command, keys of settings files, or keywords of Python alone.

>>> from streamplace.settings.base import VerbSettings
>>> class Example(VerbSettings):
...     copies: int = option("-n, --copies N", "Number of copies.", default=1)
...     is_random: bool = file_key("", "Shuffle the copies.")
...     watcher: object = None  # a keyword of Python alone
>>> {name: option.words for name, option in Example.options().items()}
{'copies': ['-n', '--copies'], 'is_random': []}
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

WHAT, WHERE, HOW_LONG, OUTPUT = "What", "Where", "How long", "Output"
GROUPS = (WHAT, WHERE, HOW_LONG, OUTPUT)
"""Groups of options in the help, in their order."""
PLACEMENT = frozenset({"assignment", "error"})
EXPLANATION = frozenset({"verdict", "assumptions", "traceEvents"})
KEYS = PLACEMENT | {"operators", "graph", "devices", "links"}
"""Fields by which a JSON or TOML file of streamplace is recognised: it has one of them."""


@dataclass(frozen=True, slots=True)
class OptionField:
    """How users name a field, and what they write as its value."""

    words: list[str]  # of the option, the longest last; empty for a key of settings files alone
    value: str  # word for the value in the help, FILE for a path; empty for a flag
    is_repeatable: bool
    help: str
    group: str
    key: str  # in settings files, if it is not the name of the field
    choices: Callable[[], Iterable[str]] | None  # all values, which may have to be loaded
    is_needed: bool = False

    def key_of(self, field: str) -> str:
        """Key of a field in settings files."""
        return (self.key or field).replace("_", "-")


def argument(
    *, is_file: bool = True, is_repeatable: bool = False, is_needed: bool = True, word: str = ""
) -> Any:
    """Field that is an argument of the command; ``word`` stands for its name in the help."""
    from pydantic import Field

    extra: Any = {"argument": (is_file, is_repeatable, is_needed, word)}
    default = ... if is_needed else () if is_repeatable else None
    return Field(default=default, json_schema_extra=extra)


def output(
    help: str,
    *,
    suffixes: tuple[str, ...] = (),
    folder: bool | None = False,
    is_needed: bool = False,
    keys: frozenset[str] = KEYS,
) -> Any:
    """Field that is ``-o`` of the command; ``help`` describes the file or folder.

    ``folder`` is None if other fields decide between file and folder. The name of a file ends in
    one of the ``suffixes``. A JSON or TOML file is replaced only if it has one of the ``keys``.
    """
    from pydantic import Field

    facts = {"suffixes": suffixes, "folder": folder, "is_needed": is_needed, "keys": keys}
    extra: Any = {"output": {"help": help, **facts}}
    return Field(default=None, json_schema_extra=extra)


def option(
    usage: str,
    help: str,
    group: str = WHAT,
    *,
    default: Any = None,
    key: str = "",
    choices: Callable[[], Iterable[str]] | None = None,
    is_needed: bool = False,
) -> Any:
    """Field that is an option of the command, and a key of settings files.

    ``usage`` is its line in the help: its words, and a word for its value. Without this word, the
    option is a flag with default False; with "…" after it, it may be repeated, with default ().
    """
    from pydantic import Field  # the help of some commands does without it

    parts = usage.replace(",", " ").split()
    words = [part for part in parts if part.startswith("-")]
    value = "".join(parts[len(words) :])
    is_repeatable = value.endswith("…")
    if default is None:
        default = () if is_repeatable else None if value else False
    value = value.rstrip("…")
    field = OptionField(words, value, is_repeatable, help, group, key, choices, is_needed)
    extra: Any = {"option": field}
    return Field(default=... if is_needed else default, json_schema_extra=extra)


def names_in(table: str) -> Callable[[], Iterable[str]]:
    """Choices of an option: the names in a ``module:TABLE``, which the help loads."""
    return lambda: resolve_name(table)


def file_key(value: str, help: str, *, default: Any = None, key: str = "") -> Any:
    """Field that is only a key of settings files; ``key`` is its name there, if it differs."""
    return option(value, help, default=default, key=key)
