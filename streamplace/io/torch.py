"""PyTorch models: a task per operation in `torch.export`'s graph, named by its module.

Work is in floating-point operations, one per instruction; streams carry the bytes of tensors;
parameters and buffers are memory of the first operation that uses them. Attributes of the graph
hold the source of the model, and the tensors of modules that compute nothing.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from streamplace.io.exported import (
    ExportedModel,
    errors_of_model,
    exported,
    is_part,
    module_of,
    size,
)
from streamplace.io.files import located
from streamplace.io.foreign import INSTRUCTIONS_PER_SECOND
from streamplace.io.modules import INPUT, LOOSE, SOURCE, around, blocks_of, joined
from streamplace.io.problems import Draft, Known
from streamplace.io.registry import reader
from streamplace.model.constraints import Constraints
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import shown
from streamplace.model.operators import ALL, Operator
from streamplace.model.streams import Stream

if TYPE_CHECKING:
    from torch.fx import Node


@reader("torch", source="package.module:function")
def read_torch(source: Path, *, measure: bool = False, blocks: bool = False) -> Iterator[Known]:
    """PyTorch models: ``package.module:function``, which returns a module and example inputs.

    Parameters
    ----------
    measure
        Measure the seconds that operators take on this CPU.
    blocks
        Colocate operators that a device map cannot separate.
    """
    network = exported(str(source))
    with errors_of_model(network.source), located(shown(network.source)):
        graph = _graph(network, _instructions(network, measured=measure))
    yield Draft(graph, Constraints(colocate=blocks_of(graph))) if blocks else graph


def _instructions(network: ExportedModel, *, measured: bool) -> "dict[Node, float]":
    """Instructions of every node; measured seconds are converted at 2500 MIPS."""
    if not measured:
        return dict(network.work())
    return {node: took * INSTRUCTIONS_PER_SECOND for node, took in network.seconds().items()}


def _graph(network: ExportedModel, work: "dict[Node, float]") -> StreamGraph:
    memory = _memory(network)
    operators = [Operator(node.name, payload=size(node), kind=INPUT) for node in network.inputs]
    operators += [
        Operator(
            _name(node), work[node], size(node), kind=_kind(node), memory=memory.get(node, 0.0)
        )
        for node in network.nodes
    ]
    attributes = {SOURCE: network.source, LOOSE: json.dumps(_loose(network))}
    name = network.source.rpartition(":")[2]
    return StreamGraph.of(name, operators, _streams(network), attributes, fires=ALL)


def _name(node: "Node") -> str:
    return joined(module_of(node), node.name)


def _kind(node: "Node") -> str:
    return getattr(node.target, "__name__", str(node.target)).split(".")[0]


def _streams(network: ExportedModel) -> Iterator[Stream]:
    """One stream from every node to every user of its tensors, with their bytes."""
    names = {node: _name(node) for node in network.nodes}
    names |= {node: node.name for node in network.inputs}
    for node in network.nodes:
        used: dict[Node, dict[Node, None]] = {}
        for tensor in node.all_input_nodes:
            maker = _maker(tensor)
            if maker in names:
                used.setdefault(maker, {})[tensor] = None
        for maker, parts in used.items():
            total = sum(map(size, parts))
            whole = maker in parts or total == size(maker)
            yield Stream(names[maker], names[node], payload=None if whole else total)


def _maker(node: "Node") -> "Node":
    """Return the node that computed a selected result."""
    while is_part(node):
        node = node.all_input_nodes[0]
    return node


def _memory(network: ExportedModel) -> "dict[Node, float]":
    """Bytes of the weights that each node is the first to use."""
    memory: dict[Node, float] = {}
    taken = set()
    for node in network.nodes:
        for weight in node.all_input_nodes:
            if weight in network.weights and weight not in taken:
                taken.add(weight)
                memory[node] = memory.get(node, 0.0) + size(weight)
    return memory


def _loose(network: ExportedModel) -> list[str]:
    """Outermost modules and tensors of the model's state without computation."""
    own = set(map(module_of, network.nodes))
    busy = {outer for module in own for outer in around(module)}
    loose: dict[str, None] = {}
    for tensor in network.program.state_dict:
        if (module := tensor.rpartition(".")[0]) not in own or not module:
            loose[next(path for path in around(tensor) if path not in busy)] = None
    return list(loose)
