"""Turns on Ray, with a clock in its place: what the driver starts when."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from makespan_cases import MAKESPAN, dealt_in_order, giph, problems, ten_tasks

from streamplace.engines.ray.turns import TurnedPass, Turns
from streamplace.errors import PlacementError
from streamplace.model import Placement, Problem
from streamplace.placers.registry import PLACERS
from streamplace.scheduling.tasks import tasks_of, transfer


@dataclass(eq=False)
class Task:
    """What Ray would run until then."""

    end: float


class Clock:
    """Ray as far as a driver sees it, without delays."""

    now = 0.0

    def wait(self, running: list[Task], num_returns: int) -> tuple[list[Task], list[Task]]:
        """Wait for the first to be done."""
        first = min(running, key=lambda task: task.end)
        self.now = first.end
        return [first], [task for task in running if task is not first]

    def makespan(self, problem: Problem, placement: Placement) -> float:
        """Seconds of a pass whose transfers wait for no other."""
        tasks, one, place = tasks_of(problem), problem.one_pass, placement.index

        def run(v: int, fetched: list[Any]) -> tuple[Any, Task]:
            return v, Task(self.now + float(tasks.work[v, place[v]]))

        def send(e: int, device: int, data: Any) -> Task:
            return Task(self.now + float(transfer(tasks, e, int(place[tasks.source[e]]), device)))

        inputs: list[list[tuple[int, int]]] = [[] for _ in range(problem.n_operators)]
        for e, (u, v) in enumerate(zip(tasks.source.tolist(), tasks.target.tolist(), strict=True)):
            inputs[v].append((e, u))
        turns = Turns.of(problem, placement)
        messages = list(range(one.n_streams))
        TurnedPass(inputs, messages, place.tolist(), turns, run, send).times(self)
        return self.now


@settings(max_examples=30)
@given(problem=problems())
def test_a_held_order_takes_what_is_simulated(problem: Problem) -> None:
    """Of several cores each takes the next in line."""
    held = dealt_in_order(problem)
    assert Clock().makespan(problem, held) == pytest.approx(MAKESPAN.value(problem, held))


def test_priorities_take_what_is_simulated() -> None:
    """Where no two things happen at the same instant."""
    for problem in giph(4)[:3]:
        order = PLACERS["heft"].place(problem, MAKESPAN).placement
        first = problem.placement(order.index, order.priority)
        assert Clock().makespan(problem, first) == pytest.approx(MAKESPAN.value(problem, first))


def test_what_is_ready_does_not_wait_for_the_next_in_line_by_priority() -> None:
    turns = [Turns([0, 1, 2], [0, 0, 0], [1], held) for held in (False, True)]
    assert [list(turn.ready(1)) for turn in turns] == [[1], []]
    assert [list(turn.ready(0)) for turn in turns] == [[], [0]]
    assert [list(turn.free(0)) for turn in turns] == [[0], [1]]


def test_an_order_that_contradicts_the_graph_is_refused_before_anything_runs() -> None:
    problem = ten_tasks()
    backwards = problem.placement([0] * 10, range(10), "order")
    with pytest.raises(PlacementError, match="waits for"):
        Clock().makespan(problem, backwards)
