"""Speed of graphs: to generate, compile and expand large ones, and to read a data set."""

import tracemalloc

import numpy as np
import pytest

from streamplace import expand
from streamplace.families.branched import Branched, branched
from streamplace.families.random_dag import RandomDag, random_dag
from streamplace.io.graphs import read_graphs, write_graphs
from streamplace.model import Cluster, Operator, Operators, Problem, Stream, StreamGraph, Streams

OPERATORS, STREAMS, GRAPHS = 1_000_000, 2_000_000, 1_000


@pytest.fixture(scope="module")
def columns():
    """Names, instructions, rates and random forward streams, two into every operator."""
    rng = np.random.default_rng(0)
    target = np.concatenate([np.repeat(np.arange(1, OPERATORS), 2), [OPERATORS - 1] * 2])
    source = (rng.random(STREAMS) * target).astype(np.int32)
    rate = np.zeros(OPERATORS)
    rate[0] = 1e4
    return [f"v{i}" for i in range(OPERATORS)], rng.random(OPERATORS) * 1e4, rate, source, target


def compile_problem(names, ipt, rate, source, target):
    """From columns to the arrays that simulators and placers share."""
    operators = Operators(names, ipt=ipt, payload=ipt, rate=rate)
    streams = Streams(operators, source, target, selectivity=np.full(len(source), 0.4))
    return Problem(StreamGraph("large", operators, streams), Cluster.uniform(8))


def test_a_million_operators_are_compiled_in_ten_seconds(benchmark, columns):
    """Two million streams, on one core, in two gigabytes."""
    problem = benchmark.pedantic(compile_problem, columns, rounds=3, warmup_rounds=1)
    assert problem.instance.n_streams == STREAMS
    assert benchmark.stats["max"] < 10
    tracemalloc.start()
    try:
        compile_problem(*columns)
        assert tracemalloc.get_traced_memory()[1] < 2 * 2**30
    finally:
        tracemalloc.stop()


def test_a_hundred_thousand_subtasks_are_expanded(benchmark):
    """A pipeline of a source and two operators of 50,000 subtasks."""
    operators = [Operator("src", rate=1), *(Operator(n, parallelism=50_000) for n in "ab")]
    graph = StreamGraph.of("wide", operators, [Stream("src", "a"), Stream("a", "b")])
    assert benchmark(expand, graph).graph.n_operators == 100_001


@pytest.mark.parametrize("name", ["set.jsonl", "set.jsonl.gz"])
def test_a_data_set_is_read(benchmark, tmp_path, name):
    """A thousand graphs of twenty operators."""
    stages = [Operator(f"v{i}", ipt=i * 1.7, payload=i * 3.1) for i in range(1, 20)]
    streams = [Stream(f"v{i}", f"v{i + 1}", 0.9) for i in range(19)]
    graph = StreamGraph.of("chain", [Operator("v0", rate=1e4), *stages], streams)
    write_graphs([graph] * GRAPHS, tmp_path / name)
    assert len(benchmark(lambda: list(read_graphs(tmp_path / name)))) == GRAPHS


def test_the_standard_benchmark_is_generated(benchmark):
    """All 3,150 graphs of the standard benchmark."""
    assert len(benchmark.pedantic(lambda: list(branched(Branched(), 0)), rounds=3)) == 3150


def test_a_million_operators_are_generated(benchmark):
    """One graph of 1,000,000 operators and 2,000,000 streams."""
    parameters = RandomDag(operators=1_000_000, streams=2_000_000)
    graph = benchmark.pedantic(lambda: next(random_dag(parameters, 0)), rounds=1, warmup_rounds=0)
    assert graph.n_streams == 2_000_000
