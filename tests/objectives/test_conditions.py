"""Conditions: the best by one objective among what reaches something by others."""

import time

import numpy as np
import pytest
from problems import chain

from streamplace.api import place
from streamplace.errors import PlacementError, StreamplaceError
from streamplace.model import Cluster, Problem
from streamplace.objectives.conditions import BEYOND, read_condition, subject_to
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import stopwatch

PROBLEM = Problem(chain(3), Cluster.uniform(3))  # 40 % of a device each


@pytest.mark.parametrize(
    ("text", "limit"),
    [("throughput >= 99%", 0.99), ("latency<=20ms", 0.02), ("makespan:network=sender<=5s", 5.0)],
)
def test_conditions_are_read_as_people_write_them(text, limit):
    assert read_condition(text).limit == pytest.approx(limit)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("throughput", "throughput"),
        ("speed>=1", "'speed'"),
        ("throughput>=fast", "fast"),
        ("throughput>=nan", "nan"),
        ("latency<=20parsec", "parsec"),
    ],
)
def test_what_is_no_condition_is_refused_in_one_line(text, place):
    with pytest.raises(StreamplaceError, match=rf"\A[^\n]*{place}[^\n]*\Z"):
        read_condition(text)


def test_objectives_of_different_limits_have_different_names():
    """Saved results are found by the name, which says the whole limit."""
    names = [f"throughput>={limit}" for limit in ("0.99", "0.9999996", "1")]
    assert [read_condition(name).text for name in names] == names


def test_what_misses_a_condition_is_worse_than_all_that_meets_it_and_by_how_much():
    """Three operators of 60 % on one device, on two, and on three, which alone carry them."""
    busy = chain(3).at_rate(chain(3).source_rate * 1.5)
    problem = Problem(busy, Cluster.uniform(3, bandwidth="100 Gbps"))
    fewest = subject_to(OBJECTIVES["devices"], [read_condition("throughput>=1")])
    batch = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 2]], np.int32)
    one, two, three = fewest.values(problem, batch).tolist()
    assert one > two > BEYOND > three == 3


@pytest.mark.parametrize("placer", ["auto", "anneal"])
def test_a_condition_is_met_within_milliseconds_of_work(placer, monkeypatch):
    """However busy the machine: time of others does not count."""
    monkeypatch.setattr(stopwatch, "clock", time.process_time)
    graph = chain(9).at_rate(chain(9).source_rate * 0.5)
    cluster = Cluster.uniform(5, bandwidth="100 Gbps")
    needs = {"objective": "devices", "require": ["throughput>=1"]}
    result = place(graph, cluster, placer=placer, budget=0.02, **needs)
    assert result.value < 5


@pytest.mark.parametrize(
    ("asked", "condition", "complaint"),
    [
        ({"objective": "devices"}, "throughput>=1.2", r"throughput .*100\.0 %"),
        ({"placer": "single"}, "throughput>=0.9", r"throughput 83\.3 %"),
        ({"placer": "single"}, "throughput>=0.8334", r"throughput 0\.833333\d*, 0\.8334 required"),
        ({}, "devices<=0.5", "devices is 1 device"),
        ({"placer": "single"}, "latency<=1us", "latency"),
    ],
)
def test_a_condition_that_was_not_met_is_told_with_what_can_be_had(asked, condition, complaint):
    with pytest.raises(PlacementError, match=complaint):
        place(PROBLEM, **asked, require=[condition])


def test_a_limit_of_zero_guides_a_search_without_numbers_beyond_all():
    """The shortfall of 0.12 ms and more is counted in seconds."""
    judge = subject_to(OBJECTIVES["devices"], [read_condition("latency<=0s")])
    with np.errstate(over="raise"):
        values = judge.values(PROBLEM, np.array([[0, 0, 0], [0, 1, 2]], np.int32))
    assert BEYOND < values[0] < values[1] < 2 * BEYOND
