"""OpenVINO models: a task per operation of the graph, constants included.

HSDAG places this graph: the saved representation of a model, in which every weight is a constant
and, if compressed, a conversion as well. Constants hold the memory and do no work, and neither do
operations on constants alone. A batch of unknown size counts as one. What conditions and loops
contain is not listed.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from streamplace.errors import FormatError
from streamplace.io.extras import extra
from streamplace.io.files import is_folder, located, read_bytes, spot
from streamplace.io.foreign import distinct, files_with, isolated, warn_of_some
from streamplace.io.lines import name_of
from streamplace.io.modules import CHAINS, chained
from streamplace.io.onnx import MAX_MODEL_BYTES
from streamplace.io.problems import AnyProblem
from streamplace.io.registry import reader
from streamplace.io.tensor_work import Tensor, work_of
from streamplace.model.graph import StreamGraph
from streamplace.model.operators import ALL, Operator
from streamplace.model.streams import Stream

WITH_BODIES = {"If", "Loop", "TensorIterator"}
LIST = """
import json, sys
import openvino

model = openvino.Core().read_model(sys.argv[1])
for tensor in model.inputs:
    shape = tensor.get_partial_shape()
    if shape.rank.is_dynamic or any(length.is_dynamic for length in list(shape)[1:]):
        sys.exit(f"input {tensor.get_any_name()} has the shape {shape}; save the model with a "
                 "fixed one, as in convert_model(model, input=[1, 3, 224, 224])")
if model.is_dynamic():
    variable = [tensor for tensor in model.inputs if tensor.get_partial_shape().is_dynamic]
    model.reshape({tensor: [1, *list(tensor.get_partial_shape())[1:]] for tensor in variable})

def lengths_of(shape):
    lengths = [] if shape.rank.is_dynamic else shape
    return [d.get_length() if d.is_static else max(d.get_min_length(), 1) for d in lengths]

def numbers(node):
    found = node.get_attributes()
    kernel, turned = list(found.get("kernel", [])), found.get("transpose_a", False)
    return {"kernel_shape": kernel, "transA": turned}

nodes = model.get_ordered_ops()
row = {node.get_name(): i for i, node in enumerate(nodes)}
listed = [
    {
        "name": node.get_friendly_name(),
        "kind": node.get_type_name(),
        "attributes": numbers(node),
        "taken": [(row[tensor.get_source_output().get_node().get_name()],
                   tensor.get_source_output().get_index()) for tensor in node.inputs()],
        "made": [(lengths_of(tensor.get_partial_shape()), tensor.get_element_type().bitwidth / 8)
                 for tensor in node.outputs()],
    }
    for node in nodes
]
json.dump(listed, sys.stdout)
"""
"""Script for a separate process that lists the operations of a model."""


class OpenVinoNode(TypedDict):
    """An operation: rows and output numbers of its inputs, shapes and item sizes of its outputs."""

    name: str
    kind: str
    attributes: dict[str, object]
    taken: list[tuple[int, int]]
    made: list[tuple[list[int], float]]


@reader("openvino", package="openvino", options=CHAINS)
def read_openvino(path: Path, *, chains: bool = False) -> Iterator[AnyProblem]:
    """OpenVINO models (extra ``openvino``): ``.xml`` files beside their ``.bin``, or ``.onnx``."""
    extra("openvino")
    for file in files_with(path, ".xml") if is_folder(path) else [path]:
        with located(spot(file)):
            graph = _graph(name_of(file), _nodes(file))
        yield chained(graph) if chains else graph


def _nodes(path: Path) -> list[OpenVinoNode]:
    """Operations of a model, in order."""
    read_bytes(path, MAX_MODEL_BYTES)  # raises the error for a missing or unreadable file
    try:
        listed: list[OpenVinoNode] = json.loads(isolated(LIST, b"", str(path.resolve())))
    except FormatError as error:
        raise FormatError(f"is not a model that OpenVINO can read: {error}") from None
    return listed


def _graph(name: str, nodes: list[OpenVinoNode]) -> StreamGraph:
    made = [[Tensor(tuple(shape), item) for shape, item in node["made"]] for node in nodes]
    names = distinct([node["name"] for node in nodes], [f"#{row}" for row in range(len(nodes))])
    outer = [node["name"] for node in nodes if node["kind"] in WITH_BODIES]
    what = "operations are conditions or loops"
    warn_of_some(outer, len(nodes), what, "what these contain is not counted")
    constant = _constant(nodes)
    operators = []
    for row, node in enumerate(nodes):
        taken = [made[source][i] for source, i in node["taken"]]
        held = [constant[source] for source, _ in node["taken"]]
        size = sum(tensor.size for tensor in made[row])
        work = work_of(node["kind"], node["attributes"], taken, held, made[row])
        memory = size if node["kind"] == "Constant" else 0.0
        operators.append(Operator(names[row], work, size, kind=node["kind"], memory=memory))
    streams = [
        Stream(names[source], names[row], payload=None if len(made[source]) == 1 else size)
        for row, node in enumerate(nodes)
        for source, size in _sent(node, made).items()
    ]
    return StreamGraph.of(name, operators, streams, fires=ALL)


def _constant(nodes: list[OpenVinoNode]) -> list[bool]:
    """Whether each operation depends on no input."""
    constant: list[bool] = []
    for node in nodes:
        alone = bool(node["taken"]) and all(constant[source] for source, _ in node["taken"])
        constant.append(alone or node["kind"] == "Constant")
    return constant


def _sent(node: OpenVinoNode, made: list[list[Tensor]]) -> dict[int, float]:
    """Bytes of a node's inputs by the row of their producer, each tensor once."""
    sent: dict[int, float] = {}
    for source, i in dict.fromkeys(map(tuple, node["taken"])):
        sent[source] = sent.get(source, 0.0) + made[source][i].size
    return sent
