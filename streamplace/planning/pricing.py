"""Pricing: the contents of a machine with the largest worth, in whole key groups.

Branch and bound on the linear relaxation. A node is a box of shares. It is split where the share of
an operator is not a whole number of key groups, or where the relaxation keeps more of a stream on
the machine than the shares of its ends allow. The open nodes at the end prove the bound.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

import numpy as np

from streamplace.model.arrays import Floats
from streamplace.planning.linear import Optimum, best_contents
from streamplace.planning.relaxation import Box, Polytope, Relaxation

WHOLE = 1e-6
"""Tolerance within which a number of key groups is whole."""


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """Upper bound of the worth of one machine's contents.

    Attributes
    ----------
    bound
        Upper bound, an exact fraction.
    contents
        Shares of the operators at the node of the highest bound; 0 if nothing has positive worth.
    exact
        Whether the relaxation is exact for these contents, so that a machine holds them up to
        rounding.
    nodes
        Number of explored nodes.
    """

    bound: Fraction
    contents: Floats
    exact: bool
    nodes: int


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    box: Box
    polytope: Polytope
    optimum: Optimum

    def __lt__(self, other: "_Node") -> bool:
        return self.optimum.value > other.optimum.value


def price(
    relaxation: Relaxation,
    kind: int,
    worth: Floats,
    nodes: int = 1,
    stop: Callable[[], bool] = lambda: False,
) -> Priced:
    """Bound the worth of the contents of a machine of a type.

    Parameters
    ----------
    nodes
        Most nodes to explore; with 1, the bound is that of the linear relaxation.
    """
    heap: list[_Node] = []
    _push(heap, relaxation, kind, worth, relaxation.boxes[kind])
    for number in count(1):
        node = heapq.heappop(heap)
        halves = _split(relaxation, node) if node.optimum.value > 0 else []
        if not halves or number >= nodes or stop():
            contents = node.optimum.shares * (node.optimum.value > 0)
            return Priced(_bound([node, *heap], worth), contents, not halves, number)
        for box in halves:
            _push(heap, relaxation, kind, worth, box)
    raise AssertionError("the search for contents has no end")


def _push(heap: list[_Node], relaxation: Relaxation, kind: int, worth: Floats, box: Box) -> None:
    polytope = relaxation.polytope(kind, box)
    heapq.heappush(heap, _Node(box, polytope, best_contents(polytope, worth)))


def _split(relaxation: Relaxation, node: _Node) -> list[Box]:
    """Return two boxes that exclude the node's optimum; none if a machine can hold it.

    Branches on the operator whose number of key groups is furthest from whole; if all are whole, on
    the stream that the relaxation overestimates most.
    """
    groups, shares = relaxation.whole_groups, node.optimum.shares
    scaled = shares * groups
    distance = np.abs(scaled - np.round(scaled))
    if distance.max(initial=0.0) > WHOLE:
        v = int(np.argmax(distance / np.maximum(groups, 1)))
        return _halves(node.box, v, np.floor(scaled[v]) / groups[v], np.ceil(scaled[v]) / groups[v])
    v = relaxation.loosest(node.box, shares)
    if v < 0:
        return []
    low, high = node.box.low[v], node.box.high[v]
    middle = float(np.clip(shares[v], low + 0.25 * (high - low), high - 0.25 * (high - low)))
    if not groups[v]:
        return _halves(node.box, v, middle, middle)
    below = np.floor(middle * groups[v]) / groups[v]
    return _halves(node.box, v, below, below + 1 / groups[v])


def _halves(box: Box, v: int, below: float, above: float) -> list[Box]:
    high, low = np.array(box.high), np.array(box.low)
    high[v], low[v] = below, above
    return [Box(box.low, high), Box(low, box.high)]


def _bound(leaves: list[_Node], worth: Floats) -> Fraction:
    """Return the largest bound of the leaves, at least 0 for an empty machine."""
    bounds = [leaf.polytope.most(worth, leaf.optimum.multipliers) for leaf in leaves]
    return max([Fraction(0), *bounds])
