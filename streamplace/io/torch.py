"""PyTorch models: a task per operation in `torch.export`'s graph, named by its module.

Work is in floating-point operations, one per instruction; streams carry the bytes of tensors;
parameters and buffers are memory of the first operation that uses them. Attributes of the graph
hold the source of the model, and the tensors of modules that compute nothing.
"""

import importlib
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamplace.errors import FormatError, StreamplaceError
from streamplace.io.extras import importing
from streamplace.io.files import located
from streamplace.io.foreign import INSTRUCTIONS_PER_SECOND
from streamplace.io.modules import INPUT, LOOSE, SOURCE, around, blocks_of
from streamplace.io.problems import AnyProblem, Draft
from streamplace.io.registry import reader
from streamplace.model.constraints import Constraints
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted, shown
from streamplace.model.operators import ALL, Operator
from streamplace.model.streams import Stream

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import Node

REPEATS = 5
"""Runs per operator; the median of their times counts."""


@dataclass(frozen=True)
class ExportedModel:
    """An exported model."""

    source: str  # ``package.module:function`` that built the model
    program: "ExportedProgram"

    @cached_property
    def nodes(self) -> "list[Node]":
        """Nodes that compute, in order, without those that select one of several results."""
        calls = [n for n in self.program.graph.nodes if n.op == "call_function" and n.users]
        return [node for node in calls if not is_part(node)]

    @cached_property
    def inputs(self) -> "list[Node]":
        """Tensor inputs that are used."""
        wanted = set(self.program.graph_signature.user_inputs)
        inputs = [n for n in self.program.graph.nodes if n.op == "placeholder" and n.name in wanted]
        return [n for n in inputs if n.users and any(True for _ in tensors(n))]

    @cached_property
    def weights(self) -> "Mapping[Node, str]":
        """Parameters, buffers and constants, with their names in the model."""
        targets = {spec.arg.name: spec.target for spec in self.program.graph_signature.input_specs}
        nodes = self.program.graph.nodes
        weights = [n for n in nodes if n.op == "placeholder" and targets[n.name] is not None]
        return {node: targets[node.name] for node in weights}

    def work(self) -> "dict[Node, int]":
        """Floating-point operations of every node.

        Nodes unknown to torch's counter have one per element of their inputs or outputs, whichever
        are more, and views have none.
        """
        import torch
        from torch._guards import detect_fake_mode
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.utils.flop_counter import FlopCounterMode

        shapes = [node.meta.get("val") for node in self.program.graph.nodes]
        fake, counter = detect_fake_mode(shapes), FlopCounterMode(display=False)
        operations = {}
        with torch.no_grad(), fake or torch.no_grad(), sdpa_kernel(SDPBackend.MATH), counter:
            for node in self.nodes:
                before = counter.get_total_flops()
                _called(node, lambda n: n.meta["val"])
                operations[node] = counter.get_total_flops() - before or self._elements(node)
        return operations

    def seconds(self) -> "dict[Node, float]":
        """Seconds that every node takes on this machine, with torch's number of threads."""
        import torch

        values, durations = self._inputs_and_weights(), {}
        with torch.no_grad():
            for node in self.program.graph.nodes:
                if node.op != "call_function":
                    continue
                took = []
                for _ in range(1 if is_part(node) else REPEATS + 1):
                    start = time.perf_counter()
                    values[node] = _called(node, values.__getitem__)
                    took.append(time.perf_counter() - start)
                durations[node] = statistics.median(took[1:] or took)
                for used in node.all_input_nodes:
                    if used in values and list(used.users)[-1] is node:
                        del values[used]
        return durations

    def _inputs_and_weights(self) -> "dict[Node, Any]":
        """Values of the inputs and weights by node."""
        from torch.utils._pytree import tree_leaves

        program = self.program
        tensors = {**program.state_dict, **program.constants}
        inputs = [n for n in program.graph.nodes if n.op == "placeholder" and n not in self.weights]
        values = dict(zip(inputs, tree_leaves(program.example_inputs), strict=True))
        return {**values, **{node: tensors[name] for node, name in self.weights.items()}}

    def _elements(self, node: "Node") -> int:
        if getattr(node.target, "is_view", False):
            return 0
        inputs = [n for n in node.all_input_nodes if n not in self.weights]
        return max(elements(node), *map(elements, inputs), 0)


def exported(source: str) -> ExportedModel:
    """Export the model that ``package.module:function`` returns, in evaluation mode."""
    with importing("learn"):
        import torch

    module, arguments, named = made(source)
    with errors_of_model(source), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about its next release
        program = torch.export.export(module.eval(), arguments, named, strict=False)
        return ExportedModel(source, program.run_decompositions({}))


