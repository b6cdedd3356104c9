"""ONNX models: a task per node, with the work of its operator and the bytes of its tensors.

ONNX infers the shapes; a batch of unknown size counts as one. Functions of the model are inlined.
Weights are memory of the first node that uses them; weights inside the branches or the loop of a
node are memory of that node. A condition has the work of its dearer branch, and a loop the work of
one iteration.
"""

import math
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from streamplace.errors import FormatError
from streamplace.io.extras import extra
from streamplace.io.files import located, read_bytes, spot
from streamplace.io.foreign import distinct, files_with, isolated, warn_of_some
from streamplace.io.lines import name_of
from streamplace.io.modules import CHAINS, INPUT, chained
from streamplace.io.problems import AnyProblem
from streamplace.io.registry import reader
from streamplace.io.tensor_work import Tensor, work_of
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.operators import ALL, Operator
from streamplace.model.streams import Stream

MAX_MODEL_BYTES = 2**31
"""Bytes, the limit of protocol buffers."""
INFER = """
import sys, onnx, onnx.inliner
model = onnx.load_model_from_string(sys.stdin.buffer.read())
if model.functions:
    model = onnx.inliner.inline_local_functions(model)
sys.stdout.buffer.write(onnx.shape_inference.infer_shapes(model).SerializeToString())
"""
UNKNOWN = Tensor((), 0)
LOOPS = {"Loop", "Scan", "SequenceMap"}
BITS = {"FLOAT": 32, "DOUBLE": 64, "BOOL": 8, "STRING": 64}
"""Bits of the types without a number of bits in their names."""


@reader("onnx", package="onnx", options=CHAINS)
def read_onnx(path: Path, *, chains: bool = False) -> Iterator[AnyProblem]:
    """ONNX models (needs the extra ``onnx``): one ``.onnx`` file, or a folder of them."""
    extra("onnx")
    for file in files_with(path, ".onnx"):
        content = read_bytes(file, MAX_MODEL_BYTES)
        with located(spot(file)):
            graph = OnnxModel(_loaded(content)).graph(name_of(file))
        yield chained(graph) if chains else graph


def _loaded(content: bytes) -> Any:
    """Load a model without functions of its own, with the shapes of its tensors."""
    onnx = extra("onnx")
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(content)
    except DecodeError:
        raise FormatError("is not an ONNX model; export it again") from None
    if not model.graph.node:
        raise FormatError("contains no ONNX node; export the model again")
    if not all(isinstance(text, str) for text in _texts(model)):
        raise FormatError("contains names that are not valid Unicode; export it again")
    weights = {weight.name for weight in model.graph.initializer}
    for tensor in model.graph.input:
        if tensor.name not in weights:
            _fix(tensor)
    try:
        return onnx.load_model_from_string(isolated(INFER, model.SerializeToString()))
    except FormatError as error:
        raise FormatError(f"is not a model that ONNX understands: {error}") from None


def _fix(tensor: Any) -> None:
    """Set the batch size of an input to one if it is variable."""
    if tensor.type.HasField("tensor_type") and not tensor.type.tensor_type.HasField("shape"):
        raise FormatError(f"input {quoted(tensor.name)} has no shape; export the model with one")
    lengths = tensor.type.tensor_type.shape.dim
    for axis, length in enumerate(lengths):
        if length.dim_value < 1:
            if axis:
                raise FormatError(
                    f"input {quoted(tensor.name)} has no fixed size along axis {axis}; export the "
                    "model with a fixed size, or set one with onnx.tools.update_model_dims"
                )
            length.dim_value = 1


