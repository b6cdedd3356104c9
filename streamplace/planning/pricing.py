"""Pricing: the contents of a machine that are worth most, with whole key groups.

Branch and bound on the linear relaxation. A box of shares is split where an operator's share is not
a whole number of key groups; the leaves that are left when it stops prove the bound.
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
"""Key groups are whole where they are by no more than this."""


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """What one machine can be worth.

    Attributes
    ----------
    bound
        Upper bound, in exact fractions.
    contents
        The best contents, in shares of the operators; none where the search stopped before.
    """

    bound: Fraction
    contents: list[Floats]


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
    """Return what the contents of a machine of a type are worth at most.

    Parameters
    ----------
    nodes
        Boxes that are looked at; with 1, the bound is that of the linear relaxation.
    """
    heap: list[_Node] = []
    _push(heap, relaxation, kind, worth, relaxation.boxes[kind])
    for number in count(1):
        node = heapq.heappop(heap)
        halves = _split(relaxation, node) if node.optimum.value > 0 else []
        if not halves or number >= nodes or stop():
            contents = [node.optimum.shares] if node.optimum.value > 0 and not halves else []
            return Priced(_bound([node, *heap], worth), contents)
        for box in halves:
            _push(heap, relaxation, kind, worth, box)
    raise AssertionError("the search for contents has no end")


def _push(heap: list[_Node], relaxation: Relaxation, kind: int, worth: Floats, box: Box) -> None:
    polytope = relaxation.polytope(kind, box)
    heapq.heappush(heap, _Node(box, polytope, best_contents(polytope, worth)))


def _split(relaxation: Relaxation, node: _Node) -> list[Box]:
    """Two boxes without the fractional share that is furthest from whole; none where all are."""
    groups = relaxation.whole_groups
    scaled = node.optimum.shares * groups
    distance = np.abs(scaled - np.round(scaled))
    if distance.max(initial=0.0) <= WHOLE:
        return []
    v = int(np.argmax(distance / np.maximum(groups, 1)))
    below, above = np.array(node.box.high), np.array(node.box.low)
    below[v] = np.floor(scaled[v]) / groups[v]
    above[v] = np.ceil(scaled[v]) / groups[v]
    return [Box(node.box.low, below), Box(above, node.box.high)]


def _bound(leaves: list[_Node], worth: Floats) -> Fraction:
    """Return the largest of the leaves' bounds; an empty machine is worth nothing."""
    bounds = [leaf.polytope.most(worth, leaf.optimum.multipliers) for leaf in leaves]
    return max([Fraction(0), *bounds])
