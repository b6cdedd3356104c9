"""Steady state under moves: moving one operator costs its degree plus the resources it changes.

The loads at full rate are the leaves of a tournament tree whose root is the largest load, so that
the bottleneck and the throughput are known after every move.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from streamsim import _core
from streamsim.arrays import Floats, Ints
from streamsim.equation import egress_at, ingress_at, link_at, link_load, n_resources, pressure
from streamsim.instance import Instance, as_ints
from streamsim.jit import borrowing_kernel, inlined_kernel
from streamsim.loads import (
    core_pressure,
    handles,
    limits_subtasks,
    n_constants,
    only_devices_and_links,
    stream_handling,
    stream_loads,
)

#: Most resources for which the largest load is found by a scan: vector instructions make that
#: cheaper than maintaining a tree.
SCANNED = 250


class LoadState(NamedTuple):
    """A placement and the loads it causes; the kernels below change it in place.

    A load is ``loads[r] + carry[r]``: the rounding error of every addition is carried, so that a
    load returns to its old value when its operators return, after any number of moves.
    """

    placement: Ints  # [N]
    loads: Floats  # [R] as in `streamsim.loads`; without the NICs if ``plain``
    carry: Floats  # [R]
    tree: Floats  # [2 · leaves] tree[1] is the largest load; leaves: resources, then cores. Or [0]
    plain: bool  # only devices and links limit
    per_core: bool  # whether the leaves include one per operator for the single-core bound
    constants: Floats  # [D] constant loads of the devices; [0] if there are none
    constants_carry: Floats  # [D] or [0]


def start(instance: Instance, placement: Ints) -> LoadState:
    """Compute the state of a placement from scratch."""
    d = instance.n_devices
    plain, per_core = only_devices_and_links(instance), limits_subtasks(instance)
    size = d + d * d if plain else n_resources(d)
    leaves = size + (len(placement) if per_core else 0)
    buffers = np.zeros(size), np.zeros(size), np.zeros(0)
    constants = np.zeros(n_constants(instance)), np.zeros(n_constants(instance))
    state = LoadState(placement.copy(), *buffers, plain, per_core, *constants)
    _load(instance, state)
    if size <= SCANNED and not per_core:
        return state
    state = state._replace(tree=np.zeros(2 << (leaves - 1).bit_length()))
    _grow(instance, state)
    return state


@borrowing_kernel
def _load(instance: Instance, state: LoadState) -> None:
    """Add the loads of the placement to empty resources."""
    place = state.placement
    for v in range(len(place)):
        _take_constant(instance, state, v, place[v], 1.0)
        _shift(state, place[v], instance.load[v, instance.device_type[place[v]]])
    for e in range(len(instance.source)):
        _reroute(instance, state, e, place[instance.source[e]], place[instance.target[e]], 1.0)


@borrowing_kernel
def _grow(instance: Instance, state: LoadState) -> None:
    """Build the tournament tree over the loads and, if they may limit, the cores."""
    tree, half, size = state.tree, len(state.tree) // 2, len(state.loads)
    for r in range(size):
        tree[half + r] = _leaf(state, r)
    if state.per_core:
        for v in range(len(state.placement)):
            tree[half + size + v] = core_pressure(instance, v, state.placement[v])
    for i in range(half - 1, 0, -1):
        tree[i] = max(tree[2 * i], tree[2 * i + 1])


@inlined_kernel
def move(instance: Instance, state: LoadState, v: int, to: int) -> None:
    """Move operator v to device ``to`` and update every load that this changes."""
    old = state.placement[v]
    if old == to:
        return
    _take_constant(instance, state, v, old, -1.0)
    _take_constant(instance, state, v, to, 1.0)
    _shift(state, old, -instance.load[v, instance.device_type[old]])
    _shift(state, to, instance.load[v, instance.device_type[to]])
    first, end = instance.out_start[v], instance.out_end[v]
    into = instance.in_start[v] - end
    for i in range(first, instance.in_start[v + 1] - into):
        out = i < end
        e = i if out else instance.in_streams[into + i]
        peer = state.placement[instance.target[e] if out else instance.source[e]]
        _reroute(instance, state, e, old if out else peer, peer if out else old, -1.0)
        _reroute(instance, state, e, to if out else peer, peer if out else to, 1.0)
    state.placement[v] = to
    if state.per_core:
        _set_leaf(state.tree, len(state.loads) + v, core_pressure(instance, v, to))


@inlined_kernel
def peak(state: LoadState) -> float:
    """Load of the fullest resource."""
    if len(state.tree) > 0:
        top: float = state.tree[1]
        return top
    worst = 0.0
    for r in range(len(state.constants)):
        worst = max(worst, _leaf(state, r))
    for r in range(len(state.constants), len(state.loads)):
        worst = max(worst, state.loads[r] + state.carry[r])
    return worst


@inlined_kernel
def value(state: LoadState) -> float:
    """Relative throughput of the current placement."""
    return 1.0 / max(1.0, peak(state))


class Incremental(_core.Incremental):
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
    >>> placed.undo()
    >>> placed.throughput
    0.5
    """

    def __new__(cls, instance: Instance, placement: ArrayLike) -> Self:
        """Compute the loads of a placement from scratch."""
        return super().__new__(cls, instance.core, as_ints(placement))


