"""What a placer says of its placement is judged anew before it is returned."""

import logging
from dataclasses import replace
from math import inf, nan
from unittest.mock import MagicMock

import numpy as np
import pytest

from streamplace import Operator, Problem, Stream, StreamGraph
from streamplace.model import Cluster
from streamplace.objectives.registry import named_objective
from streamplace.placers.registry import PLACERS, Found, Placer
from streamplace.placers.result import verdict

HALF = StreamGraph.of(
    "half", [Operator("a", ipt=2.5e5, rate=1e4), Operator("b", ipt=2.5e5)], [Stream("a", "b")]
)


def placer_that_says(**said):
    """Return a placer that puts everything on one device, where half of the rate is carried."""

    def place(problem, objective, *, seed, budget):
        return Found(problem.placement(np.zeros(problem.n_operators, np.int32)), **said)

    return Placer("says", "", place)


def test_a_wrong_value_is_replaced(caplog):
    result = placer_that_says(value=0.9).place(_problem(), named_objective("throughput"))
    assert result.value == pytest.approx(0.5)
    assert [each.levelno for each in caplog.records] == [logging.ERROR]


@pytest.mark.parametrize("bound", [0.4, nan, inf])
def test_refuted_bounds_are_dropped(bound, caplog):
    """So is one that is no number, as no comparison refutes it."""
    result = placer_that_says(bound=bound).place(_problem(), named_objective("throughput"))
    assert (result.value, result.bound) == (pytest.approx(0.5), None)
    assert not result.proven
    assert [each.levelno for each in caplog.records] == [logging.ERROR]


def test_what_is_right_stays(caplog):
    """Rounding is no defect."""
    says = placer_that_says(value=0.5 + 1e-9, bound=0.5 - 1e-9)
    result = says.place(_problem(), named_objective("throughput"))
    assert result.proven
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


@pytest.mark.parametrize(
    ("value", "bound", "words"),
    [
        (0.99996, 1.0, "at least 99.9 % of the best possible"),
        (0.973, 1.0, "at least 97.3 % of the best possible"),
        (1.00004, 1.0, "at most 0.1 % above the best possible"),
        (1.028, 1.0, "at most 2.8 % above the best possible"),
        (1.0, 1.0, "the best possible, proven"),
    ],
)
def test_the_distance_is_rounded_to_the_safe_side(value, bound, words):
    """What is not proven is not told to be all of the best possible, nor 0 % above it."""
    assert verdict(value, bound, MagicMock(verdict="here")) == f"{words}; here"


def test_a_placement_is_evaluated_once_where_its_search_says_no_value():
    makespan = named_objective("makespan")
    evaluate = MagicMock(side_effect=makespan.evaluate)
    result = PLACERS["round-robin"].place(_problem(), replace(makespan, evaluate=evaluate))
    assert evaluate.call_count == 1
    assert result.value == makespan.value(_problem(), result.placement)


def _problem():
    return Problem(HALF, Cluster.uniform(2))
