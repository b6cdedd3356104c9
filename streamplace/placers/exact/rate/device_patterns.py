"""Patterns of units on one device if the CPU is tight, by counts of each kind of unit.

If D equal devices must carry all work with loads below a cut, each must carry at least the work
that the others cannot. Few combinations of counts lie between these limits; the search keeps every
device within them.

Counts are packed into one word, a field per kind with a guard bit on top, so that comparing all
fields is one subtraction: (b | guards) - a keeps all guards if and only if a ≤ b in every field.
"""

from typing import NamedTuple

import numpy as np
from streamsim.jit import kernel

from streamplace.model.arrays import Floats, Longs
from streamplace.placers.exact.rate.hub_relaxation import Hub, advance, hubs_of
from streamplace.placers.exact.rate.units import Units

MARGIN = 1e-9
"""Margin of sums of work for rounding, as a share of the cut."""
MOST_BITS = 62
MOST_PATTERNS = 4_000
MOST_STEPS = 200_000


class Patterns(NamedTuple):
    """Combinations of units on a device (P), and the encoding of units in them."""

    word: Longs  # [P] counts of every kind
    work: Floats  # [P] their work
    single: Longs  # [U] one unit of the kind of u
    field: Longs  # [U] the field of that kind
    guards: int
    total: float  # work of all units


def no_patterns(units: Units) -> Patterns:
    """Return no patterns, for problems without tight equal devices."""
    nothing = np.zeros(0, np.int64)
    return Patterns(nothing, np.zeros(0), nothing, nothing, 0, 0.0)


def patterns_below(units: Units, cut: float) -> Patterns:
    """Patterns for equal devices with all loads below the cut, if they are few; else none."""
    hub = min(hubs_of(units), key=lambda hub: np.prod(hub.counts + 1.0), default=None)
    if hub is None or units.handles:
        return no_patterns(units)
    hub = _with_itself(hub)
    bits = [int(count).bit_length() + 1 for count in hub.counts]
    if sum(bits) > MOST_BITS:
        return no_patterns(units)
    shift = np.concatenate(([0], np.cumsum(bits)[:-1])).astype(np.int64)
    least = float(hub.work @ hub.counts) - (units.n_devices - 1) * cut - MARGIN * cut
    word, work = _enumerate(hub, shift, least, cut)
    if len(word) > MOST_PATTERNS:
        return no_patterns(units)
    kind = hub.kind
    return Patterns(
        word,
        work,
        np.left_shift(np.int64(1), shift[kind]),
        np.array([((1 << (b - 1)) - 1) << int(s) for b, s in zip(bits, shift, strict=True)])[kind],
        sum(1 << (int(s) + b - 1) for b, s in zip(bits, shift, strict=True)),
        float(hub.work @ hub.counts),
    )


def _with_itself(hub: Hub) -> Hub:
    """Add the hub itself as the last kind."""
    last = len(hub.counts)
    return hub._replace(
        kind=np.where(hub.kind < 0, last, hub.kind),
        counts=np.append(hub.counts, 1),
        work=np.append(hub.work, hub.own),
        sent=np.append(hub.sent, 0.0),
        taken=np.append(hub.taken, 0.0),
    )


@kernel
def _enumerate(hub: Hub, shift: Longs, least: float, cut: float) -> tuple[Longs, Floats]:
    """Words and work of all patterns from ``least`` to the cut, more than the limit if too many."""
    n = len(hub.counts)
    words = np.empty(MOST_PATTERNS + 1, np.int64)
    works = np.empty(MOST_PATTERNS + 1)
    now = np.zeros(n, np.int64)
    size, steps, more = 0, 0, True
    while more and size <= MOST_PATTERNS:
        steps += 1
        if steps > MOST_STEPS:
            return words, works
        word, work, sent, taken = np.int64(0), 0.0, 0.0, 0.0
        for k in range(n):
            word += now[k] << shift[k]
            work += now[k] * hub.work[k]
            sent += now[k] * hub.sent[k]
            taken += now[k] * hub.taken[k]
        linked = now[n - 1] == 1 or (sent <= cut and taken <= cut)
        if least <= work <= cut and linked:
            words[size], works[size] = word, work
            size += 1
        more = advance(now, hub.counts, work <= cut)
    return words[:size], works[:size]
