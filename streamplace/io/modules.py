"""Modules of a neural network, read from the names of its operators: ``encoder.0.mlp/linear_3``.

Before the last slash stands the path of the module that computes, nothing for the network itself.
"""

from collections.abc import Iterator, Sequence
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
        found: list[list[int]] = [[] for _ in range(self.graph.n_operators)]
        streams = self.graph.streams
        for source, target in zip(streams.source.tolist(), streams.target.tolist(), strict=True):
            found[target].append(source)
        return found

    def is_input(self, row: int) -> bool:
        """Whether an operator stands for an input of the network."""
        return self.graph.operators.kind[row] == INPUT

    def is_leaf(self, module: str) -> bool:
        """Whether a module does all itself."""
        return len(self.own.get(module, ())) == len(self.within[module])

    def is_free(self, row: int) -> bool:
        """Whether an operator follows what it takes in, without weights of its own."""
        alone = len(set(self.feeders[row])) < 2
        return alone and not self.graph.operators.memory[row]


def blocks_of(graph: StreamGraph) -> list[list[str]]:
    """Groups of operators that a device map, which moves data where modules begin, keeps together.

    A module is one block if its own code joins data or holds weights. What else stands between
    modules goes with what it takes in; the network itself is no block, so its code keeps all that
    it joins together.
    """
    modules = Modules(graph)
    groups = [group for module in modules.own for group in _groups(modules, module)]
    names = graph.operators.name
    return [[names[row] for row in group] for group in groups if len(group) > 1]


def _groups(modules: Modules, module: str) -> Iterator[Sequence[int]]:
    own = modules.own[module]
    whole = modules.is_leaf(module) or not all(map(modules.is_free, own))
    if module and whole:
        yield modules.within[module]
        return
    for row in own:
        yield [row, *(u for u in dict.fromkeys(modules.feeders[row]) if not modules.is_input(u))]
    if not module:
        yield _beside_inputs(modules, own)


def _beside_inputs(modules: Modules, own: Sequence[int]) -> Sequence[int]:
    """Operators of the network's own code that stay where inputs arrive."""
    memory = modules.graph.operators.memory
    return [row for row in own if memory[row] or any(map(modules.is_input, modules.feeders[row]))]
