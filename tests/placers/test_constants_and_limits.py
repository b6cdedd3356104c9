"""Placers beside constant loads, and where subtasks read only so many tuples/s.

None is better than exact, and exact is what all tries say.
"""

import json
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from placer_cases import all_legal, best_of_all, small_problems
from planning_cases import chain
from streamsim import throughput

from streamplace.model import Cluster, Constraints, Device, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.conditions import read_condition, subject_to
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.anneal.generic import least_devices_by_cpu
from streamplace.placers.registry import PLACERS, Budget

THROUGHPUT = OBJECTIVES["throughput"]


def uneven(seed, sources):
    """Sources of unlike rates, each with an operator of its own that may be a thousand times dear.

    Some operators use CPU at any rate, a few of them more than a device has.
    """
    rng = np.random.default_rng(seed)
    operators, streams = [], []
    for i in range(sources):
        always = float(rng.choice([0, 0, 0, 300, 3000]))
        rate, ipt = float(rng.choice([1e3, 1e4])), float(rng.choice([1e3, 1e5, 1e6]))
        operators += [
            Operator(f"s{i}", ipt=1e3, rate=rate),
            Operator(f"v{i}", ipt=ipt, constant=always),
        ]
        streams.append(Stream(f"s{i}", f"v{i}"))
    if rng.random() < 0.5:
        operators.append(Operator("all", ipt=float(rng.choice([1e3, 1e5]))))
        streams += [Stream(f"v{i}", "all") for i in range(sources)]
    speeds = [2500.0] * 3 if rng.random() < 0.5 else [2500.0, 2500.0, 1000.0]
    devices = [Device(f"d{d}", mips=mips) for d, mips in enumerate(speeds)]
    return Problem(StreamGraph.of("uneven", operators, streams), Cluster.of(devices))


@pytest.mark.parametrize(
    ("name", "share"), [("anneal", 0.85), ("auto", 0.85), ("metis", 0.0), ("pilot", 0.0)]
)
@given(problem=small_problems(is_limited=True))
def test_values_are_those_of_the_model_and_bounds_hold(problem, name, share):
    result = PLACERS[name].place(problem, THROUGHPUT, seed=1, budget=Budget(None, 5_000))
    best, place = best_of_all(problem), result.placement.index[None]
    assert result.value == pytest.approx(throughput(problem.instance, place)[0], rel=1e-9)
    assert share * best <= result.value <= best * (1 + 1e-9)
    assert result.bound is None or result.bound >= best * (1 - 1e-9)


@pytest.mark.parametrize(
    ("operators", "devices", "pin", "best"),
    [
        pytest.param(
            [
                Operator("src", rate=1e3),
                Operator("work", ipt=6e5),
                Operator("half", constant=500),
                Operator("full", constant=1000),
            ],
            [Device("d0", mips=1000), Device("d1", mips=520), Device("d2", mips=1000)],
            {"half": "d0", "full": "d2"},
            520 / 600,
            id="beside 0.5 the work takes 1.2 times as long, on the slower device 1.15 times",
        ),
        pytest.param(
            [Operator("src", ipt=5e5, rate=1e4), Operator("full", constant=5000, parallelism=2)],
            [Device("d0", mips=2500, cores=2), Device("d1", mips=2500, cores=2)],
            {},
            0.5,
            id="a first placement has the peak of the best, and carries nothing",
        ),
    ],
)
def test_exact_is_right_where_a_peak_says_little(operators, devices, pin, best):
    streams = [Stream("src", each.name) for each in operators[1:]]
    graph = StreamGraph.of("fed", operators, streams)
    problem = Problem(graph, Cluster.of(devices), Constraints(pin=pin))
    assert best_of_all(problem) == pytest.approx(best)
    result = PLACERS["exact"].place(problem, THROUGHPUT, seed=1, budget=Budget(None, 200_000))
    assert result.value == pytest.approx(best, rel=1e-9)
    assert result.bound == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize(
    ("ipt", "constant", "rules", "by_cpu"),
    [(1e5, 1250, Constraints(), 3), (1e3, 0, Constraints(exlocate=[{"v0", "v1", "v2"}]), 1)],
    ids=["0.4 and 0.5 at any rate", "apart by a rule"],
)
def test_the_fewest_devices_that_carry_a_rate(ipt, constant, rules, by_cpu):
    """One for each of three operators."""
    operators = [Operator(f"v{i}", ipt, constant=constant, rate=1e4 * (i == 0)) for i in range(3)]
    problem = Problem(chain(*operators), Cluster.uniform(5), rules)
    assert least_devices_by_cpu(problem, 1.0) == by_cpu
    judge = subject_to(OBJECTIVES["devices"], [read_condition("throughput>=1")])
    result = PLACERS["anneal"].place(problem, judge, seed=1, budget=Budget(None, 20_000))
    assert result.value == result.bound == 3


