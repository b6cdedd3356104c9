"""Visits: every operator once, in an order, each to a device that the policy chooses.

At each visit the policy looks at the whole placement, as it is by then. Only legal devices are
open: the operator may run there, with what must share its device, and nothing is there that it must
not meet. After the last visit the first operator comes again, and all count as not yet visited.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from streamsim.jit import kernel
from streamsim.passes import GIPH
from streamsim.passes.makespans import new_buffers
from streamsim.passes.run import run
from streamsim.passes.state import State

from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.models.giph.measures import Sight, Singles, new_sight, scale
from streamplace.learn.models.giph.view import View, view_of
from streamplace.learn.models.giph.walk import drawn, may, memory_used, put
from streamplace.learn.models.placeto.network import Network, scores
from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.problem import Problem

OPERATOR_FEATURES = ("seconds", "bytes out", "visited", "current", "start")
"""What is seen of an operator, besides one place for each device that the model knows."""
N_OPERATOR = len(OPERATOR_FEATURES)


class Tour(NamedTuple):
    """A problem and the order of the visits (N operators)."""

    tasks: View  # of the operators alone, without pairs
    order: Ints  # [N]
    upstream: Bools  # [N, N] whether the column's operator is upstream of the row's
    bytes_out: Floats  # [N] mean bytes of the streams out of an operator


class Visit(NamedTuple):
    """Where a tour is."""

    place: Ints  # [N]
    counters: NDArray[np.int64]  # [1] visits so far
    ones: Floats  # [N] priorities and noise, of which there is none
    state: State
    sight: Sight


class Trail(NamedTuple):
    """What was seen on T visits, and chosen; of length 0 where nobody wants to know."""

    nodes: Singles  # [T, N, F]
    current: Ints  # [T] operators
    open: Bools  # [T, D] devices that the model knows
    chosen: Ints  # [T] devices


def tour_of(problem: Problem, order: str) -> Tour:
    """See a problem, in an order."""
    view = view_of(problem, pairs=False)
    count = np.bincount(view.source, minlength=view.n_tasks)
    total = np.bincount(view.source, view.size, view.n_tasks)
    sequence = decision_order(problem, order).astype(np.int32)
    return Tour(view, sequence, _upstream(view), total / np.maximum(count, 1))


def begin(tour: Tour, place: Ints, devices: int) -> Visit:
    """Stand at a placement, before the first visit."""
    sight = new_sight(tour.tasks, N_OPERATOR + devices)
    sight.source[:], sight.target[:] = tour.tasks.source, tour.tasks.target
    return Visit(
        np.array(place, np.int32),
        np.zeros(1, np.int64),
        np.ones(tour.tasks.n_tasks),
        new_buffers(tour.tasks.one, GIPH)[0],
        sight,
    )


def new_trail(tour: Tour, visits: int, devices: int) -> Trail:
    """Room for what so many visits see."""
    return Trail(
        np.zeros((visits, tour.tasks.n_tasks, N_OPERATOR + devices), np.float32),
        np.zeros(visits, np.int32),
        np.zeros((visits, devices), np.bool_),
        np.zeros(visits, np.int32),
    )


@kernel
def _upstream(view: View) -> Bools:
    n = len(view.order)
    upstream = np.zeros((n, n), np.bool_)
    for v in view.order:
        for i in range(view.in_start[v], view.in_start[v + 1]):
            u = view.source[view.in_stream[i]]
            upstream[v, u] = True
            for w in range(n):
                upstream[v, w] |= upstream[u, w]
    return upstream


@kernel
def go(tour: Tour, network: Network, visit: Visit, uniform: Floats, trail: Trail) -> Ints:
    """Make T visits and return the placements [T, N] after each; as GiPH's walk."""
    view, place, sight = tour.tasks, visit.place, visit.sight
    n, known = len(place), len(network.out_bias)
    places = np.empty((len(uniform), n), np.int32)
    is_open = np.zeros(known, np.bool_)
    for t in range(len(uniform)):
        done = visit.counters[0] % n
        v = tour.order[done]
        run(view.one, view.case, place, visit.ones, visit.ones, visit.state, None)
        _look(tour, visit, done)
        used = memory_used(view, place)
        for d in range(view.work.shape[1]):
            is_open[d] = may(view, place, used, view.unit[v], d)
        d = drawn(scores(network, view, sight, tour.upstream, v), is_open, uniform[t])
        if t < len(trail.chosen):
            trail.nodes[t, :, :] = sight.nodes
            trail.current[t], trail.chosen[t] = v, d
            trail.open[t, :] = is_open
        put(view, place, v, d)
        visit.counters[0] += 1
        places[t] = place
    return places


@kernel
def _look(tour: Tour, visit: Visit, done: int) -> None:
    """Measure all operators when so many of them were visited; the next one is the current."""
    nodes, n = visit.sight.nodes, len(visit.place)
    nodes[:] = 0.0
    for v in range(n):
        nodes[v, 0] = tour.tasks.compute[v]
        nodes[v, 1] = tour.bytes_out[v]
        nodes[v, 4] = visit.state.operators[v].start
        nodes[v, N_OPERATOR + visit.place[v]] = 1.0
    for i in range(done):
        nodes[tour.order[i], 2] = 1.0
    nodes[tour.order[done], 3] = 1.0
    scale(nodes[:, 0:2])
    scale(nodes[:, 4:5])
