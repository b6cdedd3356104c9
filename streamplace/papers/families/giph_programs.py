"""GiPH's task graphs (appendix B.2 of its paper): layers of random width, randomly connected.

The paper's numbers bear no units. Here a compute of 1 is a million instructions, so that it takes
1 / speed seconds on a device of that many MIPS.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamplace.families.drawing import THOUSANDTHS, around, thousandths
from streamplace.model.graph import Attribute, StreamGraph
from streamplace.papers.families.giph_networks import TYPES, hardware
from streamplace.papers.families.tasks import INSTRUCTIONS, task_graph, tasks_of

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ProgramShape:
    """Parameters of a random task graph."""

    v: int = 10  # size parameter, which is not the number of tasks
    alpha: float = 0.1  # shape: there are √v/α layers of α√v tasks on average
    connect: float = 0.1  # probability of an edge from a task to one of a later layer
    compute: float = 100.0  # mean over tasks
    bytes: float = 100.0  # mean over edges
    compute_spread: float = 0.4  # values are uniform on mean · (1 ± spread / 2)
    bytes_spread: float = 0.4


def draw_layers(shape: ProgramShape, rng: np.random.Generator) -> Rows:
    """Layer of every task; the first layer holds the entry alone, and the last one the exit.

    >>> draw_layers(ProgramShape(10, 1.0), np.random.default_rng(0)).tolist()
    [0, 1, 1, 2, 3, 4, 4, 4, 4, 4, 4, 5]
    """
    root = math.sqrt(shape.v)
    inner = math.ceil(rng.uniform(0.8, 1.2) * root / shape.alpha)
    widths = np.ceil(rng.uniform(0, 2 * shape.alpha * root, inner)).clip(1).astype(np.int64)
    return np.repeat(np.arange(inner + 2), [1, *widths.tolist(), 1])


def draw_program(
    name: str,
    shape: ProgramShape,
    layer: Rows,
    rng: np.random.Generator,
    attributes: Mapping[str, Attribute],
) -> StreamGraph:
    """Draw edges and costs of the tasks in these layers."""
    size = len(layer)
    edges = _edges(layer, shape.connect, rng)
    compute = around(rng, shape.compute, shape.compute_spread, size)
    needs = rng.integers(TYPES, size=size).tolist()
    payload = around(rng, shape.bytes, shape.bytes_spread, len(edges))
    tasks = tasks_of(
        [f"t{i}" for i in range(size)],
        ipt=thousandths(compute) * (INSTRUCTIONS / THOUSANDTHS),
        requires=[frozenset({hardware(kind)}) for kind in needs],
    )
    return task_graph(name, tasks, edges, thousandths(payload) / THOUSANDTHS, attributes)


def _edges(layer: Rows, connect: float, rng: np.random.Generator) -> Rows:
    """Sorted edges [M, 2]: random ones, a path through all layers, and one for each missing end.

    A task without successor or predecessor gets an edge to a random task of a later layer, or from
    one of an earlier layer. Other random edges never lead to the exit.
    """
    size = len(layer)
    joined = (rng.random((size, size)) < connect) & (layer[:, None] < layer)
    joined[:, -1] = False
    path = [int(rng.choice(np.flatnonzero(layer == i))) for i in range(int(layer[-1]) + 1)]
    joined[path[:-1], path[1:]] = True
    for task in range(1, size - 1):
        if not joined[task].any():
            joined[task, rng.choice(np.flatnonzero(layer > layer[task]))] = True
        if not joined[:, task].any():
            joined[rng.choice(np.flatnonzero(layer < layer[task])), task] = True
    return np.argwhere(joined)
