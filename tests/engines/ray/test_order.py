"""The order of a placement in the exported Ray tasks, with a clock in the place of Ray."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from engine_deployments import DEPLOYMENTS
from hypothesis import given, settings
from makespan_cases import MAKESPAN, giph, problems, ten_tasks

from streamplace.engines.deployment import Deployment
from streamplace.engines.registry import EXPORTS
from streamplace.errors import PlacementError
from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.placers.registry import PLACERS
from streamplace.scheduling.tasks import tasks_of

NO_TIME = 1e15
"""Bits per second of a network on which nothing takes time; the driver knows no transfers."""


@dataclass(eq=False)
class Task:
    """What Ray runs until then, and its result."""

    end: float
    result: Any


class Clock(ModuleType):
    """Ray as far as the exported driver sees it, without delays."""

    def __init__(self, seconds):
        super().__init__("ray")
        self._seconds, self.now = seconds, 0.0
        self.begun: list[tuple[str, float]] = []

    def remote(self, function):
        """Make a function a task."""
        return Clock.Remote(self, function)

    @dataclass
    class Remote:
        """A function that will run somewhere."""

        clock: "Clock"
        function: Callable[..., Any]
        name: str = ""

        def options(self, name, **_):
            """Name it."""
            return Clock.Remote(self.clock, self.function, name)

        def remote(self, *inputs):
            """Begin now."""
            clock = self.clock
            assert all(one.end <= clock.now for one in inputs)
            clock.begun.append((self.name, clock.now))
            result = self.function(*(one.result for one in inputs))
            return Task(clock.now + clock._seconds[self.name], result)

    def wait(self, running, fetch_local):
        """Wait for the first to be done, wherever its result is."""
        assert not fetch_local
        first = min(running, key=lambda task: task.end)
        self.now = first.end
        return [first], [task for task in running if task is not first]

    def get(self, tasks):
        """Results."""
        return [task.result for task in tasks]


def passed(deployment):
    """A pass of the exported module: the clock at its end, and the results."""
    source = EXPORTS["ray"].files(deployment)["placement.py"]
    module: dict[str, Any] = {}
    exec(compile(source, "placement.py", "exec"), module)
    work = tasks_of(deployment.unit_problem).work
    names, place = deployment.placement.operators, deployment.placement.index
    clock = Clock(dict(zip(names, work[np.arange(len(names)), place].tolist(), strict=True)))
    with patch.dict(sys.modules, {"ray": clock}):
        results = module["run"](
            {name: partial(lambda n, *taken: [n, *taken], name) for name in names}
        )
    return clock, results


def on_a_free_network(problem):
    """The same tasks on the same devices, where transfers take no time."""
    cluster = Cluster.of(list(problem.cluster.devices), bandwidth=NO_TIME)
    return Problem(problem.graph, cluster, problem.constraints)


def dealt_in_order(problem):
    """Tasks that are dealt to the devices in turn, which hold their topological order."""
    n = problem.n_operators
    ranks = np.empty(n)
    ranks[problem.graph.order] = -np.arange(n)
    place = problem.repaired(np.arange(n) % problem.n_devices)
    return problem.placement(place, ranks, "order")


def check_simulated(problem, placement):
    """Hold that the driver takes as long as the simulation."""
    clock, _ = passed(Deployment(problem, placement))
    assert clock.now == pytest.approx(MAKESPAN.value(problem, placement))


@settings(max_examples=50)
@given(problem=problems())
def test_a_held_order_takes_what_is_simulated(problem):
    problem = on_a_free_network(problem)
    check_simulated(problem, dealt_in_order(problem))


@pytest.mark.parametrize("queue", ["order", "priority"])
def test_what_heft_returns_takes_what_is_simulated(queue):
    for problem in map(on_a_free_network, giph(3)):
        found = PLACERS["heft"].place(problem, MAKESPAN).placement
        check_simulated(problem, problem.placement(found.index, found.priority, queue))


@pytest.mark.parametrize(
    ("queue", "begun", "seconds"),
    [("order", ["a", "b", "c", "long"], 1.3), ("priority", ["a", "long", "b", "c"], 2.1)],
)
def test_devices_keep_orders(queue, begun, seconds):
    work = {"a": 2e8, "b": 1e8, "c": 1e9, "long": 1e9}
    tasks = [Operator(name, ipt=ipt) for name, ipt in work.items()]
    graph = StreamGraph.of("line", tasks, [Stream("a", "b"), Stream("b", "c")], fires="all")
    problem = on_a_free_network(Problem(graph, Cluster.uniform(2, mips=1000)))
    placement = problem.placement([0, 1, 0, 1], [4, 3, 2, 1], queue)
    clock, results = passed(Deployment(problem, placement))
    assert [name for name, _ in sorted(clock.begun, key=lambda one: one[1])] == begun
    assert clock.now == pytest.approx(seconds)
    assert results == {"c": ["c", ["b", ["a"]]], "long": ["long"]}


def test_an_order_that_contradicts_the_graph_is_refused():
    problem = ten_tasks()
    backwards = problem.placement([0] * 10, range(10), "order")
    with pytest.raises(PlacementError):
        EXPORTS["ray"].files(Deployment(problem, backwards))


def test_actors_say_that_they_keep_no_order():
    shop = DEPLOYMENTS["shop"]
    ranks = range(len(shop.placement))
    ranked = shop.unit_problem.placement(shop.placement.index, list(ranks)[::-1])
    notes = [
        EXPORTS["ray"].files(Deployment(shop.problem, p))["placement.py"]
        for p in (ranked, shop.placement)
    ]
    assert ["order of the placement is left out" in text for text in notes] == [True, False]
