"""Modules of a neural network, read from the names of its operators: ``encoder.0.mlp/linear_3``.

Before the last slash stands the path of the module that computes, nothing for the network itself.
"""

from collections.abc import Iterator
from functools import cached_property

from streamplace.model.graph import StreamGraph

INPUT = "input"
"""Kind of an operator that stands for an input of the network."""
SOURCE, LOOSE = "torch", "torch_loose"
"""Attributes: what makes the model, and modules and tensors in which nothing is computed."""


def joined(module: str, node: str) -> str:
    """Name of an operator.

    >>> joined("layer1.0", "add_2"), joined("", "cat")
    ('layer1.0/add_2', 'cat')
    """
    return f"{module}/{node}" if module else node


def parted(name: str) -> tuple[str, str]:
    """Module and node of an operator.

    >>> parted("layer1.0/add_2"), parted("cat")
    (('layer1.0', 'add_2'), ('', 'cat'))
    """
    module, _, node = name.rpartition("/")
    return module, node


def around(module: str) -> Iterator[str]:
    """Modules that hold a module, from the network itself to the module.

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
    """Which operators belong to which module, inputs of the network left out.

    Attributes
    ----------
    own
        Rows of the operators that a module's own code computes, by its path.
    within
        Rows of the operators of a module and of those it holds.
    feeders
        Rows of the operators that each operator takes in.
    """

    def __init__(self, graph: StreamGraph) -> None:
        self.graph = graph
        self.own: dict[str, list[int]] = {}
        self.within: dict[str, list[int]] = {}
        for row, (name, kind) in enumerate(
            zip(graph.operators.name, graph.operators.kind, strict=True)
        ):
            if kind != INPUT:
                module, _ = parted(name)
                self.own.setdefault(module, []).append(row)
                for outer in around(module):
                    self.within.setdefault(outer, []).append(row)

    @cached_property
    def feeders(self) -> list[list[int]]:
        """Rows that each row takes in."""
        sources: list[list[int]] = [[] for _ in range(self.graph.n_operators)]
        streams = self.graph.streams
        for source, target in zip(streams.source.tolist(), streams.target.tolist(), strict=True):
            sources[target].append(source)
        return sources

    def is_input(self, row: int) -> bool:
        """Whether an operator stands for an input of the network."""
        return self.graph.operators.kind[row] == INPUT

    def is_leaf(self, module: str) -> bool:
        """Whether a module does all itself."""
        return len(self.own.get(module, ())) == len(self.within[module])

    def begins(self, row: int) -> bool:
        """Whether an operator takes in an input of the network itself."""
        return any(map(self.is_input, self.feeders[row]))

    def is_block(self, module: str) -> bool:
        """Whether a module can only be moved as a whole.

        It is if it holds no other module, if its own code uses weights, or joins data of its own
        with data from outside, as a residual block does.
        """
        own, inside = self.own[module], set(self.within[module])
        if not module or len(own) == len(inside):
            return bool(module)
        memory = self.graph.operators.memory
        return any(memory[row] or self._joins_others(row, inside) for row in own)

    def _joins_others(self, row: int, inside: set[int]) -> bool:
        feeders = set(self.feeders[row])
        return len(feeders) > 1 and not feeders <= inside


def blocks_of(graph: StreamGraph) -> list[list[str]]:
    """Groups of operators that a device map, which moves data where modules begin, keeps together.

    Blocks are one group each. What the code of other modules computes goes with what it takes in;
    where that is an input, with all that stays where inputs arrive, and so does what uses weights
    of the network itself.
    """
    modules = Modules(graph)
    whole = dict.fromkeys(module for module in modules.own if modules.is_block(module))
    groups = [modules.within[module] for module in whole]
    loose = [
        row
        for module, own in modules.own.items()
        if not any(outer in whole for outer in around(module))
        for row in own
    ]
    for row in loose:
        groups.append([row, *(u for u in modules.feeders[row] if not modules.is_input(u))])
    memory = graph.operators.memory
    groups.append([row for row in loose if memory[row] or modules.begins(row)])
    names = graph.operators.name
    return [[names[row] for row in sorted(set(group))] for group in groups if len(set(group)) > 1]
