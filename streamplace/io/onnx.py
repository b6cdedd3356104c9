"""ONNX models: a task per node, with the work of its operator and the bytes of its tensors.

ONNX infers the shapes; a batch of unknown size counts as one. Calls of the model's own functions
are replaced by the nodes of these. Weights are memory of the first node that uses them, and those
of its branches or its loop are memory of a node as well.
"""

import logging
import math
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from streamplace.errors import FormatError
from streamplace.io.extras import extra
from streamplace.io.files import located, read_bytes, spot
from streamplace.io.foreign import distinct, files_of, isolated
from streamplace.io.lines import name_of
from streamplace.io.modules import INPUT, chained
from streamplace.io.problems import Known
from streamplace.io.registry import reader
from streamplace.io.tensor_work import Tensor, work_of
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted, shown
from streamplace.model.operators import ALL, Operator
from streamplace.model.streams import Stream

LOG = logging.getLogger(__name__)
LARGEST_MODEL = 2**31
"""Bytes, the limit of protocol buffers."""
INFER = """
import sys, onnx, onnx.inliner
model = onnx.load_model_from_string(sys.stdin.buffer.read())
if model.functions:
    model = onnx.inliner.inline_local_functions(model)
sys.stdout.buffer.write(onnx.shape_inference.infer_shapes(model).SerializeToString())
"""
UNKNOWN = Tensor((), 0)
BITS = {"FLOAT": 32, "DOUBLE": 64, "BOOL": 8, "STRING": 64}
"""Bits of an element whose type does not have them in its name, as ``BFLOAT16`` has."""


@reader("onnx", package="onnx")
def read_onnx(path: Path, *, chains: bool = False) -> Iterator[Known]:
    """ONNX models (needs the extra ``onnx``): one ``.onnx`` file, or a folder of them.

    Parameters
    ----------
    chains
        Colocate an operator with its only consumer where that has no other input.
    """
    extra("onnx")
    for file in files_of(path, ".onnx"):
        with located(spot(file)):
            graph = OnnxModel(_loaded(read_bytes(file, LARGEST_MODEL))).graph(name_of(file))
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
    held = {weight.name for weight in model.graph.initializer}
    for given in model.graph.input:
        if given.name not in held:
            _fix(given)
    try:
        return onnx.load_model_from_string(isolated(INFER, model.SerializeToString()))
    except FormatError as error:
        raise FormatError(f"is not a model that ONNX understands: {error}") from None


def _fix(given: Any) -> None:
    """Set the batch size of an input to one if it is variable."""
    if given.type.HasField("tensor_type") and not given.type.tensor_type.HasField("shape"):
        raise FormatError(f"input {quoted(given.name)} has no shape; export the model with one")
    lengths = given.type.tensor_type.shape.dim
    for axis, length in enumerate(lengths):
        if length.dim_value < 1:
            if axis:
                raise FormatError(
                    f"input {quoted(given.name)} has no fixed size along axis {axis}; export the "
                    "model with a fixed size, or set one with onnx.tools.update_model_dims"
                )
            length.dim_value = 1


def _texts(model: Any) -> Iterator[Any]:
    """Names in a model; protocol buffers accept bytes that are not valid text."""
    graph = model.graph
    for node in chain(graph.node, *(function.node for function in model.functions)):
        yield from (node.name, node.op_type, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
    yield from (one.name for one in (*graph.input, *graph.output, *graph.initializer))


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
        # nodes by unique names, without constants, which are weights
        self.nodes: dict[str, Any] = dict(
            zip(distinct(called, suffixes, set(self.inputs)), computing, strict=True)
        )

    def graph(self, name: str) -> StreamGraph:
        """Task graph of the model."""
        memory, tensors = self._memory(), self.tensors
        inputs = [tensor for tensor in self.inputs if any(tensor in t for t in self.taken.values())]
        operators = [Operator(t, payload=tensors.get(t, UNKNOWN).size, kind=INPUT) for t in inputs]
        fixed = set(self.weights)  # tensors that depend on no input
        for called, node in self.nodes.items():
            if self.taken[called] and fixed.issuperset(self.taken[called]):
                fixed.update(node.output)
            made = [tensors.get(t, UNKNOWN) for t in node.output if t]
            taken = [tensors.get(t, UNKNOWN) for t in node.input]
            held = [not t or t in fixed for t in node.input]
            work = work_of(node.op_type, self._attributes(node), taken, held, made)
            size = math.fsum(t.size for t in made)
            operators.append(Operator(called, work, size, kind=node.op_type, memory=memory[called]))
        self._warn()
        return StreamGraph.of(name, operators, self._streams(inputs), fires=ALL)

    @cached_property
    def weights(self) -> dict[str, Tensor]:
        """Initialisers and constants."""
        return _weights(self.proto)

    @cached_property
    def inputs(self) -> list[str]:
        """Inputs that are not weights."""
        return [given.name for given in self.proto.input if given.name not in self.weights]

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        """Tensors of known shape."""
        infos = [*self.proto.input, *self.proto.value_info, *self.proto.output]
        shaped = {
            one.name: _tensor(
                one.type.tensor_type.elem_type,
                [max(d.dim_value, 1) for d in one.type.tensor_type.shape.dim],
            )
            for one in infos
            if one.type.HasField("tensor_type") and one.type.tensor_type.HasField("shape")
        }
        return shaped | self.weights

    @cached_property
    def taken(self) -> dict[str, dict[str, None]]:
        """Input tensors of every node and of its subgraphs."""
        return {called: dict.fromkeys(_inputs(node)) for called, node in self.nodes.items()}

    def _streams(self, inputs: list[str]) -> Iterator[Stream]:
        maker = {t: called for called, node in self.nodes.items() for t in node.output if t}
        maker |= {name: name for name in inputs}
        single = {called for called, node in self.nodes.items() if len(node.output) == 1}
        for called, taken in self.taken.items():
            sent: dict[str, float] = {}
            for tensor in taken:
                if tensor in maker:
                    size = self.tensors.get(tensor, UNKNOWN).size
                    sent[maker[tensor]] = sent.get(maker[tensor], 0.0) + size
            for source, size in sent.items():
                whole = source in single or source in inputs
                yield Stream(source, called, payload=None if whole else size)

    def _memory(self) -> dict[str, float]:
        """Bytes of the weights that each node is the first to use, and of those inside it."""
        memory = {called: _inner_weights(node) for called, node in self.nodes.items()}
        left = dict(self.weights)
        for called, taken in self.taken.items():
            for tensor in taken:
                if tensor in left:
                    memory[called] += left.pop(tensor).size
        return memory

    def _attributes(self, node: Any) -> dict[str, Any]:
        """Attributes that are numbers or lists of them."""
        return {a.name: list(a.ints) or a.i for a in node.attribute}

    def _warn(self) -> None:
        made = [t for node in self.nodes.values() for t in node.output if t]
        made += [t for t in self.inputs if t not in self.tensors]  # such as sequences of tensors
        unknown = [tensor for tensor in made if tensor not in self.tensors]
        if unknown:
            LOG.warning(
                "%d of %d tensors have no known shape, %s first; they count as empty",
                len(unknown),
                len(made),
                shown(unknown[0]),
            )


def _tensor(kind: int, shape: Any) -> Tensor:
    return Tensor(tuple(shape), _item_size(kind))


def _item_size(kind: int) -> float:
    """Bytes of an element, of which several of few bits share one; 0 where its type is unknown."""
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
        for one in inner.node:
            yield from _inputs(one)
