"""Task graphs: stream graphs whose operators all fire "all", so one pass is one run of each."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from streamplace.model.graph import Attribute, StreamGraph, rated
from streamplace.model.operators import Operators
from streamplace.model.streams import Streams

INSTRUCTIONS = 1e6
"""What a device of 1 MIPS does in a second: the ipt of a task of one second."""


def task_graph(
    name: str,
    tasks: Operators,
    edges: ArrayLike,
    payload: ArrayLike | None = None,
    attributes: Mapping[str, Attribute] | None = None,
) -> StreamGraph:
    """Graph of tasks and the edges between them.

    Parameters
    ----------
    tasks
        Operators that fire "all"; those that nothing feeds become sources of 1 tuple/s.
    edges
        Rows of sender and receiver, [M, 2].
    payload
        Bytes of every edge; None where each sends what its sender puts out.
    """
    ends = np.asarray(edges, np.int32).reshape(-1, 2)
    streams = Streams(tasks, ends[:, 0], ends[:, 1], payload=payload)
    return StreamGraph(name, *rated(tasks, streams), attributes or {})


def tasks_of(
    names: Sequence[str],
    ipt: ArrayLike,
    payload: ArrayLike | None = None,
    kind: Sequence[str] | None = None,
    requires: Sequence[frozenset[str]] | None = None,
    memory: ArrayLike | None = None,
) -> Operators:
    """Operators that all fire "all"."""
    return Operators(
        names,
        ipt=ipt,
        payload=payload,
        kind=kind,
        requires=requires,
        memory=memory,
        fires_all=np.ones(len(names), bool),
    )