def _texts(model: Any) -> Iterator[Any]:
    """Names in a model; protocol buffers accept bytes that are not valid text."""
    graph = model.graph
    for node in chain(graph.node, *(function.node for function in model.functions)):
        yield from (node.name, node.op_type, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
    yield from (tensor.name for tensor in (*graph.input, *graph.output, *graph.initializer))


class OnnxModel:
    """A model, indexed by the names of its tensors."""

    def __init__(self, model: Any) -> None:
        self.proto = model.graph
        computing = [node for node in self.proto.node if node.op_type != "Constant"]
        suffixes = [f"#{number}" for number in range(len(computing))]
        called = [
            node.name or node.op_type + suffix
            for node, suffix in zip(computing, suffixes, strict=True)
        ]
        # nodes by unique names; constants are weights
        self.nodes: dict[str, Any] = dict(
            zip(distinct(called, suffixes, set(self.inputs)), computing, strict=True)
        )

    def graph(self, name: str) -> StreamGraph:
        """Task graph of the model."""
        memory, scope = self._memory(), Scope(self.proto)
        inputs = [tensor for tensor in self.inputs if any(tensor in t for t in self.taken.values())]
        operators = [Operator(t, payload=scope.tensor(t).size, kind=INPUT) for t in inputs]
        for called, node in self.nodes.items():
            work = scope.work(node)
            size = math.fsum(scope.tensor(t).size for t in node.output if t)
            operators.append(Operator(called, work, size, kind=node.op_type, memory=memory[called]))
        scope.warn()
        return StreamGraph.of(name, operators, self._streams(inputs, scope), fires=ALL)

    @cached_property
    def weights(self) -> dict[str, Tensor]:
        """Initialisers and constants."""
        return _weights(self.proto)

    @cached_property
    def inputs(self) -> list[str]:
        """Inputs that are not weights."""
        return [tensor.name for tensor in self.proto.input if tensor.name not in self.weights]

    @cached_property
    def taken(self) -> dict[str, dict[str, None]]:
        """Input tensors of every node, with those of its subgraphs."""
        return {called: dict.fromkeys(_inputs(node)) for called, node in self.nodes.items()}

    def _streams(self, inputs: list[str], scope: "Scope") -> Iterator[Stream]:
        maker = {t: called for called, node in self.nodes.items() for t in node.output if t}
        maker |= {name: name for name in inputs}
        single = {called for called, node in self.nodes.items() if len(node.output) == 1}
        for called, taken in self.taken.items():
            sent: dict[str, float] = {}
            for tensor in taken:
                if tensor in maker:
                    size = scope.tensor(tensor).size
                    sent[maker[tensor]] = sent.get(maker[tensor], 0.0) + size
            for source, size in sent.items():
                whole = source in single or source in inputs
                yield Stream(source, called, payload=None if whole else size)

    def _memory(self) -> dict[str, float]:
        """Bytes of the weights that each node is the first to use, and of the weights inside it."""
        memory = {called: _inner_weights(node) for called, node in self.nodes.items()}
        unused = dict(self.weights)
        for called, taken in self.taken.items():
            for tensor in taken:
                if tensor in unused:
                    memory[called] += unused.pop(tensor).size
        return memory


class Unknowns(NamedTuple):
    """Tensors, tensors without a known shape, and loops of a model."""

    tensors: list[str]
    shapeless: list[str]
    loops: list[str]


class Scope:
    """Tensors that the nodes of a graph can use, or the nodes of a branch or a loop of it."""

    def __init__(self, graph: Any, outer: "Scope | None" = None) -> None:
        weights, infos = _weights(graph), [*graph.input, *graph.value_info, *graph.output]
        shaped = {
            info.name: _tensor(
                info.type.tensor_type.elem_type,
                [max(d.dim_value, 1) for d in info.type.tensor_type.shape.dim],
            )
            for info in infos
            if info.type.HasField("tensor_type") and info.type.tensor_type.HasField("shape")
        }
        inputs = [tensor.name for tensor in graph.input if tensor.name not in weights]
        self._tensors = shaped | weights
        self._fixed = set(weights)  # tensors that depend on no input
        self._unknown: Unknowns = Unknowns([], [], []) if outer is None else outer._unknown
        if outer is not None:
            self._tensors = outer._tensors | self._tensors
            self._fixed |= outer._fixed.difference(inputs)
        self._note([name for name in inputs if name not in self._tensors])  # such as sequences

    def tensor(self, name: str) -> Tensor:
        """Shape of a tensor."""
        return self._tensors.get(name, UNKNOWN)

    def work(self, node: Any) -> float:
        """Floating-point operations of a node; to be called in the order of the graph."""
        self._note([name for name in node.output if name])
        needed = set(_inputs(node))
        if needed and self._fixed.issuperset(needed):
            self._fixed.update(node.output)
        if node.op_type == "If":
            return max(map(self._work_inside, _subgraphs(node)), default=0.0)
        if node.op_type in LOOPS and (bodies := list(_subgraphs(node))):
            self._unknown.loops.append(node.name or node.op_type)
            return self._work_inside(bodies[0])
        outputs = [self.tensor(t) for t in node.output if t]
        inputs = [self.tensor(t) for t in node.input]
        is_weight = [not t or t in self._fixed for t in node.input]
        attributes = {a.name: list(a.ints) or a.i for a in node.attribute}
        return work_of(node.op_type, attributes, inputs, is_weight, outputs)

    def warn(self) -> None:
        """Log tensors and loops whose sizes the model does not state."""
        tensors, shapeless, loops = self._unknown
        warn_of_some(shapeless, len(tensors), "tensors have no known shape", "they count as empty")
        what = "loops have the work of one iteration"
        warn_of_some(loops, len(loops), what, "scale those that have more")

    def _note(self, names: list[str]) -> None:
        self._unknown.tensors.extend(names)
        self._unknown.shapeless.extend(name for name in names if name not in self._tensors)

    def _work_inside(self, body: Any) -> float:
        scope = Scope(body, self)
        return math.fsum(scope.work(inner) for inner in body.node if inner.op_type != "Constant")


def _tensor(kind: int, shape: Any) -> Tensor:
    return Tensor(tuple(shape), _item_size(kind))


def _item_size(kind: int) -> float:
    """Bytes of an element, a fraction for types of few bits; 0 for an unknown type."""
    try:
        name = extra("onnx").TensorProto.DataType.Name(kind)
    except ValueError:
        return 0
    bits = re.search(r"\d+", name)
    return (int(bits[0]) if bits else BITS.get(name, 0)) / 8


def _weights(graph: Any) -> dict[str, Tensor]:
    """Initialisers and constants of a graph, without those of its subgraphs."""
    weights = {w.name: _tensor(w.data_type, w.dims) for w in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            value = next((a.t for a in node.attribute if a.HasField("t")), None)
            constant = UNKNOWN if value is None else _tensor(value.data_type, value.dims)
            weights |= dict.fromkeys(node.output, constant)
    return weights


def _subgraphs(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        yield from attribute.graphs
        if attribute.HasField("g"):
            yield attribute.g


def _inner_weights(node: Any) -> float:
    """Bytes of the weights in the subgraphs of a node."""
    return math.fsum(
        size
        for inner in _subgraphs(node)
        for size in (
            *(tensor.size for tensor in _weights(inner).values()),
            *map(_inner_weights, inner.node),
        )
    )


def _inputs(node: Any) -> Iterator[str]:
    """Input tensors of a node and of its subgraphs."""
    yield from filter(None, node.input)
    for inner in _subgraphs(node):
        for inner_node in inner.node:
            yield from _inputs(inner_node)
