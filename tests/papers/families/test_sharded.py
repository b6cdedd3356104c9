"""Sharded tensor programs, and the families that are made of them."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.errors import SettingError, UnitError
from streamplace.families.registry import FAMILIES
from streamplace.objectives.registry import OBJECTIVES
from streamplace.papers.families.ffnn import Ffnn
from streamplace.papers.families.llama import Llama
from streamplace.papers.families.sharded import Gpus, TensorLabel, TensorProgram
from streamplace.papers.families.tasks import ELEMENT_BYTES

PAPER = {"chainmm": 112, "ffnn": 192, "llama-block": 215, "llama-layer": 215}
"""Nodes of the graphs of the paper, which gives one number for both of Llama's."""


def problem_of(name, **values):
    """The only problem of a family."""
    (problem,) = FAMILIES[name].generate(FAMILIES[name].parameters(**values))
    return problem


@pytest.mark.parametrize("name", PAPER)
def test_default_programs_are_of_the_paper_s_size(name):
    """Within 5 %, on four GPUs."""
    problem = problem_of(name)
    assert problem.n_operators == pytest.approx(PAPER[name], rel=0.05)
    assert problem.n_devices == 4


def test_chainmm_has_the_paper_s_nodes_with_and_without_inputs():
    kinds = Counter(problem_of("chainmm").graph.operators.kind)
    assert kinds.total() == 112
    assert kinds.total() - kinds["input"] == 76


@pytest.mark.parametrize("name", PAPER)
def test_inputs_may_be_available_everywhere(name):
    """As in Algorithm 1 of the paper: nothing waits for them, in whatever order devices run."""
    usual, everywhere = (problem_of(name, inputs_everywhere=e).graph for e in (False, True))
    computed = [task for task in usual.operators if task.kind != "input"]
    assert everywhere.operators.name == tuple(task.name for task in computed)
    assert everywhere.operators.ipt.sum() == usual.operators.ipt.sum()
    ends = {(s.source, s.target) for s in usual.streams if s.source in everywhere}
    assert ends == {(s.source, s.target) for s in everywhere.streams}


def test_one_gpu_takes_as_long_for_chainmm_as_the_paper_s():
    """440 ms."""
    problem = problem_of("chainmm", devices=1)
    alone = problem.placement(np.zeros(problem.n_operators, int))
    assert OBJECTIVES["makespan"].value(problem, alone) == pytest.approx(0.440, rel=0.005)


@given(*[st.integers(1, 4)] * 3)
def test_cuts_change_neither_the_flops_nor_the_bytes_of_a_product(i, j, k):
    """Whether or not they divide the sizes; partial results are added up besides."""
    program = TensorProgram(
        {"i": TensorLabel(6, i), "j": TensorLabel(7, j), "k": TensorLabel(9, k)}
    )
    a, b = program.input("A", "ik"), program.input("B", "kj")
    program.einsum("AB", "ik,kj->ij", a, b)
    operators = program.graph("mm", {}).operators
    of = {kind: [x == kind for x in operators.kind] for kind in ("matmul", "sum reduction")}
    assert len(operators) == i * k + k * j + i * j * k + (i * j if k > 1 else 0)
    assert operators.ipt[of["matmul"]].sum() == 2 * 6 * 7 * 9
    assert operators.payload[of["matmul"]].sum() == k * 6 * 7 * ELEMENT_BYTES
    assert operators.ipt[of["sum reduction"]].sum() == (k - 1) * 6 * 7
    assert (
        operators.memory[[x == "input" for x in operators.kind]].sum()
        == ELEMENT_BYTES * (6 + 7) * 9
    )


def test_every_shard_reads_the_blocks_that_it_needs():
    program = TensorProgram({"i": TensorLabel(4, 2), "j": TensorLabel(4), "k": TensorLabel(4, 2)})
    a, b = program.input("A", "ik"), program.input("B", "kj")
    product = program.einsum("AB", "ik,kj->ij", a, b)
    program.einsum("square", "ij,ij->i", product, product)
    streams = program.graph("mm", {}).streams
    assert " ".join(map(streams.label, range(len(streams)))) == (
        "A/0.0→AB/0.0.0 B/0.0→AB/0.0.0 A/0.1→AB/0.0.1 B/1.0→AB/0.0.1 "
        "A/1.0→AB/1.0.0 B/0.0→AB/1.0.0 A/1.1→AB/1.0.1 B/1.0→AB/1.0.1 "
        "AB/0.0.0→AB/sum/0.0 AB/0.0.1→AB/sum/0.0 AB/1.0.0→AB/sum/1.0 AB/1.0.1→AB/sum/1.0 "
        "AB/sum/0.0→AB/form/0.0 AB/sum/1.0→AB/form/1.0 AB/form/0.0→square/0.0 "
        "AB/form/1.0→square/1.0"
    )


def test_blocks_are_cut_and_joined_anew_where_labels_are_cut_otherwise():
    """Three pieces of four elements each become two of six."""
    program = TensorProgram({"s": TensorLabel(12, 3), "t": TensorLabel(12, 2)})
    program.select("anew", "t", program.input("x", "s"))
    streams = program.graph("any", {}).streams
    pairs = list(zip(streams.source.tolist(), streams.target.tolist(), strict=True))
    assert pairs == [(0, 3), (1, 3), (1, 4), (2, 4)]


def test_a_block_of_llama_has_the_flops_of_its_products():
    """Four projections, three of the feed-forward network, scores and attention."""
    operators = problem_of("llama-block").graph.operators
    products = operators.ipt[[kind == "matmul" for kind in operators.kind]].sum()
    s, d, f = 4096, 4096, 11_008
    assert products == 2 * s * (4 * d * d + 3 * d * f + 2 * s * d)


@pytest.mark.parametrize("name", PAPER)
def test_meta_ops_come_one_after_the_other(name):
    """No task reads what a later one makes, so rows are in topological order."""
    streams = problem_of(name).graph.streams
    assert (streams.source < streams.target).all()
    assert np.isnan(streams.payload).all()  # one output, however many read it


def test_more_shards_than_rows_are_refused():
    with pytest.raises(SettingError, match=r"of 3 .*4 pieces"):
        problem_of("chainmm", size=3, shards=2)


@pytest.mark.parametrize(
    ("kind", "values", "error", "message"),
    [
        (Llama, {"heads": 31}, SettingError, "heads is 31"),
        (Ffnn, {"memory": "much"}, UnitError, "much"),
        (Gpus, {"bandwidth": "16 bars"}, UnitError, "16 bars"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(kind, values, error, message):
    with pytest.raises(error, match=message):
        kind(**values)
