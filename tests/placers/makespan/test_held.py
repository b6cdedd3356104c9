"""Schedules whose order devices hold: what a schedule says is what a pass takes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from makespan_cases import MAKESPAN, problems
from schedules_reference import ScheduleInProgress, longest_ways

from streamplace.api import simulate
from streamplace.errors import PlacementError
from streamplace.model import Cluster, Constraints, Operator, Problem, Stream, StreamGraph
from streamplace.model.relocation import Relocation
from streamplace.objectives.registry import named_objective
from streamplace.placers.registry import PLACERS, Budget
from streamplace.scheduling.insertion import by_upward_rank
from streamplace.scheduling.tasks import tasks_of

HELD = named_objective("makespan:queue=order")
EAGER = named_objective("makespan:queue=priority")
LISTS = ("heft", "peft", "cpop", "foresight", "etf", "sct", "critical-path")


def literal_makespan(problem, insertion):
    """Makespan of HEFT in plain loops, for devices of one core."""
    schedule = ScheduleInProgress(problem, appends=not insertion)
    left = set(range(problem.n_operators))
    seconds = [[schedule.work[v, a] for a in schedule.open(v)] for v in sorted(left)]
    rank = longest_ways(problem, [sum(row) / len(row) for row in seconds])
    while left:
        ready = left - {w for u, w in schedule.streams if u in left}
        v = max(ready, key=lambda v: (rank[v][0], -v))
        schedule.run(v, schedule.soonest(v))
        left.remove(v)
    return max(schedule.finish.values())


def waiting(rules=None):
    """``long`` is ready at once; its device had better wait for ``b``, on which all else hangs."""
    tasks = [Operator("a", ipt=1e6), Operator("b", ipt=1e6), Operator("c", ipt=9e6)]
    tasks.append(Operator("long", ipt=9e6))
    streams = [Stream("a", "b", payload=1), Stream("b", "c", payload=1)]
    graph = StreamGraph.of("waiting", tasks, streams, fires="all")
    return Problem(graph, Cluster.uniform(2, mips=1, bandwidth=8), rules)


PINS = Constraints(pin={"a": "d0", "b": "d1", "c": "d0", "long": "d1"})


@pytest.mark.parametrize("insertion", [True, False])
@given(problem=problems(most_cores=1, rules=Constraints(pin={"v1": "d0"})))
def test_the_value_of_heft_is_that_of_its_schedule(insertion, problem):
    own = literal_makespan(problem, insertion)
    heft = PLACERS["heft"].with_options(insertion=insertion)
    assert heft.place(problem, HELD).value == pytest.approx(own, rel=1e-12)
    assert heft.place(problem, MAKESPAN).value <= own * (1 + 1e-12)


@given(problem=problems())
def test_of_several_cores_no_pass_takes_longer_than_the_schedule(problem):
    schedule = by_upward_rank(tasks_of(problem), True)
    if schedule.complete:
        answer = PLACERS["heft"].place(problem, MAKESPAN)
        assert answer.value <= schedule.finish.max() * (1 + 1e-12)


@settings(max_examples=20)
@given(problem=problems(), data=st.data())
def test_schedulers_answer_the_better_of_both_meanings(problem, data):
    placer = data.draw(st.sampled_from(LISTS))
    answer = PLACERS[placer].place(problem, MAKESPAN, budget=Budget(None, 20))
    if answer.placement.priority is not None:
        other = EAGER if answer.placement.queue == "order" else HELD
        assert answer.value <= other.value(problem, answer.placement) * (1 + 1e-12)


@settings(max_examples=30)
@given(problem=problems(), queue=st.sampled_from(["order", "priority", ""]), data=st.data())
def test_a_search_never_gets_worse(problem, queue, data):
    """With an order that is held, with priorities, and in the order of arrival."""
    n = problem.n_operators
    place = problem.repaired(np.arange(n) % problem.n_devices)
    ranks = np.empty(n)
    ranks[problem.graph.order] = -np.arange(n)
    start = problem.placement(place, ranks, queue) if queue else problem.placement(place)
    search = PLACERS[data.draw(st.sampled_from(["anneal", "exact"]))].with_options(start=(start,))
    answer = search.place(problem, MAKESPAN, budget=Budget(None, 1))
    assert answer.value <= MAKESPAN.value(problem, start) * (1 + 1e-12)
    assert answer.value == pytest.approx(answer.trace[-1].value, rel=1e-12)


@pytest.mark.parametrize("placer", ["exact", "anneal", "auto"])
def test_a_search_lets_a_device_wait_where_that_is_better(placer):
    """It takes 20 s where ``long`` runs as soon as it can, whatever the priorities."""
    problem = waiting(PINS)
    ranks = [4.0, 3.0, 2.0, 1.0]
    values = [
        MAKESPAN.value(problem, problem.placement([0, 1, 0, 1], ranks, queue))
        for queue in ("priority", "order")
    ]
    assert values == pytest.approx([20, 13])
    answer = PLACERS[placer].place(problem, MAKESPAN, budget=Budget(None, 5000))
    assert (answer.value, answer.placement.queue) == (pytest.approx(13), "order")


def test_a_pass_is_told_with_what_its_order_means():
    problem = waiting()
    answer = [
        simulate(problem, problem.placement([0, 1, 0, 1], [4, 3, 2, 1], queue))
        for queue in ("priority", "order")
    ]
    assert [one.document()["queue"] for one in answer] == ["priority", "order"]
    assert [one.document()["schedule"]["b"]["start"] for one in answer] == [9, 2]
    words = [part for part in answer[1].report().parts if isinstance(part, str)]
    assert any("a device waits for the next in line" in text for text in words)
    chain = [(link["what"], link["seconds"]) for link in _links(answer[1].document())]
    assert chain == [("running", 1), ("sending", 1), ("running", 1), ("sending", 1), ("running", 9)]


def _links(document):
    return [{**link, "seconds": link["end"] - link["begin"]} for link in document["chain"]]


def test_an_order_that_contradicts_the_graph_is_refused():
    problem = waiting()
    crossed = problem.placement([0, 0, 1, 1], [1, 2, 3, 4], "order")
    with pytest.raises(PlacementError, match="'d0' puts 'b' before 'a'"):
        problem.check(crossed)
    with pytest.raises(PlacementError, match="'b' before 'a'"):
        HELD.explained(problem, problem.placement([0, 0, 1, 1], [1, 2, 3, 4]))
    assert HELD.value(problem, crossed) == np.inf
    assert simulate(problem, problem.placement([0, 0, 1, 1], [1, 2, 3, 4])).value == 18


def test_who_stays_keeps_the_meaning_of_the_order_where_devices_can_hold_it():
    problem = waiting()
    held = problem.placement([0, 1, 0, 1], [4, 3, 2, 1], "order")
    assert Relocation(held).stay(problem) == held
    crossed = problem.placement([0, 1, 0, 1], [1, 3, 2, 4], "order")
    assert Relocation(crossed).stay(problem).queue == "priority"
