"""Memory constraint: packs units into devices and repairs placements that overflow.

Packing is hard in general, so the search for a first placement stops after `STEPS` steps.
"""

import numpy as np
from streamsim import _core

from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.devices import SLACK
from streamplace.model.graph import StreamGraph
from streamplace.model.keep_apart import rival_columns
from streamplace.model.message_text import listed
from streamplace.model.units import format_bytes

STEPS = 2_000_000


def memory_in_use(place: Ints, memory: Floats, n_devices: int) -> Floats:
    """Memory in use on every device [B, D], for placements of the units [B, U].

    >>> memory_in_use(np.array([[0, 1, 0]]), np.array([1.0, 2.0, 4.0]), 2).tolist()
    [[5.0, 2.0]]
    """
    batch = len(place)
    cells = place + np.arange(batch)[:, None] * n_devices
    in_use: Floats = np.bincount(cells.ravel(), np.tile(memory, batch), batch * n_devices).astype(
        np.float64
    )
    return in_use.reshape(batch, n_devices)


def with_slack(capacity: Floats) -> Floats:
    """Capacity of every device with its tolerance for rounding."""
    return capacity * (1 + SLACK)


def packed(allowed: Bools, pairs: Ints, memory: Floats, capacity: Floats) -> Ints | None:
    """Pack units into devices and keep pairs apart; None if that is impossible.

    If the search stops without an answer, some units are at -1.

    Depth-first search: units with the fewest devices come first, larger ones in a tie, and each
    goes to the device that it fits most tightly.
    """
    choices = (allowed & (memory[:, None] <= with_slack(capacity))).sum(axis=1)
    order = np.lexsort((-memory, choices)) if len(pairs) else np.lexsort((choices, -memory))
    alike = bool(allowed.all()) and not len(pairs)
    rivals = rival_columns(pairs, len(allowed))
    return _core.pack_units(allowed, *rivals, memory, capacity, order, alike, STEPS)


def made_room(
    place: Ints, allowed: Bools, pairs: Ints, memory: Floats, capacity: Floats
) -> Ints | None:
    """Move units away from devices that overflow; None if one fits nowhere.

    The largest units choose first and stay if they fit, so a placement that fits is unchanged.
    """
    moved = _largest_first(place, allowed, pairs, memory, capacity)
    return None if (moved < 0).any() else moved


def _largest_first(
    place: Ints, allowed: Bools, pairs: Ints, memory: Floats, capacity: Floats
) -> Ints:
    """Devices of units, placed from the largest to the smallest; -1 for units that fit nowhere."""
    order, rivals = np.argsort(-memory, kind="stable"), rival_columns(pairs, len(allowed))
    return _core.make_room(place.astype(np.int32), allowed, *rivals, memory, capacity, order)


def too_large(
    graph: StreamGraph, unit: Ints, allowed: Bools, memory: Floats, capacity: Floats
) -> str:
    """Message that names a unit for which no device has enough memory."""
    u = int(np.argmax(~(allowed & (memory[:, None] <= with_slack(capacity))).any(axis=1)))
    names = [graph.operators.name[v] for v in np.flatnonzero(unit == u)]
    largest = float(capacity[allowed[u]].max())
    return (
        f"{listed(names)} cannot fit anywhere: {format_bytes(memory[u])} of memory needed, "
        f"and the largest device allowed has {format_bytes(largest)}, "
        f"{format_bytes(memory[u] - largest)} too little"
    )


def short_memory(
    graph: StreamGraph, unit: Ints, allowed: Bools, memory: Floats, capacity: Floats
) -> str:
    """Message that names operators that are confined to one device and too large for it together.

    If there are none, it names operators that fit nowhere after the larger ones.
    """
    only = np.flatnonzero(allowed.sum(axis=1) == 1)
    device = np.argmax(allowed[only], axis=1)
    needed = np.bincount(device, memory[only], len(capacity))
    over = np.flatnonzero(needed > with_slack(capacity))
    if len(over):
        confined = np.isin(unit, only[device == over[0]])
        names = [graph.operators.name[v] for v in np.flatnonzero(confined)]
        return (
            f"the rules put {listed(names)} on one device, which has "
            f"{format_bytes(float(capacity[over[0]]))} of memory, and they need "
            f"{format_bytes(float(needed[over[0]]))}; give it more memory or loosen a rule"
        )
    first_choice, no_pairs = np.argmax(allowed, axis=1), np.empty((0, 2), np.int32)
    place = _largest_first(first_choice, allowed, no_pairs, memory, capacity)
    settled = place >= 0
    units = np.flatnonzero(~settled)
    free = float((capacity - np.bincount(place[settled], memory[settled], len(capacity))).max())
    first = np.unique(unit, return_index=True)[1]
    names = [graph.operators.name[first[u]] for u in units]
    reason = (
        f"{listed(names)} need {format_bytes(float(memory[units].sum()))}, where no "
        f"device has more than {format_bytes(free)} left"
        if names
        else "operators that must be kept apart leave too little room"
    )
    return (
        f"found no way to fit all operators into the devices' memory: {reason}; give devices "
        "more memory or loosen a rule"
    )