@inlined_kernel
def _reroute(instance: Instance, state: LoadState, e: int, a: int, b: int, sign: float) -> None:
    """Add (sign 1) or remove (sign −1) stream e between devices a and b."""
    d = len(instance.device_type)
    if state.plain:  # links from a device to itself cost nothing, which is cheaper than a branch
        flow = sign * instance.traffic[e]
        _shift(state, link_at(d, a, b), link_load(flow, 0.0, instance.seconds_per_byte[a, b], 0.0))
        return
    if a == b:
        return
    link, egress, ingress = stream_loads(instance, e, a, b)
    _shift(state, link_at(d, a, b), sign * link)
    _shift(state, egress_at(d, a), sign * egress)
    _shift(state, ingress_at(d, b), sign * ingress)
    if handles(instance):
        _shift(state, a, stream_handling(instance, e, a, sign))
        _shift(state, b, stream_handling(instance, e, b, sign))


@inlined_kernel
def _shift(state: LoadState, r: int, change: float) -> None:
    """Change the load of resource r and carry the rounding error (Knuth's two-sum)."""
    old = state.loads[r]
    new = old + change
    added = new - old
    state.loads[r] = new
    state.carry[r] += (old - (new - added)) + (change - added)
    if len(state.tree) > 0:
        _set_leaf(state.tree, r, _leaf(state, r))


@inlined_kernel
def _leaf(state: LoadState, r: int) -> float:
    """Load of a resource as a fraction of the capacity that constant loads leave free."""
    load = state.loads[r] + state.carry[r]
    if r < len(state.constants):
        return pressure(load, state.constants[r] + state.constants_carry[r])
    return load


@inlined_kernel
def _take_constant(instance: Instance, state: LoadState, v: int, d: int, sign: float) -> None:
    """Add or remove the constant load of operator v on device d; its leaf is updated later."""
    if len(state.constants) == 0:
        return
    change = sign * instance.constant[v, instance.device_type[d]]
    old = state.constants[d]
    new = old + change
    added = new - old
    state.constants[d] = new
    state.constants_carry[d] += (old - (new - added)) + (change - added)


@borrowing_kernel
def _set_leaf(tree: Floats, leaf: int, load: float) -> None:
    """Write one leaf and update the maxima above it, until one does not change."""
    i = leaf + len(tree) // 2
    tree[i] = load
    while i > 1:
        i //= 2
        top = max(tree[2 * i], tree[2 * i + 1])
        if tree[i] == top:
            return
        tree[i] = top
