"""Calls of the core that commands make, recorded; and the same calls with spoiled arguments."""

import types
from dataclasses import fields, is_dataclass

import numpy as np
from streamsim import _core
from streamsim.incremental import Incremental

from streamplace.learn.model_weights import _loaded
from streamplace.model.coarsening import Level

NEVER_CALLED = ("SOURCES", "CAPACITY_TICKS", "Incremental")
"""Names that are no functions, and a class whose subclass is used; see `moves`."""


CLASSES = {thing for thing in vars(_core).values() if isinstance(thing, type)}


class Recorded:
    """An object of the core whose methods are recorded."""

    def __init__(self, thing, calls):
        self._thing, self._calls = thing, calls

    def __getattr__(self, name):
        found = getattr(self._thing, name)
        kind = type(self._thing).__name__
        return recording(f"{kind}.{name}", found, self._calls) if callable(found) else found


def plain(value):
    """A value without what records."""
    if isinstance(value, Recorded):
        return value._thing
    if isinstance(getattr(value, "level", None), Level):  # features hold what the core reads
        vars(value.level)["compiled"] = plain(value.level.compiled)
    return type(value)(map(plain, value)) if type(value) in (list, tuple) else value


def recording(name, function, calls):
    """A function that notes its first calls."""

    def call(*arguments, **keywords):
        arguments = tuple(map(plain, arguments))
        if len(calls.setdefault(name, [])) < 5:
            calls[name].append((function, arguments, keywords))
        found = function(*arguments, **keywords)
        return Recorded(found, calls) if type(found) in CLASSES else found

    return call


def record(patch, run):
    """Calls of the core by name, while ``run`` is called: function, arguments and keywords."""
    calls = {}
    for name, thing in vars(_core).items():
        if name[0] != "_" and callable(thing) and name not in NEVER_CALLED:
            patch.setattr(_core, name, recording(name, thing, calls))
    _loaded.cache_clear()  # networks keep objects of the core
    run()
    _loaded.cache_clear()
    return calls


def moves(instance, placement):
    """Calls of a placement that follows moves."""
    state = Incremental(instance, placement)
    return {
        "Incremental": [(Incremental, (instance, placement), {})],
        "Incremental.move": [(state.move, (0, 0), {})],
        "Incremental.undo": [(state.undo, (), {})],
    }


def spoiled(value, rng):
    """Another value of the same argument, which mostly does not fit."""
    if isinstance(value, np.ndarray):
        return _spoiled_array(value, rng)
    names = getattr(value, "_fields", ()) or (
        [field.name for field in fields(value)] if is_dataclass(value) else ()
    )
    if names and rng.random() < 0.9:
        columns = {name: getattr(value, name) for name in names}
        for name in rng.choice(names, rng.integers(1, 3)).tolist():
            columns[name] = spoiled(columns[name], rng)
        return types.SimpleNamespace(**columns)
    others = (None, -1, 0, 10**6, 2**70, 1e300, float("nan"), "x", [], np.zeros(3), value)
    return others[rng.integers(len(others))]


def _spoiled_array(array, rng):
    array = array.copy()
    numbers = {"f": (np.nan, np.inf, -1.0, 1e308), "i": (-1, 10**6, 2**31 - 1, 0), "b": (True,)}
    kind = rng.integers(10)
    if kind < 3 and array.size and array.dtype.kind in numbers:
        choices = numbers[array.dtype.kind]
        array.flat[rng.integers(array.size)] = choices[rng.integers(len(choices))]
    elif kind == 3:
        array = array[: len(array) // 2]
    elif kind == 4:
        array = np.concatenate([array, array])
    elif kind == 5 and array.dtype.kind in numbers:
        array = array.astype((np.float32, np.int64, np.uint8, object)[rng.integers(4)])
    elif kind == 6:
        array = array[::-1]
    elif kind == 7:
        array = np.asfortranarray(array)
        array.flags.writeable = False
    elif kind == 8:
        array = array.reshape(-1) if array.ndim > 1 else array[None]
    else:
        array = array[:0]
    return array
