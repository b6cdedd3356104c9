"""Checks of rows: the arguments of an operator, a stream or a device when it is made."""

from collections.abc import Callable, Iterable
from numbers import Real

from streamplace.errors import StreamplaceError
from streamplace.model.columns import is_text
from streamplace.model.messages import quoted

Refused = Callable[[str, str], StreamplaceError]
"""Builds the error for a value and the rule that it breaks."""


def check_name(name: object, what: str, error: type[StreamplaceError]) -> None:
    """Raise an error unless a name is a text that is not empty."""
    if not isinstance(name, str):
        raise error(f"{what} is called {quoted(name)}; a name must be a text")
    if not name:
        raise error(f"{what} has an empty name; give it a name")
    if not is_text(name):
        raise error(f"the name of {what} is not valid Unicode; correct the name")


def check_text(text: object, refused: Refused) -> None:
    """Raise an error unless a value is a text."""
    if not is_text(text):
        raise refused(quoted(text), "it must be a text")


def check_tags(tags: object, refused: Refused) -> None:
    """Raise an error unless a value is a set of texts."""
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise refused(quoted(tags), "it must be a set of texts")
    for tag in tags:
        check_text(tag, refused)


def check_whole(number: object, least: int, most: int, refused: Refused) -> None:
    """Raise an error unless a value is a whole number in [least, most]."""
    if type(number) is int and least <= number <= most:
        return
    rule = f"it must be a whole number from {least} to {most}"
    if not isinstance(number, Real) or isinstance(number, bool):
        raise refused(quoted(number), rule)
    try:
        value = float(number)
    except OverflowError:
        raise refused(quoted(number), rule) from None
    if not least <= value <= most or not value.is_integer():
        raise refused(f"{value:g}", rule)
