"""Merge patches of documents (RFC 7386): their effect, their inverse, and changed fields."""

from collections.abc import Iterator, Mapping
from typing import Any


def merged(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Document after a merge patch.

    >>> merged({"a": 1, "b": {"c": 2}}, {"b": {"c": None, "d": 3}})
    {'a': 1, 'b': {'d': 3}}
    """
    result = dict(document)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            inner = result.get(key)
            result[key] = merged(inner if isinstance(inner, Mapping) else {}, value)
        else:
            result[key] = value
    return result


def inverse(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Merge patch that takes a patch of a document back.

    >>> inverse({"a": 1, "b": {"c": 2}}, {"b": {"c": None, "d": 3}})
    {'b': {'c': 2, 'd': None}}
    """
    result: dict[str, Any] = {}
    for key, value in patch.items():
        before = document.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            result[key] = inverse(before, value)
        else:
            result[key] = before
    return result


def changes(
    old: Mapping[str, Any], new: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Fields that differ between two documents, with both values; None for a missing field.

    >>> [*changes({"a": 1, "b": {"c": 2}}, {"b": {"c": 3}})]
    [(('a',), 1, None), (('b', 'c'), 2, 3)]
    """
    for key in dict.fromkeys([*old, *new]):
        one, other = old.get(key), new.get(key)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from changes(one, other, (*above, key))
        elif one != other:
            yield (*above, key), one, other
