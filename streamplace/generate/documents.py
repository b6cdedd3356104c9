"""Small documents (manifests, recipes): flat tables whose keys and types are checked."""

from collections.abc import Mapping
from typing import Any

from streamplace.errors import FormatError
from streamplace.model.messages import quoted

_MEANING = {str: "a text", int: "a whole number, 0 or more", dict: "a table"}


def checked(document: object, keys: Mapping[str, type], where: str) -> dict[str, Any]:
    """Return the document if it has exactly these keys, each of its type; ``where`` for errors.

    >>> checked({"seed": 0}, {"seed": int}, "here")
    {'seed': 0}
    """
    if not isinstance(document, dict):
        raise FormatError(f"{where}: is not a table of {', '.join(keys)}")
    for key in document:
        if key not in keys:
            raise FormatError(f"{where}: {quoted(key)} is not a known field; correct or remove it")
    for key, kind in keys.items():
        if key not in document:
            raise FormatError(f"{where}: {key} is missing; add it")
        value = document[key]
        if type(value) is not kind or (isinstance(value, int) and value < 0):
            raise FormatError(f"{where}: {key} is {quoted(value)}; it must be {_MEANING[kind]}")
    return document