@pytest.mark.parametrize("sources", [1, 2, 3])
@pytest.mark.parametrize("seed", range(30))
def test_no_placement_uses_fewer_devices_than_is_proven(seed, sources):
    """The throughput is a mean, in which cheap sources may make up for dear ones."""
    problem = uneven(seed, sources)
    places = all_legal(problem)
    rates = throughput(problem.instance, places)
    used = np.array([len(set(place)) for place in places.tolist()])
    for limit in (0.05, 0.3, 0.5, 0.7, 0.9, 1.0):
        reached = used[rates >= limit]
        if len(reached):
            assert least_devices_by_cpu(problem, limit) <= reached.min()


def test_metis_weighs_what_is_used_at_any_rate():
    """Four operators; two of them use most of a device before any tuple comes."""
    constants = [0.0, 1800.0, 1800.0, 0.0]
    operators = [
        Operator(f"v{i}", ipt=2e4, constant=mips, rate=1e4 * (i == 0))
        for i, mips in enumerate(constants)
    ]
    problem = Problem(chain(*operators), Cluster.uniform(2))
    result = PLACERS["metis"].place(problem, THROUGHPUT, seed=1, budget=Budget(None, 100))
    assert result.placement["v1"] != result.placement["v2"]
    assert result.value == 1.0


def test_coarse_levels_keep_the_limit_of_each_operator():
    """Thousands of operators in groups; the one that waits limits, and the others do not."""
    n = 600
    operators = [
        Operator(f"v{i}", ipt=100, payload=1, rate=1e3 * (i == 0), max_rate=500.0 * (i == n // 2))
        for i in range(n)
    ]
    problem = Problem(chain(*operators), Cluster.uniform(4))
    result = PLACERS["anneal"].place(problem, THROUGHPUT, seed=1, budget=Budget(None, 20_000))
    assert result.value == result.bound == pytest.approx(0.5)


@given(st.data())
@settings(max_examples=60)
def test_whatever_numbers_come_in_values_and_bounds_are_finite(data):
    """Of all sizes that are accepted; a NaN passes no comparison of these."""
    some = partial(st.sampled_from, [0.0, 1e-12, 1.0, 500.0, 1e5, 1e9, 1e15])
    fires = data.draw(st.sampled_from(["each", "all"]))
    sources = [
        Operator(name, rate=1e3, ipt=data.draw(some()), payload=data.draw(some()),
                 constant=data.draw(some()))
        for name in "ab"
    ]  # fmt: skip
    join = Operator("join", ipt=data.draw(some()), constant=data.draw(some()), fires=fires)
    graph = StreamGraph.of("g", [*sources, join], [Stream("a", "join"), Stream("b", "join")])
    problem = Problem(graph, Cluster.uniform(2))
    for name in ("anneal", "exact", "auto"):
        result = PLACERS[name].place(problem, THROUGHPUT, budget=Budget(None, 100))
        best = best_of_all(problem)
        assert 0 <= result.value <= best * (1 + 1e-9)
        assert result.bound is None or best * (1 - 1e-9) <= result.bound < 2
        json.dumps(result.to_json(), allow_nan=False)
