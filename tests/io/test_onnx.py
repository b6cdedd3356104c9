"""ONNX models."""

import logging

import numpy as np
import pytest
from refusals import refusal_of

from streamplace.errors import FormatError
from streamplace.io.registry import FORMATS

onnx = pytest.importorskip("onnx")
FLOAT = 1


def weights(name, *shape):
    """Weights of a shape."""
    return onnx.numpy_helper.from_array(np.zeros(shape, np.float32), name)


def info(name, *shape):
    """Type of a tensor."""
    return onnx.helper.make_tensor_value_info(name, FLOAT, shape)


def node(kind, taken, made, **attributes):
    """Node of tensors named in one text, called after its first result."""
    first = made.split()[0]
    return onnx.helper.make_node(kind, taken.split(), made.split(), first.upper(), **attributes)


def network():
    """Convolution, normalisation, pooling, a branch, and a classifier."""
    nodes = [
        node("Conv", "x w", "c", kernel_shape=[3, 3], pads=[1] * 4),
        node("BatchNormalization", "c s s s s", "n"),
        node("Relu", "n", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Split", "p", "l m", axis=1, num_outputs=2),
        node("Add", "l m", "a"),
        node("GlobalAveragePool", "a", "g"),
        node("Flatten", "g", "f"),
        node("Gemm", "f k b", "y", transB=1),
        node("MatMul", "y v", "z"),
    ]
    held = [weights("w", 4, 3, 3, 3), weights("s", 4), weights("k", 5, 2), weights("b", 5)]
    held.append(weights("v", 5, 5))
    graph = onnx.helper.make_graph(
        nodes, "n", [info("x", "batch", 3, 8, 8)], [info("z", "batch", 5)], held
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])


def read(folder, model):
    """Graph that is read from a model."""
    path = folder / "net.onnx"
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    (graph,) = FORMATS["onnx"].read(path)
    return graph


def read_of(folder, nodes, inputs, outputs, held=(), **more):
    """Graph of a model of these nodes, tensors and weights."""
    graph = onnx.helper.make_graph(nodes, "n", inputs, outputs, held)
    return read(folder, onnx.helper.make_model(graph, **more))


def flag(name):
    """Type of a tensor that is one truth value."""
    return onnx.helper.make_tensor_value_info(name, 9, [])


def test_operations_are_counted_from_shapes_and_weights_are_memory_once(tmp_path):
    """Two for a product and a sum; a batch of unknown size counts as one."""
    graph = read(tmp_path, network())
    assert dict(zip(graph.operators.name, graph.operators.ipt.tolist(), strict=True)) == {
        "x": 0,
        "C": 2 * (4 * 8 * 8) * (3 * 3 * 3),
        "N": 2 * 4 * 8 * 8,
        "R": 4 * 8 * 8,
        "P": 4 * 4 * 4 * (2 * 2),
        "L": 4 * 4 * 4,
        "A": 2 * 4 * 4,
        "G": 2 * 4 * 4,
        "F": 0,
        "Y": 2 * 5 * 2,
        "Z": 2 * 5 * 5,
    }
    assert graph.operators["C"].kind == "Conv"
    memory = graph.operators.memory.tolist()
    assert memory == [0, 4 * 108, 4 * 4, 0, 0, 0, 0, 0, 0, 4 * 15, 4 * 25]  # of the first user


def test_a_node_may_have_the_name_of_an_input(tmp_path):
    """Names of nodes and of tensors are unique among themselves alone; a node may have none."""
    model = network()
    model.graph.node[0].name, model.graph.node[1].name = "x", ""
    graph = read(tmp_path, model)
    assert graph.operators.name[:4] == ("x", "x#0", "BatchNormalization#1", "R")
    assert {s.target for s in graph.streams if s.source == "x"} == {"x#0"}


def test_streams_carry_tensors(tmp_path):
    """One stream from node to node, however many tensors it carries."""
    graph = read(tmp_path, network())
    carried = {(s.source, s.target): s.payload for s in graph.streams}
    assert carried["L", "A"] == 4 * (4 * 4 * 4)
    assert carried["x", "C"] is None
    assert graph.operators["C"].payload == 4 * 4 * 8 * 8
    assert graph.n_streams == 10


