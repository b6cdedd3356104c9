"""Levels of sources: shares of their rates at which all sources of a placement run at once.

At the first level, the relative throughput, all sources have the same share. Some of them may be
*stuck* there, because no placement carries them further: the best device that an operator on their
way may use, or a core of it, is too slow. They are held at this share, the others rise together to
the next level, and so on.
"""

from typing import NamedTuple

import numpy as np
from streamsim import Instance, throughput_of
from streamsim.equation import pressures
from streamsim.loads import limits_subtasks
from streamsim.sources import constants_of, flow_at, leading_to, loads_of_parts

from streamplace.model.arrays import ROUNDING, Bools, Floats, Ints
from streamplace.model.memory import with_slack
from streamplace.model.problem import Problem


class SourceLevel(NamedTuple):
    """Sources that a placement carries at one share of their rates."""

    share: float
    sources: Ints  # operators
    stuck: Ints  # operators because of which no placement carries these sources further


def source_levels(problem: Problem, place: Ints) -> tuple[SourceLevel, ...]:
    """Return the levels of a placement, of rising shares.

    Only the sources of the last level may be free to rise in another placement.
    """
    instance = problem.instance
    sources = instance.sources
    held, share = np.zeros(len(sources)), throughput_of(instance, place)
    free, levels = np.ones(len(sources), np.bool_), list[SourceLevel]()
    while free.any():
        if levels:
            share = max(share, share_beside(instance, place, held, free))
        stuck = np.zeros(len(place), np.bool_)
        if share < 1 and len(sources) > 1:
            flows = flow_at(instance, free.astype(np.float64)), flow_at(instance, held)
            slowest = least_slowdowns(problem, *flows)
            limits = slowest >= (1 - ROUNDING) / share if share else np.isinf(slowest)
            stuck = limits[problem.unit] & (flows[0] > 0)
        ending = _held_with(instance, free, stuck) if stuck.any() else free
        levels.append(SourceLevel(share, sources[ending], np.flatnonzero(stuck).astype(np.int32)))
        held[ending], free = share, free & ~ending
    return tuple(levels)


def _held_with(instance: Instance, free: Bools, stuck: Bools) -> Bools:
    """Free sources that reach a stuck operator, or meet one of them in a join, [S]."""
    held, before = free & leading_to(instance, stuck), free & False
    while instance.joins.any() and (held != before).any():
        met = instance.joins & (flow_at(instance, held.astype(np.float64)) > 0)
        held, before = held | (free & leading_to(instance, met)), held
    return held


def share_beside(instance: Instance, place: Ints, held: Floats, free: Bools) -> float:
    """Largest share at which the free sources [S] run beside the others, held at shares [S]."""
    return 1 / max(1.0, float(slowdowns(instance, place, held, free).max()))


def slowdowns(instance: Instance, place: Ints, held: Floats, free: Bools) -> Floats:
    """Factor by which each resource of `loads_of_parts` slows down the free sources, [R]."""
    parts = np.stack((flow_at(instance, free.astype(np.float64)), flow_at(instance, held)))
    rising, used = loads_of_parts(instance, place, parts)
    fixed = used + constants_of(instance, place)
    slowdowns = np.where(rising > 0, pressures(rising, fixed), 0.0)
    return np.where((used > 0) & (fixed > 1 + ROUNDING), np.inf, slowdowns)


def least_slowdowns(problem: Problem, flow: Floats, held: Floats) -> Floats:
    """Factor by which each unit [U] slows down a flow if it has its best allowed device alone.

    The shares ``flow`` [N] of the full input of operators may slow down, ``held`` [N] may not.
    Infinite for a unit that no device carries; 0 for a unit without flow.
    """
    instance, unit, rules = problem.instance, problem.unit, problem.rules
    types = instance.device_type
    shape = int(unit.max()) + 1, len(types)
    load, used = np.zeros(shape), np.zeros(shape)
    np.add.at(load, unit, (instance.load * flow[:, None])[:, types])
    np.add.at(used, unit, (instance.load * held[:, None])[:, types])
    if len(instance.constant):
        np.add.at(used, unit, instance.constant[:, types])
    slowdown = pressures(load, used)
    if limits_subtasks(instance):
        fixed = instance.core_load * held[:, None]
        fixed = fixed + instance.core_constant if len(instance.constant) else fixed
        cores = pressures(instance.core_load * flow[:, None], fixed)
        np.maximum.at(slowdown, unit, cores[:, types])
    if rules is not None:
        slowdown[~rules.allowed] = np.inf
        if rules.memory is not None and rules.room is not None:
            slowdown[rules.memory[:, None] > with_slack(rules.room)] = np.inf
    least = slowdown.min(axis=1)
    least[np.bincount(unit, flow, shape[0]) <= 0] = 0.0
    return np.asarray(least, np.float64)
