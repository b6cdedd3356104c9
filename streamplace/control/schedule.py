"""Schedules: the cheapest sequence of plans for a day that is known, and a bound of every other.

`cheapest_levels` is a dynamic program over slots and plans. `lower_bound` is one over segments of
slots in which a controller does not move; it knows no plans, only proven bounds of their cost, so
that it holds for every controller that decides between slots and carries what arrives.
"""

from collections.abc import Sequence

import numpy as np

from streamplace.control.day import HOUR, ControlDay
from streamplace.model.arrays import Floats, Ints
from streamplace.planning.deployment import ROUNDING

NEVER = np.inf


def cheapest_levels(day: ControlDay) -> Ints:
    """Plan of each slot [T] such that costs and moves together are least.

    A plan must carry every slot in which it runs; one to which the job has just moved must also
    work off what waited during the outage before the slot ends.
    """
    stay, come = _slot_costs(day)
    best = stay[0].copy()
    before = np.zeros((len(day.slots), len(day.plans)), np.int32)
    for slot in range(1, len(day.slots)):
        ways = best[:, None] + day.price
        ways += np.where(np.eye(len(best), dtype=bool), stay[slot], come[slot])
        before[slot] = ways.argmin(axis=0)
        best = ways[before[slot], np.arange(len(best))]
    levels = np.empty(len(day.slots), np.int32)
    levels[-1] = best.argmin()
    for slot in range(len(levels) - 1, 0, -1):
        levels[slot - 1] = before[slot, levels[slot]]
    return levels


def _slot_costs(day: ControlDay) -> tuple[Floats, Floats]:
    """[T, K] cost of each slot on each plan, if the job was there before and if it came there."""
    cost = np.broadcast_to(day.cost * day.hours, day.carried.shape)
    stay = np.where(day.carries, cost, NEVER)
    left = max(0.0, 1 - day.terms.outage / day.slots.seconds)
    rested = day.rated * left >= 1 - ROUNDING
    rested[:, -1] |= ~rested.any(axis=1)
    return stay, np.where(rested, cost, NEVER)


def lower_bound(day: ControlDay) -> float:
    """Cost below which no controller is that decides between slots and meets the lag objective.

    Within a segment without a decision a controller pays all the time at least for the dearest
    window of slots in it. Tuples of the last seconds of a window may wait for the next slot, as
    long as the lag allows; of a window with which a segment begins, those of the first seconds may
    be processed by the plan before, until the new machines are ready.
    """
    half, slots = day.terms.price / HOUR / 2, len(day.slots)
    until = np.full(slots + 1, NEVER)
    until[0] = 0.0
    dearest = np.zeros(slots)  # of the segments that begin with each slot and end with the present
    for end in range(1, slots + 1):
        first = [end - length for length in day.windows]
        _raise_to(dearest, day.least[end - 1], day.least_moved[end - 1], first)
        lengths = np.arange(end, 0, -1)
        ends = (np.arange(end) > 0).astype(np.float64) + (end < slots)
        until[end] = (until[:end] + dearest[:end] * (day.hours * lengths + half * ends)).min()
    return float(until[-1])


def _raise_to(dearest: Floats, least: Floats, moved: Floats, first: Sequence[int]) -> None:
    """Set the value of every segment to the largest bound of the windows that lie in it."""
    most, before = 0.0, len(dearest)
    for inside, begins, start in zip(least.tolist(), moved.tolist(), first, strict=True):
        if start < 0:
            break
        np.maximum(dearest[start + 1 : before], most, out=dearest[start + 1 : before])
        own = max(most, begins if start else inside)
        dearest[start] = max(dearest[start], own)
        most, before = max(most, inside), start
    np.maximum(dearest[:before], most, out=dearest[:before])
