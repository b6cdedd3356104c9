"""ONNX models: a task per node, with the work of its operator and the bytes of its tensors.

ONNX infers the shapes; a batch of unknown size counts as one. Calls of the model's own functions
are replaced by the nodes of these. Weights are memory of the first node that uses them. What
conditions and loops contain is not counted.
"""

import logging
import math
import re
from collections.abc import Iterator
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
from streamplace.io.tensor_work import Tensor, warn_of_bodies, work_of
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
            graph = _graph(name_of(file), _loaded(read_bytes(file, LARGEST_MODEL)).graph)
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


def _graph(name: str, model: Any) -> StreamGraph:
    """Task graph of a model's graph."""
    weights, nodes = _weights(model), [node for node in model.node if node.op_type != "Constant"]
    inputs = [given.name for given in model.input if given.name not in weights]
    suffixes = [f"#{number}" for number in range(len(nodes))]
    kinds = [node.name or node.op_type + end for node, end in zip(nodes, suffixes, strict=True)]
    names = distinct(kinds, suffixes, set(inputs))
    needs = [list(dict.fromkeys(_inputs(node))) for node in nodes]
    needed = set(chain.from_iterable(needs))
    used = [tensor for tensor in inputs if tensor in needed]
    tensors = _shapes(model) | weights
    _warn(nodes, names, inputs, tensors)

    def size(tensor: str) -> float:
        return tensors.get(tensor, UNKNOWN).size

    operators = [Operator(tensor, payload=size(tensor), kind=INPUT) for tensor in used]
    maker = {t: made for node, made in zip(nodes, names, strict=True) for t in node.output if t}
    maker |= {tensor: tensor for tensor in used}
    whole = {made for node, made in zip(nodes, names, strict=True) if len(node.output) == 1}
    whole.update(used)
    streams: list[Stream] = []
    fixed = set(weights)  # tensors that depend on no input
    unclaimed = dict(weights)
    for node, made, taken in zip(nodes, names, needs, strict=True):
        if taken and fixed.issuperset(taken):
            fixed.update(node.output)
        work = work_of(
            node.op_type,
            {a.name: list(a.ints) or a.i for a in node.attribute},
            [tensors.get(tensor, UNKNOWN) for tensor in node.input],
            [not tensor or tensor in fixed for tensor in node.input],
            [tensors.get(tensor, UNKNOWN) for tensor in node.output if tensor],
        )
        payload = math.fsum(size(tensor) for tensor in node.output if tensor)
        memory = sum(unclaimed.pop(tensor).size for tensor in taken if tensor in unclaimed)
        operators.append(Operator(made, work, payload, kind=node.op_type, memory=memory))
        sent: dict[str, float] = {}
        for tensor in taken:
            if tensor in maker:
                sent[maker[tensor]] = sent.get(maker[tensor], 0.0) + size(tensor)
        streams += [
            Stream(u, made, payload=None if u in whole else bytes_sent)
            for u, bytes_sent in sent.items()
        ]
    return StreamGraph.of(name, operators, streams, fires=ALL)


def _warn(
    nodes: list[Any], names: list[str], inputs: list[str], tensors: dict[str, Tensor]
) -> None:
    """Log what is not counted."""
    outer = [
        name for node, name in zip(nodes, names, strict=True) if any(True for _ in _subgraphs(node))
    ]
    warn_of_bodies(outer, len(nodes))
    made = [tensor for node in nodes for tensor in node.output if tensor]
    given = [tensor for tensor in inputs if tensor not in tensors]  # such as sequences
    shapeless = [tensor for tensor in (*given, *made) if tensor not in tensors]
    if shapeless:
        LOG.warning(
            "%d of %d tensors have no known shape, %s first; they count as empty",
            len(shapeless),
            len(given) + len(made),
            shown(shapeless[0]),
        )


def _shapes(model: Any) -> dict[str, Tensor]:
    """Tensors whose types are known."""
    return {
        one.name: _tensor(
            one.type.tensor_type.elem_type,
            [max(d.dim_value, 1) for d in one.type.tensor_type.shape.dim],
        )
        for one in (*model.input, *model.value_info, *model.output)
        if one.type.HasField("tensor_type") and one.type.tensor_type.HasField("shape")
    }


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


def _inputs(node: Any) -> Iterator[str]:
    """Input tensors of a node and of its subgraphs."""
    yield from filter(None, node.input)
    for inner in _subgraphs(node):
        for one in inner.node:
            yield from _inputs(one)
