"""Enumerative: assigns the shards of each meta-operation to devices at least transfer cost."""

from collections.abc import Iterator

import numpy as np
from streamsim.passes.sending import sending_times

from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Budget, Found, placer
from streamplace.scheduling.tasks import Tasks, tasks_of

WHOLE = 1e9
"""Largest cost after scaling to the integers that the assignment solver requires."""


@placer("enumerative", objectives=("makespan",))
def enumerative(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Found:
    """Doppler's EnumerativeOptimizer: place each meta-operation so that the least is sent.

    Yao et al. (2025), Algorithm 4. The part of an operator's name before the last slash names its
    meta-operation; an operator without a slash is one of its own. In topological order, first the
    shards of a meta-operation and then its reductions (operators that its other operators feed) are
    assigned to the devices, no device having two while another has none, such that the sum of the
    times to fetch their inputs is least. The paper tries all permutations; an
    assignment algorithm finds the same least cost.
    """
    tasks = tasks_of(problem)
    place = np.zeros(problem.n_operators, np.int32)
    for group in _groups(problem):
        for first in range(0, len(group), problem.n_devices):
            rows = group[first : first + problem.n_devices]
            place[rows] = _assigned(_fetching(tasks, place, rows))
    return Found(problem.placement(problem.repaired(place)))


def _groups(problem: Problem) -> Iterator[Ints]:
    """Yield the shards, then the reductions, of each meta-operation in topological order."""
    names = problem.graph.operators.name
    kinds = np.array([name.rpartition("/")[0] or name for name in names])
    source, target = problem.graph.streams.source, problem.graph.streams.target
    within = kinds[source] == kinds[target]
    reduces = np.zeros(len(kinds), np.bool_)
    reduces[target[within]] = True
    order = problem.graph.order
    for kind in dict.fromkeys(kinds[order].tolist()):
        members = order[kinds[order] == kind]
        for group in (members[~reduces[members]], members[reduces[members]]):
            if len(group):
                yield group


def _fetching(tasks: Tasks, place: Ints, rows: Ints) -> Floats:
    """Seconds to fetch the inputs of each row on every device [rows, D]."""
    cost = np.where(np.isinf(tasks.work[rows]), np.inf, 0.0)
    for i, v in enumerate(rows.tolist()):
        for e in tasks.in_streams[tasks.in_start[v] : tasks.in_start[v + 1]].tolist():
            a = place[tasks.source[e]]
            size, fixed_s = tasks.size[e], tasks.fixed_s[e]
            sent = sending_times(tasks.latency[a], size, tasks.wire[a], fixed_s)
            sent[a] = 0.0
            cost[i] += sent
    return cost


def _assigned(cost: Floats) -> Ints:
    """Assign distinct devices at least total cost; forbidden pairs only if unavoidable."""
    from ortools.graph.python import linear_sum_assignment

    k, d = cost.shape
    usable = np.isfinite(cost)
    largest = cost.max(initial=0.0, where=usable) or 1.0
    square = np.zeros((d, d))
    square[:k] = np.where(usable, np.where(usable, cost, 0.0) / largest * WHOLE / d, 4 * WHOLE)
    solver = linear_sum_assignment.SimpleLinearSumAssignment()
    rows, columns = np.divmod(np.arange(d * d), d)
    solver.add_arcs_with_cost(rows, columns, square.ravel().astype(np.int64))
    solver.solve()
    return np.array([solver.right_mate(i) for i in range(k)], np.int32)
