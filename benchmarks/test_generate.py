"""Speed of generating graphs."""

from streamplace.families.branched import Branched, branched
from streamplace.families.random_dag import RandomDag, random_dag


def test_branched(benchmark):
    """All 3,150 graphs of the standard benchmark."""
    assert len(benchmark.pedantic(lambda: list(branched(Branched(), 0)), rounds=3)) == 3150


def test_random_dag_of_a_million_operators(benchmark):
    """One graph of 1,000,000 operators and 2,000,000 streams."""
    parameters = RandomDag(operators=1_000_000, streams=2_000_000)
    graph = benchmark.pedantic(lambda: next(random_dag(parameters, 0)), rounds=1, warmup_rounds=0)
    assert graph.n_streams == 2_000_000
