"""Fields of a document: replaced, changed a little, dropped, duplicated, nested and swapped.

One field is chosen evenly among the names of the schema, not among the values: a list of a thousand
numbers counts as one field. So the rest of the document stays valid, and a reader that checks a
field too late is seen.
"""

import copy
import json
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from fuzz.documents import TWICE

DEPTHS = (1, 2, 20, 150)
"""How deep a value is nested; deeper ones are refused by Python's own writer of JSON."""
FACTORS = (-1, 0, 0.5, 2, 10, 1000, 10**9)
NUMBERS = (
    *(0, -1, 3, 64, 4096, 1.5, -0.0, 1e308, 5e-324),
    *(2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**18),
    *(10**400, float("nan"), float("inf"), -float("inf")),
)
TEXTS = ("", " ", "src", "d0", "nobody", "from", "a\nb", "\0", "\ud800", "\ufeff", "\x1b[2J", "x:y")
LONG = ("x" * 300, "a." * 40, "../" * 30 + "etc/passwd", "é" * 5000, "%00%ff%C3")
QUANTITIES = ("1000 Mbpz", "-1 kB", "1e999 B", "inf", "nan", "١ kB", "1 kB", "2 GB", "1 ms")
SHAPES = (None, True, False, [], {}, [[[]]], ["src", "src"], ["src", 1], [None] * 3)
TABLES = ({"a": {"b": {}}}, {"size": 0, "advance": 0}, {"names": ["a"], "mean": [0.0]})
VALUES: tuple[Any, ...] = (*NUMBERS, *TEXTS, *LONG, *QUANTITIES, *SHAPES, *TABLES)

Slot = tuple[Any, Any]
"""A table or list, and the name or number of a field in it."""


def changed_field(document, rng):
    """Return a document of which one field, or all fields of one name, are not as they were."""
    document = copy.deepcopy(document)
    fields = fields_of(document)
    if not fields:
        return retyped(document, rng)
    slots = fields[rng.choice(sorted(fields))]
    change = rng.choice(CHANGES)
    if change is _embed or rng.random() < 0.8:  # a copy in every item would double it as often
        slots = [rng.choice(slots)]
    for holder, key in slots:
        with suppress(KeyError, IndexError):  # an earlier change removed or moved it
            change(holder, key, rng)
    return document


def fields_of(document):
    """Every place that holds a value, by its path; the items of a list share one."""
    fields: dict[str, list[Slot]] = {}
    for path, holder, key in _walk(document, ""):
        fields.setdefault(path, []).append((holder, key))
    return fields


def _walk(node, path):
    if isinstance(node, dict | list):
        for key, child in list(node.items() if isinstance(node, dict) else enumerate(node)):
            here = f"{path}.{key}" if isinstance(node, dict) else f"{path}[]"
            yield here, node, key
            yield from _walk(child, here)


def retyped(value, rng):
    """Return a value of another type that looks like the same."""
    forms: list[Any] = [
        None,
        [value],
        str(value),
        json.dumps(value, default=str),
        bool(value),
        {"value": value},
    ]
    if isinstance(value, int | float):
        with suppress(OverflowError, ValueError):  # infinite, or not a number
            forms += [float(value), int(value), f"{value} MB", hex(int(value))]
    elif isinstance(value, str):
        forms += [list(value), value.encode().hex(), len(value), {value: value}, value.upper()]
    elif isinstance(value, list):
        forms += [dict(enumerate(map(str, value))), next(iter(value), None), [[v] for v in value]]
    elif isinstance(value, dict):
        forms += [list(value), list(value.values()), [[k, v] for k, v in value.items()]]
    return rng.choice(forms)


def nearby(value, rng):
    """Return a value of the same type: a little or much more, less, longer or shorter."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1, *(int(value * f) for f in FACTORS)))
    if isinstance(value, float):
        return rng.choice((value + 1, value - 1, *(value * f for f in FACTORS)))
    if isinstance(value, str):
        return rng.choice((value + value, value[:-1], value[1:], value + " ", value[::-1]))
    if isinstance(value, list):
        return rng.choice((value + value, value[:-1], value[1:], value[::-1], value * 40))
    return {} if value else {"a": 1}


def _replace(holder, key, rng):
    holder[key] = copy.deepcopy(rng.choice(VALUES))


def _retype(holder, key, rng):
    holder[key] = retyped(holder[key], rng)


def _alter(holder, key, rng):
    holder[key] = nearby(holder[key], rng)


def _drop(holder, key, rng):
    del holder[key]


def _duplicate(holder, key, rng):
    """A second time, alike or not: a name twice in a table, an item twice in a list."""
    value = copy.deepcopy(holder[key])
    again = rng.choice((value, retyped(value, rng), nearby(value, rng)))
    if isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1), again)
    else:
        holder[f"{key}{TWICE}"] = again


def _nest(holder, key, rng):
    value, as_list = holder[key], rng.random() < 0.5
    for _ in range(rng.choice(DEPTHS)):
        value = [value] if as_list else {str(key): value}
    holder[key] = value


def _embed(holder, key, rng):
    """Put a copy of the whole table into one of its fields."""
    holder[key] = copy.deepcopy(holder)


def _lift(holder, key, rng):
    """Replace a table by its fields, or a list by its items."""
    inner = holder[key]
    if isinstance(inner, dict) and isinstance(holder, dict):
        del holder[key]
        holder.update(inner)
    elif isinstance(inner, list) and isinstance(holder, list):
        holder[key : key + 1] = inner
    elif isinstance(inner, dict | list) and inner:
        holder[key] = next(iter(inner.values() if isinstance(inner, dict) else inner))


def _swap(holder, key, rng):
    other = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    holder[key], holder[other] = holder[other], holder[key]


def _rename(holder, key, rng):
    if isinstance(holder, dict):
        name = str(key)
        likely = (name.upper(), f"{name}s", name[:-1], f" {name}", name.replace("_", "-"))
        new = rng.choice(likely if rng.random() < 0.7 else TEXTS + LONG)
        holder[new] = holder.pop(key)


CHANGES: tuple[Callable[[Any, Any, Random], None], ...] = (
    *(_replace, _replace, _replace, _retype, _retype, _alter, _alter, _drop, _duplicate),
    *(_nest, _embed, _lift, _swap, _rename),
)
