"""Min-min, max-min, sufferage and duplex: closed forms, and a literal implementation."""

import pytest
from hypothesis import given
from makespan_cases import MAKESPAN, problems, value

from streamplace.errors import SettingError
from streamplace.model import Cluster, Operator, Problem, StreamGraph
from streamplace.placers.registry import PLACERS
from streamplace.scheduling.batches import RULES, by_batches
from streamplace.scheduling.ranks import upward
from streamplace.scheduling.tasks import Tasks, tasks_of

Answer = dict[int, tuple[int, float]]


def literal(tasks: Tasks, rule: str, rank: list[float]) -> Answer:
    """Device and finish of every task without rules, by lists and dictionaries."""
    work, cores = tasks.work.tolist(), range(int(tasks.core_start[-1]))
    device = [d for d in range(len(work[0])) for _ in range(_cores(tasks, d))]
    free = [0.0 for _ in cores]
    into = {v: [e for e, w in enumerate(tasks.target) if w == v] for v in range(len(work))}
    done: Answer = {}

    def finish(v: int, core: int) -> float:
        a, ready = device[core], float(tasks.release[v])
        for e in into[v]:
            b, end = done[int(tasks.source[e])]
            sent = tasks.latency[b, a] + tasks.size[e] * tasks.wire[b, a] + tasks.fixed_s[e]
            ready = max(ready, end + (sent if a != b else 0.0))
        return float(max(ready, free[core]) + work[v][a])

    def ends(v: int) -> dict[int, float]:
        by_device: dict[int, float] = {}
        for core in cores:
            end = by_device.get(device[core], float("inf"))
            by_device[device[core]] = min(end, finish(v, core))
        return by_device

    while len(done) < len(work):
        batch = [
            v
            for v in range(len(work))
            if v not in done and all(int(tasks.source[e]) in done for e in into[v])
        ]
        while batch:
            costs = {v: _cost(sorted(ends(v).values()), rule) for v in batch}
            least = min(costs.values())
            equal = [v for v in batch if costs[v] == least]
            v = min(equal, key=lambda v: (-rank[v], v))
            reached = ends(v)
            a = min(reached, key=lambda a: (reached[a], a))
            core = min((c for c in cores if device[c] == a), key=lambda c: free[c])
            done[v] = (a, finish(v, core))
            free[core] = done[v][1]
            batch.remove(v)
    return done


def _cores(tasks: Tasks, d: int) -> int:
    return int(tasks.core_start[d + 1] - tasks.core_start[d])


def _cost(ends: list[float], rule: str) -> float:
    """What the least of is next."""
    if rule == "sufferage":
        return ends[0] - (ends[1] if len(ends) > 1 else float("inf"))
    return ends[0] if rule == "min-min" else -ends[0]


def flat(seconds: list[list[float]]) -> Problem:
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
def test_small_passes_are_scheduled_by_the_rule(
    seconds: list[list[float]], expected: dict[str, float]
) -> None:
    problem = flat(seconds)
    assert {name: value(name, problem) for name in expected} == expected


@pytest.mark.parametrize("rule", RULES)
@given(problem=problems())
def test_schedules_are_those_of_the_literal_algorithm(rule: str, problem: Problem) -> None:
    tasks = tasks_of(Problem(problem.graph, problem.cluster))
    rank = upward(tasks)
    schedule = by_batches(tasks, RULES[rule], rank)
    expected = literal(tasks, rule, rank.tolist())
    assert schedule.place.tolist() == [expected[v][0] for v in range(tasks.n_tasks)]
    assert schedule.finish.tolist() == pytest.approx([expected[v][1] for v in range(tasks.n_tasks)])


@given(problem=problems())
def test_duplex_is_the_better_of_both(problem: Problem) -> None:
    both = [value(name, problem) for name in ("min-min", "max-min")]
    assert value("duplex", problem) == min(both)


@given(problem=problems())
def test_foresight_is_never_worse_than_heft(problem: Problem) -> None:
    assert value("foresight", problem) <= value("heft", problem)


@given(problem=problems())
@pytest.mark.parametrize("name", ["heft", "peft", "cpop", "foresight"])
def test_more_tries_are_never_worse_and_depend_on_the_seed_alone(
    name: str, problem: Problem
) -> None:
    placer = PLACERS[name]
    plain = placer.place(problem, MAKESPAN, seed=3)
    several = [placer.with_options(tries=6).place(problem, MAKESPAN, seed=3) for _ in range(2)]
    assert several[0].value <= plain.value
    assert several[0].placement == several[1].placement


def test_a_number_of_tries_below_one_is_refused() -> None:
    with pytest.raises(SettingError, match="tries is 0; it must be at least 1"):
        value("heft:tries=0", flat([[1, 1]]))
