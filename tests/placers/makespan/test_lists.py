"""List schedulers: published examples, closed forms, literal loops, and what must hold."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from makespan_cases import MAKESPAN, problems, ten_tasks, value
from schedules_reference import ScheduleInProgress

from streamplace.errors import SettingError
from streamplace.model import Cluster, Constraints, Device, Operator, Problem, Stream, StreamGraph
from streamplace.placers.registry import PLACERS, Budget
from streamplace.scheduling.insertion import insert_all, plain_choice
from streamplace.scheduling.lists import RULES, by_batches, rank_schedules
from streamplace.scheduling.ranks import by_rank, upward
from streamplace.scheduling.tasks import tasks_of

LISTS = (
    *("heft", "peft", "cpop", "foresight", "etf", "sct", "critical-path", "enumerative"),
    *("min-min", "max-min", "sufferage", "duplex"),
)


@pytest.mark.parametrize(("placer", "published"), [("heft", 80), ("cpop", 86), ("peft", 85)])
def test_the_ten_task_example_takes_what_was_published(placer, published):
    assert value(placer, ten_tasks()) == pytest.approx(published)


def test_the_optimum_of_the_example_is_proven():
    result = PLACERS["exact"].place(ten_tasks(), MAKESPAN, budget=Budget(20))
    assert result.value == pytest.approx(73)
    assert result.bound == pytest.approx(73, rel=1e-6)


def test_insertion_uses_an_idle_time_that_appending_does_not():
    """A long transfer leaves the only core idle; a short task of low rank fits in."""
    tasks = [Operator("a"), Operator("far"), Operator("b"), Operator("short")]
    streams = [Stream("a", "far", payload=5), Stream("far", "b", payload=5)]
    graph = StreamGraph.of("gap", tasks, streams, fires="all")
    rules = Constraints(pin={"a": "d0", "far": "d1", "b": "d0", "short": "d0"})
    problem = Problem(
        graph, Cluster.uniform(2, bandwidth="8 bps"), rules, np.array([[1.0] * 2] * 4)
    )
    order = by_rank(tasks_of(problem), np.array([4.0, 3.0, 2.0, 1.0]))
    ends = [
        insert_all(tasks_of(problem), order, plain_choice(4, insertion)).finish
        for insertion in (True, False)
    ]
    assert [end[3] for end in ends] == [2, 14]
    assert value("heft", problem) == 13


def test_a_chain_stays_together_and_independent_tasks_spread():
    chain = [Stream(f"v{i}", f"v{i + 1}", payload=1e9) for i in range(4)]
    tasks = [Operator(f"v{i}", ipt=2.5e9) for i in range(5)]
    one = Problem(StreamGraph.of("chain", tasks, chain, fires="all"), Cluster.uniform(3))
    flat = Problem(StreamGraph.of("flat", tasks[:3], [], fires="all"), Cluster.uniform(3))
    for placer in LISTS:
        if placer != "enumerative":  # which deals by what is sent alone
            assert value(placer, flat) == pytest.approx(1), placer
        assert value(placer, one) == pytest.approx(5), placer


def test_enumerative_gives_no_device_two_shards_while_another_has_none():
    """Five shards on four devices, one of which is badly connected."""
    shards = [f"m/{i}" for i in range(5)]
    tasks = [Operator("s", payload=10), *map(Operator, shards)]
    graph = StreamGraph.of("shards", tasks, [Stream("s", v) for v in shards], fires="all")
    far = np.arange(4) == 3
    bandwidth = np.where(far | far[:, None], 8.0, 80.0)
    cluster = Cluster.of([Device(f"d{i}") for i in range(4)], bandwidth=bandwidth)
    problem = Problem(graph, cluster, Constraints(pin={"s": "d0"}))
    placement = PLACERS["enumerative"].place(problem, MAKESPAN).placement
    counts = Counter(placement[v] for v in shards)
    assert counts == {"d0": 2, "d1": 1, "d2": 1, "d3": 1}


@pytest.mark.parametrize("placer", LISTS)
@settings(max_examples=25, deadline=None)
@given(problem=problems())
def test_no_schedule_is_below_the_bound_or_illegal(placer, problem):
    result = PLACERS[placer].place(problem, MAKESPAN, budget=Budget(None, 50))
    problem.check(result.placement)
    assert result.value >= result.bound * (1 - 1e-9)


def test_other_orders_of_equal_ranks_are_kept_where_the_usual_one_fits_no_memory():
    """Of 5, 5, 3 and 7 GB in this order, the third joins the first, so that 7 GB fit nowhere."""
    sizes = {"a": 5e9, "b": 5e9, "c": 3e9, "d": 7e9}
    tasks = [Operator(name, ipt=2.5e9, memory=size) for name, size in sizes.items()]
    graph = StreamGraph.of("tight", tasks, fires="all")
    cluster = Cluster.of([Device(name, memory=10e9) for name in ("d0", "d1")])
    made = tasks_of(Problem(graph, cluster))
    usual, other = rank_schedules(made, upward(made), plain_choice(4, True), 16, 0)
    assert not usual.complete
    assert other.complete


def literal(problem, rule, rank):
    """Schedule of a problem without rules, batch after batch."""
    schedule, tasks = ScheduleInProgress(problem, appends=True), set(range(problem.n_operators))
    while left := tasks - schedule.place.keys():
        batch = left - {w for u, w in schedule.streams if u in left}
        while batch:
            costs = {v: _cost(sorted(schedule.ends(v).values()), rule) for v in batch}
            v = min(batch, key=lambda v: (costs[v], -rank[v], v))
            schedule.run(v, schedule.soonest(v))
            batch.remove(v)
    return schedule


def _cost(ends, rule):
    """What the least of is next."""
    if rule == "sufferage":
        return ends[0] - (ends[1] if len(ends) > 1 else float("inf"))
    return ends[0] if rule == "min-min" else -ends[0]


def flat(seconds):
    """Tasks that wait for nothing, with their seconds on every device."""
    graph = StreamGraph.of("flat", [Operator(f"v{i}") for i in range(len(seconds))], fires="all")
    return Problem(graph, Cluster.uniform(len(seconds[0])), seconds=seconds)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        # Two short tasks fill both devices before the long one; or follow on the other device.
        ([[1, 1], [1, 1], [4, 4]], {"min-min": 5, "max-min": 4, "duplex": 4}),
        # Max-min lets the long task have the device on which the short ones are quick.
        ([[1, 9], [1, 9], [4, 5]], {"min-min": 5, "max-min": 6, "duplex": 5}),
        # Min-min gives device 0 to the first task, which could as well run on the other.
        ([[2, 3], [3, 12]], {"min-min": 5, "sufferage": 3}),
        # The second of equal ranks is quick on device 0, which the first one could do without.
        ([[2, 2], [1, 3]], {"heft": 3, "heft:tries=10": 2}),
    ],
)
def test_the_rule_schedules_passes(seconds, expected):
    problem = flat(seconds)
    assert {name: value(name, problem) for name in expected} == expected


@pytest.mark.parametrize("rule", RULES)
@given(problem=problems())
def test_schedules_are_those_of_the_literal_algorithm(rule, problem):
    free = Problem(problem.graph, problem.cluster)
    tasks = tasks_of(free)
    rank = upward(tasks)
    schedule, expected = by_batches(tasks, RULES[rule], rank), literal(free, rule, rank.tolist())
    for v in range(free.n_operators):
        assert schedule.place[v] == expected.place[v]
        assert schedule.finish[v] == pytest.approx(expected.finish[v])


@given(problem=problems())
def test_foresight_is_never_worse_than_heft(problem):
    assert value("foresight", problem) <= value("heft", problem)


@given(problem=problems())
@pytest.mark.parametrize("name", ["heft", "peft", "cpop", "foresight"])
def test_more_tries_are_never_worse_and_follow_from_the_seed(name, problem):
    placer = PLACERS[name]
    plain = placer.place(problem, MAKESPAN, seed=3)
    several = [placer.with_options(tries=6).place(problem, MAKESPAN, seed=3) for _ in range(2)]
    assert several[0].value <= plain.value
    assert several[0].placement == several[1].placement


def test_a_number_of_tries_below_one_is_refused():
    with pytest.raises(SettingError, match="tries is 0"):
        value("heft:tries=0", flat([[1, 1]]))
