"""The walk through placements: look at the present one, move one task, and again.

An action is a node (v, d) of the gpNet: task v goes to device d, and with it what must share its
device. In the first N + 1 steps a walk may neither choose what is the case already nor move again
what it moved last, so that it goes through the tasks; after that it may do both. Only legal
actions are open. Where tasks alone are chosen, the device is that on which the task is done first.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from streamsim.jit import borrowing_kernel, kernel
from streamsim.passes import GIPH
from streamsim.passes.makespans import new_buffers
from streamsim.passes.run import run
from streamsim.passes.state import State

from streamplace.learn.models.giph.measures import (
    Sight,
    Singles,
    earliest,
    first_criticality,
    heed,
    look,
    new_sight,
)
from streamplace.learn.models.giph.network import Network, scores
from streamplace.learn.models.giph.view import View
from streamplace.model.arrays import Bools, Floats, Ints

Longs = NDArray[np.int64]

NOTHING = -1
STEP, LAST = range(2)
"""Counters of a walk: steps so far, and the unit that was moved last."""


class Walk(NamedTuple):
    """Where a walk is."""

    place: Ints  # [N]
    device: Ints  # [H] of every node
    criticality: Floats  # [E]
    counters: Longs  # [2] by the names above
    ones: Floats  # [N] priorities and noise, of which there is none
    state: State
    sight: Sight


class Trail(NamedTuple):
    """What was seen on T steps, and chosen; of length 0 where nobody wants to know."""

    nodes: Singles  # [T, H, F]
    edges: Singles  # [T, M, 5]
    source: Ints  # [T, M]
    target: Ints  # [T, M]
    open: Bools  # [T, H]
    chosen: Ints  # [T]


def begin(view: View, place: Ints, features: int) -> Walk:
    """Stand at a placement."""
    return Walk(
        np.array(place, np.int32),
        view.device.copy(),
        first_criticality(view),
        np.array([0, NOTHING], np.int64),
        np.ones(view.n_tasks),
        new_buffers(view.one, GIPH)[0],
        new_sight(view, features),
    )


def new_trail(view: View, steps: int, features: int) -> Trail:
    """Room for what so many steps see."""
    h, m = view.n_nodes, view.n_edges
    return Trail(
        np.zeros((steps, h, features), np.float32),
        np.zeros((steps, m, new_sight(view, features).edges.shape[1]), np.float32),
        np.zeros((steps, m), np.int32),
        np.zeros((steps, m), np.int32),
        np.zeros((steps, h), np.bool_),
        np.zeros(steps, np.int32),
    )


@kernel
def go(
    view: View, network: Network, with_potential: bool, walk: Walk, uniform: Floats, trail: Trail
) -> Ints:
    """Take T steps and return the placements [T, N] after each.

    Parameters
    ----------
    uniform
        [T] numbers in [0, 1) that choices are drawn with; below 0, the likeliest is taken.
    trail
        Where what was seen is kept, if it has room.
    """
    places = np.empty((len(uniform), len(walk.place)), np.int32)
    for t in range(len(uniform)):
        _simulate(view, walk)
        heed(view, walk.state, walk.criticality)
        _stand(view, walk)
        look(
            view,
            walk.place,
            walk.device,
            walk.state,
            walk.criticality,
            with_potential,
            walk.sight,
        )
        _unlock(view, walk)
        chosen = drawn(scores(network, view, walk.sight), walk.sight.open, uniform[t])
        if t < len(trail.chosen):
            _keep(walk.sight, chosen, trail, t)
        _move(view, walk, chosen)
        places[t] = walk.place
    return places


@borrowing_kernel
def _simulate(view: View, walk: Walk) -> None:
    run(view.one, view.case, walk.place, walk.ones, walk.ones, walk.state, None)


@borrowing_kernel
def _stand(view: View, walk: Walk) -> None:
    """Put nodes that stand for a task alone onto its device."""
    if not view.pairs:
        for v in range(len(walk.place)):
            walk.device[v] = walk.place[v]


@kernel
def _unlock(view: View, walk: Walk) -> None:
    """Open what a walk may choose; where that is nothing, whatever is legal."""
    used = memory_used(view, walk.place)
    early = walk.counters[STEP] <= len(walk.place)
    found = False
    for i in range(len(view.task)):
        v, d = view.task[i], walk.device[i]
        legal = may(view, walk.place, used, view.unit[v], d)
        masked = early and (
            view.unit[v] == walk.counters[LAST] or (view.pairs and walk.place[v] == d)
        )
        walk.sight.open[i] = legal and not masked
        found |= walk.sight.open[i]
    for i in range(0 if found else len(view.task)):
        unit = view.unit[view.task[i]]
        walk.sight.open[i] = may(view, walk.place, used, unit, walk.device[i])


@kernel
def memory_used(view: View, place: Ints) -> Floats:
    """Bytes in use on every device, [0] where memory does not limit."""
    used = np.zeros(len(view.room))
    for u in range(len(view.memory)):
        used[place[view.members[view.member_start[u]]]] += view.memory[u]
    return used


@borrowing_kernel
def may(view: View, place: Ints, used: Floats, u: int, d: int) -> bool:
    """Whether unit u may go to device d, the others being where they are."""
    if not view.allowed[u, d]:
        return False
    if place[view.members[view.member_start[u]]] == d:
        return True
    for i in range(view.rival_start[u], view.rival_start[u + 1]):
        if place[view.members[view.member_start[view.rivals[i]]]] == d:
            return False
    return len(view.memory) == 0 or used[d] + view.memory[u] <= view.room[d]


@kernel
def drawn(score: Singles, is_open: Bools, uniform: float) -> int:
    """Node drawn by the softmax of the scores of what is open, or the likeliest."""
    top, best = -np.inf, 0
    for i in range(len(score)):
        if is_open[i] and score[i] > top:
            top, best = float(score[i]), i
    if uniform < 0:
        return best
    total = 0.0
    for i in range(len(score)):
        if is_open[i]:
            total += np.exp(score[i] - top)
    left, last = uniform * total, best
    for i in range(len(score)):
        if is_open[i]:
            left -= np.exp(score[i] - top)
            last = i
            if left < 0:
                break
    return last


@borrowing_kernel
def _keep(sight: Sight, chosen: int, trail: Trail, t: int) -> None:
    for i in range(len(sight.nodes)):
        trail.open[t, i] = sight.open[i]
        for f in range(sight.nodes.shape[1]):
            trail.nodes[t, i, f] = sight.nodes[i, f]
    for k in range(len(sight.edges)):
        trail.source[t, k], trail.target[t, k] = sight.source[k], sight.target[k]
        for f in range(sight.edges.shape[1]):
            trail.edges[t, k, f] = sight.edges[k, f]
    trail.chosen[t] = chosen


@kernel
def _move(view: View, walk: Walk, chosen: int) -> None:
    """Move the task of a node, and with it its unit."""
    v = view.task[chosen]
    unit, d = view.unit[v], walk.device[chosen]
    if not view.pairs:
        d = _soonest(view, walk, v)
    put(view, walk.place, v, d)
    walk.counters[STEP] += 1
    walk.counters[LAST] = unit


@borrowing_kernel
def put(view: View, place: Ints, v: int, d: int) -> None:
    """Move task v to device d, and with it what must share its device."""
    unit = view.unit[v]
    for i in range(view.member_start[unit], view.member_start[unit + 1]):
        place[view.members[i]] = d


@kernel
def _soonest(view: View, walk: Walk, v: int) -> int:
    """Device on which task v would be done first, whatever else runs there."""
    used = memory_used(view, walk.place)
    best, soonest = walk.place[v], np.inf
    for d in range(view.work.shape[1]):
        if may(view, walk.place, used, view.unit[v], d):
            finish = earliest(view, walk.place, walk.state, v, d) + view.work[v, d]
            if finish < soonest:
                best, soonest = d, finish
    return best