def test_chains_stay_together_on_request(tmp_path):
    onnx.save(network(), tmp_path / "n.onnx")
    (draft,) = FORMATS["onnx"].with_options(["chains"]).read(tmp_path / "n.onnx")
    kinds = {o.name: o.kind for o in draft.graph.operators}
    groups = [[kinds[name] for name in group] for group in draft.constraints.colocate]
    assert any("BatchNormalization" in group and "Relu" in group for group in groups)


@pytest.mark.parametrize(
    ("kind", "size"), [("FLOAT", 96), ("BFLOAT16", 48), ("FLOAT8E4M3FN", 24), ("INT4", 12)]
)
def test_weights_have_the_bytes_of_their_type_and_what_follows_from_them_is_no_work(
    kind, size, tmp_path
):
    """Two elements of four bits share a byte; a model is loaded with its weights transposed."""
    weight = onnx.TensorProto(name="w", dims=[4, 6], raw_data=bytes(size))
    weight.data_type = onnx.TensorProto.DataType.Value(kind)
    nodes = [node("Cast", "w", "c", to=FLOAT), node("Transpose", "c", "t", perm=[1, 0])]
    nodes.append(node("MatMul", "x t", "y"))
    ends = [info("x", 3, 6)], [info("y", 3, 4)]
    operators = read_of(tmp_path, nodes, *ends, [weight]).operators
    assert dict(zip(operators.name, operators.ipt.tolist(), strict=True)) == {
        **dict.fromkeys("xCT", 0), "Y": 2 * 3 * 4 * 6,
    }  # fmt: skip
    assert operators.memory.tolist() == [0, size, 0, 0]


def test_tensors_that_inner_graphs_take_in_are_streams(tmp_path):
    branches = {
        key: onnx.helper.make_graph([node("Neg", "d", f"{key}o")], key, [], [info(f"{key}o", 2)])
        for key in ("then_branch", "else_branch")
    }
    nodes = [node("Relu", "x", "d"), node("If", "q", "y", **branches)]
    streams = read_of(tmp_path, nodes, [info("x", 2), flag("q")], [info("y", 2)]).streams
    assert [(s.source, s.target) for s in streams] == [("x", "D"), ("q", "Y"), ("D", "Y")]


def test_functions_of_the_model_are_the_nodes_that_they_consist_of(tmp_path):
    """Exporters write modules as functions; their work and their weights would be lost."""
    constant = onnx.helper.make_node("Constant", [], ["k"], value=weights("", 6, 4))
    opsets = [onnx.helper.make_opsetid("", 18)]
    dense = onnx.helper.make_function(
        "mine", "Dense", ["a"], ["c"], [constant, node("MatMul", "a k", "c")], opsets
    )
    calls = [
        onnx.helper.make_node("Dense", [taken], [made], made.upper(), domain="mine")
        for taken, made in (("x", "y"), ("v", "z"))
    ]
    ends = [info("x", 3, 6), info("v", 3, 6)], [info("y", 3, 4), info("z", 3, 4)]
    imports = [*opsets, onnx.helper.make_opsetid("mine", 1)]
    operators = read_of(tmp_path, calls, *ends, functions=[dense], opset_imports=imports).operators
    assert operators.kind == ("input", "input", "MatMul", "MatMul")
    assert operators.ipt.tolist() == [0, 0, *[2 * 3 * 4 * 6] * 2]
    assert operators.memory.tolist() == [0, 0, *[4 * 6 * 4] * 2]


def test_weights_of_branches_are_memory_of_their_node(tmp_path):
    """Initialisers and constants alike, of branches within branches, too."""

    def branch(name, *nodes, held=()):
        made = [info(nodes[-1].output[0], 2)]
        return onnx.helper.make_graph(nodes, name, [], made, held)

    constant = onnx.helper.make_node("Constant", [], ["k"], value=weights("", 2))
    inner = branch("inner", constant, node("Add", "x k", "i"))
    other = branch("other", node("Add", "x m", "j"), held=[weights("m", 2)])
    branches = {
        "then_branch": branch("then", node("If", "q", "s", then_branch=inner, else_branch=other)),
        "else_branch": branch("else", node("Add", "x n", "t"), held=[weights("n", 2)]),
    }
    ends = [info("x", 2), flag("q")], [info("y", 2)]
    graph = read_of(tmp_path, [node("If", "q", "y", **branches)], *ends)
    assert graph.operators["Y"].memory == 3 * 2 * 4


