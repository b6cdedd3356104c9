"""What a plan gains at its cost: fewer subtasks, and contents that carry most."""

import pytest
from planning_cases import chain

import streamplace
from streamplace import Offer, Operator, StreamGraph
from streamplace.placers.registry import Budget

RATE = 1000.0


def pipeline(*cores: float, most: int = 0) -> StreamGraph:
    """Operators that fill so many cores of 1000 MIPS, each behind a hash."""
    operators = [
        Operator(f"v{i}", ipt=1e6 * share, rate=0 if i else RATE, max_parallelism=most)
        for i, share in enumerate(cores)
    ]
    return chain(*operators, kind="hash")


def test_operators_that_fit_whole_are_not_split() -> None:
    """Two machines carry 0.85 + 0.85 + 0.2 cores only if the last operator, and it alone, splits.

    All operators with two subtasks would do as well, and are tried first.
    """
    offers = [Offer("one", 1.0, cores=1, mips=1000)]
    graph = pipeline(0.85, 0.85, 0.2)
    result = streamplace.plan(graph, rate=RATE, offers=offers, budget=Budget(None, 10**6))
    assert result.cost == 2
    assert result.parallelism == {"v0": 1, "v1": 1, "v2": 2}


def test_machines_are_filled_evenly() -> None:
    """Of 0.4 + 0.4 + 0.2 + 0.2 cores, first fit puts 1.0 on one machine."""
    offers = [Offer("one", 1.0, cores=1, mips=1000)]
    graph = pipeline(0.4, 0.4, 0.2, 0.2, most=1)
    result = streamplace.plan(graph, rate=RATE, offers=offers, budget=Budget(None, 10**6))
    assert result.cost == 2
    assert result.carries == pytest.approx(RATE / 0.6)
