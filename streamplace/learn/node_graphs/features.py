"""What the nodes and edges of a node graph look like under a placement."""

from typing import NamedTuple

import numpy as np
from streamsim.jit import kernel

from streamplace.learn.node_graphs.graph import NodeGraph
from streamplace.model.arrays import Bools, Ints, Singles


class NodeFeatures(NamedTuple):
    """A node graph under a placement (H nodes, M edges, F features of a node)."""

    nodes: Singles  # [H, F]
    edges: Singles  # [M, features of an edge]
    source: Ints  # [M] nodes
    target: Ints  # [M]
    open: Bools  # [H] what may be chosen


class WalkRecord(NamedTuple):
    """What was seen on T steps, and chosen; of length 0 where nothing is to be recorded."""

    nodes: Singles  # [T, H, F]
    edges: Singles  # [T, M, features of an edge]
    source: Ints  # [T, M]
    target: Ints  # [T, M]
    open: Bools  # [T, H]
    chosen: Ints  # [T]


def new_features(graph: NodeGraph, of_node: int, of_edge: int) -> NodeFeatures:
    """Room for so many features of every node and edge."""
    return NodeFeatures(
        nodes=np.zeros((graph.n_nodes, of_node), np.float32),
        edges=np.zeros((graph.n_edges, of_edge), np.float32),
        source=np.zeros(graph.n_edges, np.int32),
        target=np.zeros(graph.n_edges, np.int32),
        open=np.zeros(graph.n_nodes, np.bool_),
    )


@kernel
def scale(table: Singles) -> None:
    """Scale every column to [-1, 1]; to 0 where all its values are equal."""
    for f in range(table.shape[1]):
        least, largest = np.inf, -np.inf
        for i in range(len(table)):
            least, largest = min(least, table[i, f]), max(largest, table[i, f])
        for i in range(len(table)):
            span = largest - least
            table[i, f] = (table[i, f] - least) * 2.0 / span - 1.0 if span > 0 else 0.0
