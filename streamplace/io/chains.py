"""Chains of a graph: operators together with their only consumer, if nothing else feeds it.

Mirhoseini et al. and HSDAG (appendix G) coarsen the graphs of neural networks in this way before
they place them.
"""

import numpy as np

from streamplace.io.problems import Draft
from streamplace.model.constraints import Constraints
from streamplace.model.graph import StreamGraph


def chained(graph: StreamGraph) -> Draft:
    """Return the graph with its chains colocated."""
    return Draft(graph, Constraints(colocate=chains_of(graph)))


def chains_of(graph: StreamGraph) -> list[list[str]]:
    """Groups of operators, each the only consumer of the one before and fed by it alone.

    >>> from streamplace.model import Operator, Stream
    >>> ends = [("a", "b"), ("b", "c"), ("b", "d"), ("c", "e"), ("d", "e"), ("e", "f")]
    >>> streams = [Stream(*pair) for pair in ends]
    >>> chains_of(StreamGraph.of("g", map(Operator, "abcdef"), streams, fires="all"))
    [['a', 'b'], ['e', 'f']]
    """
    pairs = np.unique(np.stack([graph.streams.source, graph.streams.target], axis=1), axis=0)
    outputs = np.bincount(pairs[:, 0], minlength=graph.n_operators)
    inputs = np.bincount(pairs[:, 1], minlength=graph.n_operators)
    alone = (outputs[pairs[:, 0]] == 1) & (inputs[pairs[:, 1]] == 1)
    follower = dict(pairs[alone].tolist())
    names, groups = graph.operators.name, []
    for first in sorted(follower.keys() - set(follower.values())):
        group = [first]
        while group[-1] in follower:
            group.append(follower[group[-1]])
        groups.append([names[row] for row in group])
    return groups
