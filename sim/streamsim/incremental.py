"""Steady state under moves: moving one operator costs its degree plus the resources it changes.

The loads at full rate are the leaves of a tournament tree whose root is the largest, so that the
bottleneck and, with one source, the throughput are known after every move. With several sources a
placement that overloads nothing is known to reach 1; any other is filled progressively, which
costs passes over the graph, while ``peak`` (the first level of that filling is 1 / peak) stays
free.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamsim.filling import fill
from streamsim.instance import Instance
from streamsim.jit import borrowing_kernel, kernel
from streamsim.loads import add_operator, add_stream, core_load, n_resources

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


class State(NamedTuple):
    """A placement and the loads it causes; the kernels below change it in place."""

    placement: Ints  # [N]
    loads: Floats  # [R] as in `streamsim.loads`
    tree: Floats  # [2 · leaves] tree[1] is the largest load; leaves: resources, then cores
    per_core: bool  # whether the leaves include one per operator for the single-core bound


@kernel
def start(instance: Instance, placement: Ints) -> State:
    """Loads of a placement from scratch."""
    n, size = len(placement), n_resources(len(instance.device_type))
    per_core = (instance.cores > 1).any()
    leaves = 1
    while leaves < size + (n if per_core else 0):
        leaves *= 2
    state = State(placement.copy(), np.zeros(size), np.zeros(2 * leaves), per_core)
    for v in range(n):
        add_operator(instance, state.loads, v, placement[v], 1.0)
        if per_core:
            state.tree[leaves + size + v] = core_load(instance, v, placement[v])
    for e in range(len(instance.source)):
        a, b = placement[instance.source[e]], placement[instance.target[e]]
        add_stream(instance, state.loads, e, a, b, 1.0)
    state.tree[leaves : leaves + size] = state.loads
    for i in range(leaves - 1, 0, -1):
        state.tree[i] = max(state.tree[2 * i], state.tree[2 * i + 1])
    return state


@borrowing_kernel
def move(instance: Instance, state: State, v: int, to: int) -> None:
    """Move operator v to device ``to`` and update every load that this changes."""
    old = state.placement[v]
    if old == to:
        return
    add_operator(instance, state.loads, v, old, -1.0)
    add_operator(instance, state.loads, v, to, 1.0)
    _raise(state, old)
    _raise(state, to)
    for e in range(instance.out_start[v], instance.out_end[v]):
        peer = state.placement[instance.target[e]]
        _reroute(instance, state, e, old, peer, -1.0)
        _reroute(instance, state, e, to, peer, 1.0)
    for i in range(instance.in_start[v], instance.in_start[v + 1]):
        e = instance.in_streams[i]
        peer = state.placement[instance.source[e]]
        _reroute(instance, state, e, peer, old, -1.0)
        _reroute(instance, state, e, peer, to, 1.0)
    state.placement[v] = to
    if state.per_core:
        _set_leaf(state.tree, len(state.loads) + v, core_load(instance, v, to))


@kernel
def peak(state: State) -> float:
    """Load of the fullest resource."""
    return state.tree[1]


@kernel
def value(instance: Instance, state: State) -> float:
    """Relative throughput of the current placement."""
    worst = state.tree[1]
    if worst <= 1.0:
        return 1.0
    if len(instance.sources) == 1:
        return 1.0 / worst
    return (fill(instance, state.placement) * instance.rate).sum() / instance.rate.sum()


@kernel
def fullest(state: State) -> int:
    """Index of the fullest leaf: a resource, or ``len(loads) + v`` for the core of operator v."""
    leaves = len(state.tree) // 2
    i = 1
    while i < leaves:
        i = 2 * i if state.tree[2 * i] >= state.tree[2 * i + 1] else 2 * i + 1
    return i - leaves


class Incremental:
    """A placement whose throughput follows every move.

    Examples
    --------
    >>> from streamsim import build_instance
    >>> instance = build_instance(rate=[100, 0], seconds=[[1e-3], [5e-3]], source=[0], target=[1],
    ...                           payload=[20_000], device_type=[0, 0],
    ...                           seconds_per_byte=[[0, 1e-6], [1e-6, 0]])
    >>> placed = Incremental(instance, [0, 1])
    >>> before = placed.throughput
    >>> placed.move(1, 0)
    >>> before, placed.throughput
    (0.5, 1.0)
    """

    def __init__(self, instance: Instance, placement: ArrayLike) -> None:
        self._instance = instance
        self._state = start(instance, np.ascontiguousarray(placement, np.int32))

    @property
    def placement(self) -> Ints:
        """Device of every operator, a copy."""
        return self._state.placement.copy()

    @property
    def throughput(self) -> float:
        """Relative throughput of the current placement."""
        return float(value(self._instance, self._state))

    @property
    def peak(self) -> float:
        """Load of the fullest resource."""
        return float(peak(self._state))

    def move(self, operator: int, device: int) -> None:
        """Move one operator to a device."""
        move(self._instance, self._state, operator, device)


@borrowing_kernel
def _reroute(instance: Instance, state: State, e: int, a: int, b: int, share: float) -> None:
    """Add or take away stream e between devices a and b."""
    if a == b:
        return
    add_stream(instance, state.loads, e, a, b, share)
    d = len(instance.device_type)
    _raise(state, d + a * d + b)
    _raise(state, d + d * d + a)
    _raise(state, d + d * d + d + b)
    if instance.overhead > 0:
        _raise(state, a)
        _raise(state, b)


@borrowing_kernel
def _raise(state: State, r: int) -> None:
    """Carry the load of resource r up the tree."""
    _set_leaf(state.tree, r, state.loads[r])


@borrowing_kernel
def _set_leaf(tree: Floats, leaf: int, load: float) -> None:
    """Write one leaf and repair the maxima above it, stopping where nothing changes."""
    i = leaf + len(tree) // 2
    tree[i] = load
    while i > 1:
        i //= 2
        top = max(tree[2 * i], tree[2 * i + 1])
        if tree[i] == top:
            return
        tree[i] = top
