"""OpenVINO models."""

import logging

import numpy as np
import pytest
from fuzz.targets import SEEDS
from refusals import refusal_of

from streamplace.errors import FormatError
from streamplace.io.registry import FORMATS

openvino = pytest.importorskip("openvino")
ops = pytest.importorskip("openvino.opset13")

INPUTS: dict[str, list[int]] = {"any": [-1, 3], "known": [8, 3], "one": []}


def read(path):
    """Graph that is read from a file."""
    (graph,) = FORMATS["openvino"].read(path)
    return graph


def saved(folder, shape):
    """A convolution, a rectifier, and two halves that are added, compressed as usual."""
    x = ops.parameter(shape, np.float32, "x")
    x.set_friendly_name("x")
    kernel = ops.constant(np.full((4, 3, 3, 3), 0.1, np.float32), name="kernel")
    found = ops.convolution(x, kernel, [1, 1], [1, 1], [1, 1], [1, 1], name="conv")
    halves = ops.split(ops.relu(found, name="relu"), ops.constant(1, name="axis"), 2, name="halves")
    total = ops.add(halves.output(0), halves.output(1), name="sum")
    model = openvino.Model([ops.result(total, name="out")], [x], "net")
    openvino.save_model(model, folder / "net.xml")
    return folder / "net.xml"


def test_every_operation_counts_and_its_work_comes_from_shapes(tmp_path):
    """Constants count too, and cost memory alone; halves carry what they hold.

    As in the graphs that HSDAG places: a weight, and its conversion from half precision.
    """
    graph = read(saved(tmp_path, [1, 3, 8, 8]))
    assert sorted(graph.operators.kind) == [
        *("Add", "Constant", "Constant", "Convert", "Convolution"),
        *("Parameter", "Relu", "Result", "Split"),
    ]
    assert graph.n_streams == 9 - 1  # both halves in one
    operators = graph.operators
    assert operators["conv"].ipt == 2 * (4 * 8 * 8) * (3 * 3 * 3)
    assert operators["sum"].ipt == 2 * 8 * 8
    assert {o.name for o in operators if o.ipt} == {"conv", "relu", "halves", "sum"}
    kernel = [o for o in operators if o.kind == "Constant" and o.memory > 100]
    assert [o.memory for o in kernel] == [2 * 4 * 27]
    assert [s.payload for s in graph.streams if s.source == "halves"] == [4 * 4 * 8 * 8]


def test_pools_count_no_indices_and_small_types_share_bytes(tmp_path):
    """Pooling returns the positions of what it takes; eight numbers of four bits are four bytes."""
    x = ops.parameter([1, 2, 4, 4], np.float32, "x")
    pooled = ops.max_pool(x, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2], name="pool").output(0)
    packed = openvino.Tensor(np.zeros(4, np.uint8), [2, 2, 2], openvino.Type.u4)
    weight = ops.convert(openvino.op.Constant(packed), "f32", name="weight")
    model = openvino.Model([ops.result(ops.multiply(pooled, weight, name="y"))], [x], "net")
    openvino.save_model(model, tmp_path / "net.xml", compress_to_fp16=False)
    operators = read(tmp_path / "net.xml").operators
    assert operators["pool"].ipt == 2 * 2 * 2 * 4
    assert [o.memory for o in operators if o.kind == "Constant"] == [4]


def test_inner_graphs_are_told_missing(tmp_path, caplog):
    x, flag = ops.parameter([2, 3], np.float32, "x"), ops.parameter([], np.bool_, "flag")
    choice = ops.if_op(flag)
    ends = []
    for kind in (ops.exp, ops.sin):
        inner = ops.parameter([2, 3], np.float32)
        made = ops.result(kind(inner))
        ends.append((openvino.Model([made], [inner]), inner, made))
    (then, then_in, then_out), (other, other_in, other_out) = ends
    choice.set_then_body(then)
    choice.set_else_body(other)
    choice.set_input(x.output(0), then_in, other_in)
    made = choice.set_output(then_out, other_out)
    choice.set_friendly_name("choice")
    openvino.save_model(openvino.Model([ops.result(made)], [x, flag]), tmp_path / "net.xml")
    with caplog.at_level(logging.WARNING):
        assert "If" in read(tmp_path / "net.xml").operators.kind
    assert "1 of 4 operations" in caplog.text


def test_a_batch_of_any_size_is_one(tmp_path):
    assert read(saved(tmp_path, [-1, 3, 8, 8])) == read(saved(tmp_path, [1, 3, 8, 8]))
    with pytest.raises(FormatError, match=r"net.xml: .*\[1,3,\?,8\]"):
        read(saved(tmp_path, [1, 3, -1, 8]))


def test_a_batch_of_known_size_stays_beside_one_of_any_size(tmp_path):
    inputs = [ops.parameter(shape, np.float32, name) for name, shape in INPUTS.items()]
    for one, name in zip(inputs, INPUTS, strict=True):
        one.set_friendly_name(name)
    model = openvino.Model([ops.result(ops.relu(one)) for one in inputs], inputs, "net")
    openvino.save_model(model, tmp_path / "net.xml")
    operators = read(tmp_path / "net.xml").operators
    assert {name: operators[name].payload for name in INPUTS} == {"any": 12, "known": 96, "one": 4}


def test_chains_stay_together_on_request(tmp_path):
    """As HSDAG coarsens its graphs: a weight with its conversion, what follows one another."""
    (draft,) = FORMATS["openvino"].with_options(["chains"]).read(saved(tmp_path, [1, 3, 8, 8]))
    kinds = {o.name: o.kind for o in draft.graph.operators}
    groups = [{kinds[name] for name in group} for group in draft.constraints.colocate]
    assert {"Constant", "Convert"} in groups
    assert {"Convolution", "Relu"} in groups
    assert draft.graph == read(tmp_path / "net.xml")


def test_onnx_is_read_too(tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes((SEEDS / "onnx.onnx").read_bytes())
    kinds = read(path).operators.kind
    assert {"Convolution", "MaxPool", "MatMul"} <= set(kinds)


@pytest.mark.parametrize(("name", "content"), [("net.xml", b"<net>"), ("other.txt", b"")])
def test_what_is_no_model_is_refused(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    refusal_of(tmp_path / name, read, tmp_path / name, kind=FormatError)
