"""Passes that are one short pass after the other, proven and searched stage by stage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from makespan_cases import MAKESPAN, least_of_all, value

from streamplace.model import Cluster, Constraints, Device, Operator, Problem, Stream, StreamGraph
from streamplace.placers.anneal.makespan import plan_of, with_priorities
from streamplace.placers.exact.makespan import prove_stages, stages_of
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget
from streamplace.scheduling.ranks import by_rank, upward
from streamplace.scheduling.stages import Stages
from streamplace.scheduling.tasks import tasks_of

TWO_FORKS = [(0, 2), (1, 2), (2, 3), (2, 4), (3, 5), (4, 5)]


def row_of_forks(count, width=4, **rules):
    """Forks and joins, one after the other, on three uneven devices."""
    block = width + 1
    pairs = [
        pair
        for first in range(0, count * block, block)
        for branch in range(first + 1, first + block)
        for pair in ((first, branch), (branch, first + block))
    ]
    return _problem(count * block + 1, pairs, count, **rules)


def _problem(n, pairs, seed=0, **rules):
    rng = np.random.default_rng(seed)
    tasks = [Operator(f"v{i}", ipt=float(rng.integers(5, 20)) * 1e6) for i in range(n)]
    streams = [
        Stream(f"v{a}", f"v{b}", payload=float(rng.integers(1, 40))) for a, b in sorted(pairs)
    ]
    graph = StreamGraph.of("row", tasks, streams, fires="all")
    devices = [Device(f"d{i}", mips=mips) for i, mips in enumerate((2, 3, 4))]
    return Problem(graph, Cluster.of(devices, bandwidth=80), Constraints(**rules))  # type: ignore[arg-type]


def known_by_stages(problem, evaluations=200_000):
    """What a proof by stages alone says: a bound, and the best of its schedules."""
    tasks = tasks_of(problem)
    stages = stages_of(tasks)
    start = plan_of(tasks, by_rank(tasks, upward(tasks)), problem.repaired(np.zeros(tasks.n_tasks)))
    meter = Meter(Budget(None, evaluations), 1)
    least, plans = prove_stages(tasks, stages, problem.interchangeable, start, 0, meter, 1)
    return least, min(MAKESPAN.value(problem, with_priorities(problem, p)) for p in plans)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), rules=st.sampled_from(["", "together", "pinned"]))
def test_a_proof_by_stages_is_what_trying_all_finds(seed, rules):
    rules_of = {"together": {"colocate": [["v3", "v4"]]}, "pinned": {"pin": {"v2": "d0"}}}
    problem = _problem(6, TWO_FORKS, seed, **rules_of.get(rules, {}))
    least, found = known_by_stages(problem)
    assert found == pytest.approx(least, rel=1e-6)
    assert found == pytest.approx(least_of_all(problem), rel=1e-6)


PAST_V3 = [(0, 1), (0, 2), (1, 3), (2, 3), (1, 4), (3, 4), (4, 5), (5, 6), (6, 7)]
TWO_ENDS = [(0, 1), (0, 2), (1, 3), (2, 4)]


@pytest.mark.parametrize(
    ("problem", "found"),
    [
        pytest.param(row_of_forks(4), [1, 5, 5, 5, 5], id="every join ends a stage"),
        pytest.param(_problem(8, PAST_V3), [1, 4, 1, 1, 1], id="a stream leads past a task"),
        pytest.param(_problem(5, TWO_ENDS), [], id="two ends"),
        pytest.param(row_of_forks(4, colocate=[["v1", "v6"]]), [1, 10, 5, 5], id="together"),
        pytest.param(
            row_of_forks(4, colocate=[["v1", "v5", "v6"]]),
            [1, 5, 5, 5, 5],
            id="together with the cut task between them",
        ),
        pytest.param(row_of_forks(4, exlocate=[["v1", "v2"]]), [], id="rules about the whole"),
    ],
)
def test_a_pass_splits_at_tasks_that_all_leads_through(problem, found):
    """Tasks of every stage but the cut task that it begins with; none where there are no stages."""
    stages = Stages.of(tasks_of(problem), 100)
    assert [len(s.rows) - s.begins for s in ([] if stages is None else stages.stages)] == found


@pytest.mark.slow
def test_long_rows_are_proven():
    """Two hundred tasks, of which no solver proves anything at once."""
    problem = row_of_forks(40)
    result = PLACERS["auto"].place(problem, MAKESPAN, budget=Budget(None, 400_000))
    assert result.bound == pytest.approx(result.value, rel=1e-6)
    assert result.value < value("heft", problem)


def test_what_has_time_to_spare_does_not_stand_in_the_way():
    """Weights that are there at once, a mask for all, and a side output: proven all the same."""
    row = row_of_forks(12)
    graph, n = row.graph, row.n_operators
    tasks = [*graph.operators, *(Operator(f"w{i}", ipt=0) for i in range(12))]
    tasks += [Operator("mask", ipt=1e6), Operator("side", ipt=1e6)]
    streams = [*graph.streams, *(Stream(f"w{i}", f"v{5 * i + 5}") for i in range(12))]
    streams += [Stream("mask", f"v{v}", payload=5) for v in range(21, n, 5)]
    streams += [Stream("v20", "side", payload=5)]
    whole = Problem(StreamGraph.of("net", tasks, streams, fires="all"), row.cluster)
    assert Stages.of(tasks_of(whole), 100) is None
    least, found = known_by_stages(whole, 2_000_000)
    assert found == pytest.approx(least, rel=1e-6)
    assert found == pytest.approx(known_by_stages(row, 2_000_000)[0], rel=1e-6)


@pytest.mark.slow
def test_large_rows_are_searched_stage_by_stage():
    problem = row_of_forks(700)
    assert problem.n_operators > 3000
    heft = value("heft", problem)
    few, many = (
        PLACERS["anneal"].place(problem, MAKESPAN, budget=Budget(None, n)) for n in (5, 1_400_000)
    )
    assert heft >= few.value > many.value
    assert many.value <= heft * 0.99
    assert many.bound > MAKESPAN.bound(problem)  # type: ignore[operator]


def test_the_start_is_never_lost():
    problem = row_of_forks(6)
    best = PLACERS["exact"].place(problem, MAKESPAN, budget=Budget(None, 200_000))
    for evaluations in (1, 100, 5000):
        again = PLACERS["exact"].with_options(start=(best.placement,))
        result = again.place(problem, MAKESPAN, budget=Budget(None, evaluations))
        assert result.value <= best.value


@pytest.mark.parametrize(
    ("room", "apart", "is_free"), [(1e9, [], True), (1e9, [["v0", "v40"]], False), (14, [], False)]
)
def test_memory_and_who_may_not_meet_hold(room, apart, is_free):
    """Proven where they cost nothing; else the bound of what would be without them holds."""
    row = row_of_forks(8)
    tasks = [Operator(one.name, ipt=one.ipt, memory=1) for one in row.graph.operators]
    devices = [Device(d.name, mips=d.mips, memory=room) for d in row.cluster.devices]
    graph = StreamGraph.of("row", tasks, list(row.graph.streams), fires="all")
    rules = Constraints(exlocate=apart)
    ruled = Problem(graph, Cluster.of(devices, bandwidth=80), rules)
    free, result = (
        PLACERS["exact"].place(one, MAKESPAN, budget=Budget(None, 200_000)) for one in (row, ruled)
    )
    ruled.check(result.placement)
    assert result.value >= result.bound >= free.value * (1 - 1e-6)
    assert (result.value <= free.value * (1 + 1e-6)) == is_free


def test_a_pass_without_any_work_takes_no_time():
    streams = [Stream("a", "b"), Stream("a", "c")]
    graph = StreamGraph.of("free", [Operator(name) for name in "abc"], streams, fires="all")
    result = PLACERS["exact"].place(Problem(graph, Cluster.uniform(2)), MAKESPAN)
    assert result.value == result.bound == 0
