"""Ways to collapse the operators of a graph: subtasks of one operator, and chains."""

import re
from collections.abc import Sequence

import numpy as np

from streamplace.drawing.boxes import chain_of
from streamplace.model.arrays import Ints
from streamplace.model.graph import StreamGraph
from streamplace.report.document import GroupsPart

_SUBTASK = re.compile(r"(.+?)#+(\d+)", re.DOTALL)


def groups_of(graph: StreamGraph, places: Sequence[Ints] = ()) -> list[GroupsPart]:
    """Groups that make a graph smaller; chains are cut where one of the placements cuts them."""
    ways = [_subtasks(graph.operators.name), _chains(graph, places)]
    return [way for way in ways if 1 < len(way["name"]) < graph.n_operators]


def _subtasks(names: tuple[str, ...]) -> GroupsPart:
    owners = [match[1] if (match := _SUBTASK.fullmatch(name)) else name for name in names]
    number = {owner: i for i, owner in enumerate(dict.fromkeys(owners))}
    return GroupsPart(by="subtasks", of=[number[owner] for owner in owners], name=list(number))


def _chains(graph: StreamGraph, places: Sequence[Ints]) -> GroupsPart:
    heads, of = np.unique(chain_of(graph, places), return_inverse=True)
    size = np.bincount(of)
    names = graph.operators.name
    return GroupsPart(
        by="chains",
        of=of.tolist(),
        name=[
            f"{names[head]} +{n - 1}" if n > 1 else names[head]
            for head, n in zip(heads.tolist(), size.tolist(), strict=True)
        ],
    )
