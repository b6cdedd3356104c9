"""Boxes of a drawing: operators, or in large graphs chains of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamplace.model.arrays import Ints
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import shown

MOST_SINGLE = 200
"""Most operators of a graph in which each is a box."""
MOST_NAMED = 12
"""Most operators of a box that its hint names."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """Boxes of a graph, and the streams between them."""

    of: Ints  # [N] box of every operator
    members: list[list[int]]  # operators of every box, in topological order
    streams: Ints  # rows of the streams between different boxes
    # Boxes at the ends of these streams.
    source: Ints
    target: Ints

    def __len__(self) -> int:
        return len(self.members)

    def label(self, graph: StreamGraph, box: int) -> str:
        """Name of a box."""
        names, rows = graph.operators.name, self.members[box]
        if len(rows) == 1:
            return shown(names[rows[0]])
        return f"{shown(names[rows[0]])} +{len(rows) - 1}"

    def hint(self, graph: StreamGraph, box: int) -> str:
        """Full names of the operators of a box."""
        names, rows = graph.operators.name, self.members[box]
        listed = ", ".join(shown(names[v]) for v in rows[:MOST_NAMED])
        return listed + (f" and {len(rows) - MOST_NAMED} more" if len(rows) > MOST_NAMED else "")


def boxes_of(graph: StreamGraph, places: Sequence[Ints] = ()) -> Boxes:
    """Boxes of a graph.

    Above 200 operators, chains share a box: an operator with its only consumer, if it is the only
    input of that and no placement of ``places`` separates the two.
    """
    single = graph.n_operators <= MOST_SINGLE
    first = np.arange(graph.n_operators) if single else chain_of(graph, places)
    streams = graph.streams
    heads, of = np.unique(first, return_inverse=True)
    members: list[list[int]] = [[] for _ in heads]
    for v in graph.order.tolist():
        members[of[v]].append(v)
    source, target = of[streams.source], of[streams.target]
    crossing = np.flatnonzero(source != target).astype(np.int32)
    return Boxes(
        of.astype(np.int32), members, crossing,
        source[crossing].astype(np.int32), target[crossing].astype(np.int32),
    )  # fmt: skip


def chain_of(graph: StreamGraph, places: Sequence[Ints] = ()) -> NDArray[np.intp]:
    """First operator of the chain of every operator, [N].

    In a chain, each operator feeds only the next one, which has no other input. No placement of
    ``places`` separates two operators of a chain.
    """
    n, streams = graph.n_operators, graph.streams
    first = np.arange(n)
    outs = np.bincount(streams.source, minlength=n)
    ins = np.bincount(streams.target, minlength=n)
    merged = (outs[streams.source] == 1) & (ins[streams.target] == 1)
    for place in places:
        merged &= place[streams.source] == place[streams.target]
    feeder = dict(zip(streams.target[merged].tolist(), streams.source[merged].tolist(),
                      strict=True))  # fmt: skip
    for v in graph.order.tolist():
        first[v] = first[feeder[v]] if v in feeder else v
    return first