def made(source: str) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Build the model, with positional and named example inputs."""
    import torch

    path, colon, name = source.partition(":")
    if not colon or not name.isidentifier() or not all(p.isidentifier() for p in path.split(".")):
        raise FormatError(
            f"{shown(source)}: is not a model; write package.module:function, whose function "
            "returns a module and its example inputs"
        )
    with errors_of_model(source), _here():
        thing = getattr(importlib.import_module(path), name)
        answer: Any = thing if isinstance(thing, torch.nn.Module) else thing()
    pair = isinstance(answer, tuple) and len(answer) == 2
    module, inputs = answer if pair else (answer, getattr(answer, "example_inputs", None))
    if not isinstance(module, torch.nn.Module) or inputs is None:
        raise FormatError(
            f"{shown(source)}: gives {quoted(type(answer).__name__)}; it must give a module and "
            "its example inputs, or a module with the attribute example_inputs"
        )
    if isinstance(inputs, Mapping):
        return module, (), dict(inputs)
    return module, (tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)), {}


def is_part(node: "Node") -> bool:
    """Whether a node selects one of the results of another."""
    import operator

    return node.target is operator.getitem


def module_of(node: "Node") -> str:
    """Path of the module whose code computes a node."""
    stack = node.meta.get("nn_module_stack") or {}
    return str(next(reversed(stack.values()))[0]) if stack else ""


def tensors(node: "Node") -> Iterator[Any]:
    """Tensors that a node returns, with their shapes."""
    import torch
    from torch.utils._pytree import tree_leaves

    leaves = tree_leaves(node.meta.get("val"))
    return (leaf for leaf in leaves if isinstance(leaf, torch.Tensor))


def elements(node: "Node") -> int:
    """Number of elements that a node returns."""
    return sum(tensor.numel() for tensor in tensors(node))


def size(node: "Node") -> int:
    """Bytes that a node returns."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors(node))


def _called(node: "Node", value: Any) -> Any:
    """Call a node's function on the values of its arguments."""
    import torch
    from torch.fx.node import map_arg

    arguments, named = map_arg(node.args, value), map_arg(node.kwargs, value)
    assert callable(node.target)
    with torch.no_grad():
        return node.target(*arguments, **named)


@contextmanager
def _here() -> Iterator[None]:
    """Search the working folder for modules, too."""
    folder = os.getcwd()  # noqa: PTH109 - an entry of sys.path is a text
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


@contextmanager
def errors_of_model(source: str) -> Iterator[None]:
    """Turn an exception in the code of the model into an error on one line."""
    try:
        yield
    except StreamplaceError:
        raise
    except Exception as error:
        first, path = next(iter(str(error).strip().splitlines()), ""), source.partition(":")[0]
        remedy = ""
        if isinstance(error, ModuleNotFoundError) and error.name and path.startswith(error.name):
            remedy = f"; run the command in the folder that holds {shown(path.split('.')[0])}"
        raise FormatError(
            f"{shown(source)}: cannot be loaded and exported: {type(error).__name__}: "
            f"{shown(first, 300)}{remedy}"
        ) from error


@reader(
    "torch",
    options={
        "measure": "Measure the seconds that operators take on this CPU.",
        "blocks": "Colocate operators that a device map cannot separate.",
    },
)
def read_torch(
    source: Path, *, measure: bool = False, blocks: bool = False
) -> Iterator[AnyProblem]:
    """PyTorch models: ``package.module:function``, which returns a module and example inputs."""
    network = exported(str(source))
    with errors_of_model(network.source), located(shown(network.source)):
        if measure:
            seconds = network.seconds().items()
            work = {node: took * INSTRUCTIONS_PER_SECOND for node, took in seconds}
        else:
            work = dict(network.work())
        graph = _graph(network, work)
    yield Draft(graph, Constraints(colocate=blocks_of(graph))) if blocks else graph


def _graph(network: ExportedModel, work: "dict[Node, float]") -> StreamGraph:
    memory = _memory(network)
    operators = [Operator(node.name, payload=size(node), kind=INPUT) for node in network.inputs]
    operators += [
        Operator(
            _name(node),
            work[node],
            size(node),
            kind=getattr(node.target, "__name__", str(node.target)).split(".")[0],
            memory=memory.get(node, 0.0),
        )
        for node in network.nodes
    ]
    attributes = {SOURCE: network.source, LOOSE: json.dumps(_loose(network))}
    name = network.source.rpartition(":")[2]
    return StreamGraph.of(name, operators, _streams(network), attributes, fires=ALL)


def _name(node: "Node") -> str:
    module = module_of(node)
    return f"{module}/{node.name}" if module else node.name


def _streams(network: ExportedModel) -> Iterator[Stream]:
    """One stream from every node to every user of its tensors, with their bytes."""
    names = {node: _name(node) for node in network.nodes}
    names |= {node: node.name for node in network.inputs}
    for node in network.nodes:
        used: dict[Node, dict[Node, None]] = {}
        for tensor in node.all_input_nodes:
            maker = tensor
            while is_part(maker):  # selected from the results of the node that computed it
                maker = maker.all_input_nodes[0]
            if maker in names:
                used.setdefault(maker, {})[tensor] = None
        for maker, parts in used.items():
            total = sum(map(size, parts))
            whole = maker in parts or total == size(maker)
            yield Stream(names[maker], names[node], payload=None if whole else total)


def _memory(network: ExportedModel) -> "dict[Node, float]":
    """Bytes of the weights that each node is the first to use."""
    memory: dict[Node, float] = {}
    used = set()
    for node in network.nodes:
        for weight in node.all_input_nodes:
            if weight in network.weights and weight not in used:
                used.add(weight)
                memory[node] = memory.get(node, 0.0) + size(weight)
    return memory


def _loose(network: ExportedModel) -> list[str]:
    """Outermost modules and tensors of the model's state without computation."""
    computing = set(map(module_of, network.nodes))
    busy = {outer for module in computing for outer in around(module)}
    loose: dict[str, None] = {}
    for tensor in network.program.state_dict:
        if (module := tensor.rpartition(".")[0]) not in computing or not module:
            loose[next(path for path in around(tensor) if path not in busy)] = None
    return list(loose)
