"""gpNet: a node for every task on every device that may run it.

With p the current placement there is an edge between two nodes of tasks u and v for every stream
from u to v, wherever at least one of the two is where the placement has its task:

    (u, p(u)) → (v, b) for every device b of v;    (u, a) → (v, p(v)) for every other device a of u

so that a node has around it what its task would meet if it were moved there. Which nodes an edge
joins changes with the placement, how many there are does not: the edges of stream e are the rows
``edge_start[e]`` to ``edge_start[e + 1]``.
"""

from typing import NamedTuple

import numpy as np
from streamsim.passes import GIPH
from streamsim.passes.compiled import Pass
from streamsim.passes.makespans import new_case
from streamsim.passes.sending import fixed_times
from streamsim.passes.state import Case
from streamsim.topology import group_by

from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.memory import most
from streamplace.model.problem import Problem


class View(NamedTuple):
    """A problem as GiPH sees it: N tasks, E streams, D devices, H nodes, U units of tasks.

    Where ``pairs`` is false there is a node for every task alone, which stands for its task where
    it currently is.
    """

    one: Pass
    case: Case
    pairs: bool
    work: Floats  # [N, D] seconds
    compute: Floats  # [N] mean seconds over the devices
    slowness: Floats  # [D] mean seconds over the tasks
    task: Ints  # [H]
    device: Ints  # [H]
    node_start: Ints  # [N + 1] the nodes of v are node_start[v]:node_start[v + 1]
    node_of: Ints  # [N, D] node of a task on a device, -1 where it may not run
    edge_start: Ints  # [E + 1]
    order: Ints  # [N] topological
    in_start: Ints  # [N + 1] what v waits for: in_stream[in_start[v]:in_start[v + 1]]
    in_stream: Ints  # [E]
    source: Ints  # [E]
    target: Ints  # [E]
    size: Floats  # [E] bytes
    fixed_s: Floats  # [E] seconds of every transfer, whatever the link
    latency: Floats  # [D, D] seconds
    wire: Floats  # [D, D] seconds per byte
    allowed: Bools  # [U, D]
    unit: Ints  # [N]
    member_start: Ints  # [U + 1] the tasks of a unit are members[member_start[u]:…]
    members: Ints  # [N]
    rival_start: Ints  # [U + 1] the units that u must not meet are rivals[rival_start[u]:…]
    rivals: Ints
    memory: Floats  # [U] bytes, or [0] where memory does not limit
    room: Floats  # [D] bytes

    @property
    def n_tasks(self) -> int:
        """Number of tasks, N."""
        return len(self.work)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, H."""
        return len(self.task)

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return int(self.edge_start[-1])


def view_of(problem: Problem, *, pairs: bool = True) -> View:
    """See a problem, by pairs of tasks and devices or by tasks alone."""
    one, instance, rules = problem.one_pass, problem.instance, problem.rules
    n, d = problem.n_operators, problem.n_devices
    work = np.ascontiguousarray(one.work[:, one.devices["type"]])
    unit = np.arange(n, dtype=np.int32) if rules is None else np.array(rules.unit, np.int32)
    n_units = int(unit.max()) + 1
    allowed = np.ones((n_units, d), np.bool_) if rules is None else np.array(rules.allowed)
    apart = np.zeros((0, 2), np.int32) if rules is None else rules.apart
    both = np.concatenate((apart, apart[:, ::-1])).astype(np.int32)
    rival_start, rows = group_by(np.ascontiguousarray(both[:, 0]), n_units)
    member_start, members = group_by(unit, n_units)
    memory = room = np.zeros(0)
    if rules is not None and rules.memory is not None and rules.room is not None:
        memory, room = np.array(rules.memory), most(rules.room)
    task, device, node_of = _nodes(allowed[unit], pairs)
    node_start = np.searchsorted(task, np.arange(n + 1)).astype(np.int32)
    nodes = np.diff(node_start)
    edges = nodes[instance.source] + nodes[instance.target] - 1
    return View(
        one,
        new_case(one, GIPH),
        pairs,
        work,
        work.mean(axis=1),
        work.mean(axis=0),
        task,
        device,
        node_start,
        node_of,
        np.concatenate(([0], np.cumsum(edges))).astype(np.int32),
        instance.order,
        instance.in_start,
        instance.in_streams,
        instance.source,
        instance.target,
        np.array(one.streams["size"]),
        fixed_times(one.streams["tuples"], one.gap, one.overhead),
        np.array(one.links["latency"]),
        np.array(one.links["seconds_per_byte"]),
        allowed,
        unit,
        member_start,
        members,
        rival_start,
        np.ascontiguousarray(both[rows, 1]),
        memory,
        room,
    )


def _nodes(allowed: Bools, pairs: bool) -> tuple[Ints, Ints, Ints]:
    """Task and device of every node, and the node of every pair."""
    n, d = allowed.shape
    if not pairs:
        tasks = np.arange(n, dtype=np.int32)
        return tasks, np.zeros(n, np.int32), np.repeat(tasks[:, None], d, axis=1)
    task, device = (column.astype(np.int32) for column in np.nonzero(allowed))
    node_of = np.full((n, d), -1, np.int32)
    node_of[task, device] = np.arange(len(task))
    return task, device, node_of