def test_a_condition_has_the_work_of_its_dearer_branch(tmp_path):
    """Although the condition alone, which is all that it takes in, is no number to work on."""
    held = [weights("v", 6, 4), weights("k", 6, 4)]
    dear = onnx.helper.make_graph(
        [node("MatMul", "x v", "p"), node("Relu", "p", "d")], "dear", [], [info("d", 3, 4)]
    )
    cheap = onnx.helper.make_graph([node("MatMul", "x k", "c")], "cheap", [], [info("c", 3, 4)])
    ends = [info("x", 3, 6), flag("q")], [info("y", 3, 4)]
    for then, other in ((dear, cheap), (cheap, dear)):
        choice = node("If", "q", "y", then_branch=then, else_branch=other)
        operators = read_of(tmp_path, [choice], *ends, held).operators
        assert operators["Y"].ipt == 2 * 3 * 6 * 4 + 3 * 4


def loop():
    """Loop that multiplies 3 × 6 numbers."""
    nodes = [node("Identity", "go", "on"), node("MatMul", "s w", "t"), node("Relu", "t", "u")]
    number, flag, kept = (
        onnx.helper.make_tensor_value_info(name, kind, [])
        for name, kind in (("i", 7), ("go", 9), ("on", 9))
    )
    ends_of = [number, flag, info("s", 3, 6)], [kept, info("u", 3, 6)]
    return node("Loop", "five yes x", "y", body=onnx.helper.make_graph(nodes, "b", *ends_of))


def scan():
    """Scan over the second of 3 × 6 numbers."""
    nodes = [node("Identity", "s", "u"), node("Exp", "c", "d")]
    ends_of = [info("s", 3), info("c", 3)], [info("u", 3), info("d", 3)]
    body = onnx.helper.make_graph(nodes, "b", *ends_of)
    return node("Scan", "z x", "last y", body=body, num_scan_inputs=1, scan_input_axes=[1])


@pytest.mark.parametrize(("looping", "work"), [(loop(), 2 * 3 * 6 * 6 + 3 * 6), (scan(), 3)])
def test_a_loop_has_the_work_of_one_iteration(looping, work, tmp_path, caplog):
    held = [weights("w", 6, 6), onnx.numpy_helper.from_array(np.array(5), "five")]
    held.append(onnx.numpy_helper.from_array(np.array(True), "yes"))
    with caplog.at_level(logging.WARNING):
        ends = [info("x", 3, 6), info("z", 3)], [info("y", 3, 6)]
        operators = read_of(tmp_path, [looping], *ends, held).operators
    assert operators[looping.name].ipt == work
    assert "1 of 1 loops" in caplog.text


def test_what_has_no_shape_is_told(tmp_path, caplog):
    own = onnx.helper.make_node("Own", ["x"], ["y"], "OWN", domain="mine")
    ends = [info("x", 2)], [onnx.helper.make_empty_tensor_value_info("z")]
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("mine", 1)]
    with caplog.at_level(logging.WARNING):
        graph = read_of(tmp_path, [own, node("Relu", "y", "z")], *ends, opset_imports=opsets)
    assert graph.operators["OWN"].ipt == 2
    assert "2 of 2 tensors" in caplog.text


def test_an_input_without_a_shape_is_refused_and_a_sequence_counts_as_empty(tmp_path, caplog):
    ends = [onnx.helper.make_tensor_value_info("x", FLOAT, None)], [info("y", 2)]
    with pytest.raises(FormatError, match=r"net\.onnx: input 'x'"):
        read_of(tmp_path, [node("Relu", "x", "y")], *ends)
    several = onnx.helper.make_tensor_sequence_value_info("s", FLOAT, [2])
    held = [onnx.numpy_helper.from_array(np.array(0), "i")]
    graph = read_of(tmp_path, [node("SequenceAt", "s i", "y")], [several], [info("y", 2)], held)
    assert graph.operators.name == ("s", "Y")
    assert "1 of 2 tensors" in caplog.text


def test_what_is_no_model_is_refused(tmp_path):
    """No node, no message, and a model that does not say which operators it means."""
    vague = network()
    del vague.opset_import[:]
    for content in (b"", b"\xff\xff", vague):
        refusal_of(tmp_path / "net.onnx", read, tmp_path, content, kind=FormatError)
