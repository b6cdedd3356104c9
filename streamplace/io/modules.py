"""Parts of a neural network that belong together: modules, and chains of operators.

Modules are read from the names of the operators, such as ``encoder.0.mlp/linear_3``: the path
before the last slash is the module that computes, empty for the network itself.

In a chain, each operator is the only input of its only consumer. Mirhoseini et al. and HSDAG
(appendix G) coarsen the graphs of neural networks in this way before they place them.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streamplace.io.problems import Draft
from streamplace.model.arrays import Ints
from streamplace.model.constraints import Constraints
from streamplace.model.graph import StreamGraph

INPUT = "input"
"""Kind of the operators that are inputs of the network."""
CHAINS = {"chains": "Colocate an operator with its only consumer where that has no other input."}
"""Option of readers that return `chained` graphs."""
SOURCE, LOOSE = "torch", "torch_loose"
"""Attributes of graphs: source of the model, and modules and tensors without computation."""


def around(module: str) -> Iterator[str]:
    """Enclosing modules of a module, from the network itself to the module.

    >>> list(around("layer1.0.conv1"))
    ['', 'layer1', 'layer1.0', 'layer1.0.conv1']
    """
    yield ""
    for i, character in enumerate(module):
        if character == ".":
            yield module[:i]
    if module:
        yield module


class Modules:
    """Rows of operators by the path of their module, without the inputs of the network."""

    def __init__(self, graph: StreamGraph) -> None:
        self.graph = graph
        self.direct: dict[str, list[int]] = {}  # computed by the code of the module itself
        self.within: dict[str, list[int]] = {}  # computed by the module or its submodules
        for row, (name, kind) in enumerate(
            zip(graph.operators.name, graph.operators.kind, strict=True)
        ):
            if kind != INPUT:
                module = name.rpartition("/")[0]
                self.direct.setdefault(module, []).append(row)
                for outer in around(module):
                    self.within.setdefault(outer, []).append(row)

    @cached_property
    def feeders(self) -> list[list[int]]:
        """Rows of the inputs of every operator."""
        sources: list[list[int]] = [[] for _ in range(self.graph.n_operators)]
        streams = self.graph.streams
        for source, target in zip(streams.source.tolist(), streams.target.tolist(), strict=True):
            sources[target].append(source)
        return sources

    def is_input(self, row: int) -> bool:
        """Whether an operator is an input of the network."""
        return self.graph.operators.kind[row] == INPUT

    def begins(self, row: int) -> bool:
        """Whether an operator reads an input of the network itself."""
        return any(map(self.is_input, self.feeders[row]))

    def is_block(self, module: str) -> bool:
        """Whether a module can only be moved as one.

        This holds if it has no submodules, or if its code uses weights or joins data from
        within with data from outside, as a residual block does.
        """
        direct, inside = self.direct[module], set(self.within[module])
        if not module or len(direct) == len(inside):
            return bool(module)
        memory, feeders = self.graph.operators.memory, self.feeders
        return any(
            memory[row] or (len(set(feeders[row])) > 1 and not inside.issuperset(feeders[row]))
            for row in direct
        )


def blocks_of(graph: StreamGraph) -> list[list[str]]:
    """Groups of operators that a device map, which moves data where modules begin, keeps together.

    1. The operators of a block are one group.
    2. An operator in the code of another module joins the group of its inputs.
    3. If its input is an input of the network, or if it uses weights of the network itself, it
       joins the group of all operators that stay where the inputs arrive.
    """
    modules = Modules(graph)
    whole = dict.fromkeys(module for module in modules.direct if modules.is_block(module))
    groups = [modules.within[module] for module in whole]
    loose = [
        row
        for module, direct in modules.direct.items()
        if not any(outer in whole for outer in around(module))
        for row in direct
    ]
    for row in loose:
        groups.append([row, *(u for u in modules.feeders[row] if not modules.is_input(u))])
    memory = graph.operators.memory
    groups.append([row for row in loose if memory[row] or modules.begins(row)])
    names = graph.operators.name
    return [[names[row] for row in sorted(set(group))] for group in groups if len(set(group)) > 1]


def chained(graph: StreamGraph) -> Draft:
    """Colocate the operators of every chain.

    >>> from streamplace.model import Operator, Stream
    >>> ends = [("a", "b"), ("b", "c"), ("b", "d"), ("c", "e"), ("d", "e"), ("e", "f")]
    >>> streams = [Stream(*pair) for pair in ends]
    >>> graph = StreamGraph.of("g", map(Operator, "abcdef"), streams, fires="all")
    >>> [sorted(group) for group in chained(graph).constraints.colocate]
    [['a', 'b'], ['e', 'f']]
    """
    names, members = graph.operators.name, dict[int, list[str]]()
    first = chain_of(graph)
    for v in graph.order.tolist():
        members.setdefault(int(first[v]), []).append(names[v])
    chains = [group for _, group in sorted(members.items()) if len(group) > 1]
    return Draft(graph, Constraints(colocate=chains))


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
