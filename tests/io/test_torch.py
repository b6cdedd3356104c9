"""PyTorch models."""

from pathlib import Path

import pytest
from networks import NAMES, imported, inputs_of
from refusals import refusal_of

from streamplace.errors import FormatError
from streamplace.io.modules import blocks_of
from streamplace.io.registry import FORMATS


def test_an_operator_is_an_operation_in_its_module():
    """With its floating-point operations, bytes, and the bytes of its weights."""
    operators = imported("perceptron").operators
    assert operators.name == ("input", "0/linear", "1/relu", "2/linear_1")
    assert operators.kind == ("input", "linear", "relu", "linear")
    assert operators.ipt.tolist() == [0, 2 * 3 * 6 * 16, 3 * 16, 2 * 3 * 16 * 4]
    assert operators.payload.tolist() == [4 * 3 * 6, 4 * 3 * 16, 4 * 3 * 16, 4 * 3 * 4]
    assert operators.memory.tolist() == [0, 4 * (6 * 16 + 16), 0, 4 * (16 * 4 + 4)]
    assert imported("perceptron").attributes["torch"] == "networks:perceptron"


@pytest.mark.parametrize("name", NAMES)
def test_all_weights_that_are_used_are_memory_once(name):
    """Whoever uses them first; a counter of training steps and a spare layer are not used."""
    state = inputs_of(name)[0].state_dict()
    used = [t for key, t in state.items() if "num_batches" not in key and "spare" not in key]
    assert imported(name).operators.memory.sum() == sum(t.nbytes for t in used)


def test_streams_carry_the_results_that_are_used():
    """One of two halves, not both; the order of what was sorted goes nowhere."""
    graph = imported("mixed")
    carried = {
        (s.source, s.target): s.payload or graph.operators[s.source].payload for s in graph.streams
    }
    assert carried["split", "add"] == 2 * 5 * 4 * 4
    assert carried["split", "cat"] == 2 * 5 * 4 * 4
    assert carried["sort/sort", "attention/transpose"] == 2 * 5 * 8 * 4


def test_attention_is_counted_whatever_computes_it():
    """Scores and sums, two products of 5 × 4 × 5 for 2 heads of 2 sequences."""
    operators = imported("mixed").operators
    assert operators["attention/scaled_dot_product_attention"].ipt == 2 * (2 * 5 * 4 * 5) * 4


def test_what_computes_nothing_is_no_operator():
    assert not [kind for kind in imported("language").operators.kind if "assert" in kind]


def test_measured_operators_have_work():
    """Seconds on this machine, as instructions for one of 2500 MIPS."""
    measured = FORMATS["torch"].with_options(["measure"])
    (graph,) = measured.read(Path("networks:residual"))
    assert graph.operators.name == imported("residual").operators.name
    assert (graph.operators.ipt[1:] > 0).all()
    assert graph.operators.ipt.max() < 60 * 2500e6


def test_blocks_are_colocated_on_request():
    """A residual block is one; layers between which nothing is computed are free."""
    (draft,) = FORMATS["torch"].with_options(["blocks"]).read(Path("networks:residual"))
    groups = [set(group) for group in draft.constraints.colocate]
    block = {name for name in draft.graph.operators.name if name.startswith("stages.0")}
    assert block in groups
    assert not any("stem/conv2d" in group for group in groups)
    assert not any("head/linear" in group for group in groups)


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("networks", ""),
        ("../x.py:f", ""),
        ("no_such_module:f", "the folder that holds no_such_module"),
        ("networks:nothing", "'str'"),
        ("networks:broken", "RuntimeError: "),
    ],
)
def test_what_is_no_model_is_told_in_one_line(source, place):
    def read():
        list(FORMATS["torch"].read(Path(source)))

    assert place in refusal_of(source, read, kind=FormatError)


def test_a_model_of_the_working_folder_becomes_a_problem(run, tmp_path):
    (tmp_path / "own_model.py").write_text("from networks import residual\n")
    answer = run("import", "torch", "own_model:residual", "--blocks", "-o", "g.json")
    assert (answer.status, answer.err) == (0, "1 graph → g.json\n")
    assert run("place", "g.json", "--devices", "2", "--evaluations", "100").status == 0


def test_a_module_around_blocks_is_none():
    """Its own code joins what is computed inside; layers that join what comes in are blocks."""
    groups = [set(group) for group in blocks_of(imported("language"))]
    assert {"trunk.words/embedding", "trunk.places/embedding_1", "trunk/add"} in groups
    layers = [group for group in groups if any("layers" in name for name in group)]
    assert [len(group) for group in layers] == [6, 6, 6]
