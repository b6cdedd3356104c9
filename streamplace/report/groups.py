"""Groups of operators for display: subtasks, chains, and units of constraints."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamplace.drawing.boxes import chain_of
from streamplace.model.arrays import Ints
from streamplace.model.graph import StreamGraph
from streamplace.report.document import GroupsPart

_SUBTASK = re.compile(r"(.+?)#+(\d+)", re.DOTALL)


def groups_of(
    graph: StreamGraph, places: Sequence[Ints] = (), unit: Ints | None = None
) -> list[GroupsPart]:
    """Groups that make a graph smaller; chains are cut between devices of any placement.

    Parameters
    ----------
    unit
        [N] unit of every operator; operators of one unit share a device.
    """
    names = graph.operators.name
    ways = [_subtasks(names), _groups("chains", names, chain_of(graph, places))]
    if unit is not None:
        ways.append(_groups("units", names, unit))
    return [way for way in ways if 1 < len(way["name"]) < graph.n_operators]


def _subtasks(names: tuple[str, ...]) -> GroupsPart:
    owners = [match[1] if (match := _SUBTASK.fullmatch(name)) else name for name in names]
    number = {owner: i for i, owner in enumerate(dict.fromkeys(owners))}
    return GroupsPart(by="subtasks", of=[number[owner] for owner in owners], name=list(number))


def _groups(by: str, names: tuple[str, ...], number: NDArray[np.integer[Any]]) -> GroupsPart:
    """Groups of operators with the same number, named after their first operator."""
    _, heads, of = np.unique(number, return_index=True, return_inverse=True)
    size = np.bincount(of)
    return GroupsPart(
        by=by,
        of=of.tolist(),
        name=[
            f"{names[head]} +{n - 1}" if n > 1 else names[head]
            for head, n in zip(heads.tolist(), size.tolist(), strict=True)
        ],
    )
