"""Pipelines whose actors fail, on a Ray that is only acted."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamplace.engines.ray.actor import OperatorCounts, OperatorSnapshot
from streamplace.engines.ray.devices import LocalDevices
from streamplace.engines.ray.engine import Interval
from streamplace.engines.ray.pipeline import ActorError, ActorPipeline
from streamplace.errors import SettingError
from streamplace.model import Cluster, Operator, Stream, StreamGraph
from streamplace.model.placement import Placement

GRAPH = StreamGraph.of("two", [Operator("src", rate=10), Operator("end")], [Stream("src", "end")])
CLUSTER = Cluster.uniform(2)


class ActedRay:
    """Ray with actors that answer at once, but for the calls that are named as broken."""

    exceptions = SimpleNamespace(GetTimeoutError=TimeoutError, RayError=RuntimeError)

    def __init__(self) -> None:
        self.broken: set[str] = set()
        self.alive: list[Any] = []

    def remote(self, kind: type) -> Any:
        """Kind of actor, with options."""
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=self._started))

    def get(self, asked: list[Callable[[], Any]], timeout: float) -> list[Any]:
        """Answers of calls."""
        return [call() for call in asked]

    def kill(self, actor: Any) -> None:
        """End an actor."""
        self.alive.remove(actor)

    def _started(self, task: object) -> Any:
        names = ("home", "connect", "start", "pause", "drain", "look", "take")
        actor = SimpleNamespace(**{name: self._method(name) for name in names})
        self.alive.append(actor)
        return actor

    def _method(self, name: str) -> Any:
        def call() -> Any:
            if name in self.broken:
                raise RuntimeError(name)
            return OperatorSnapshot(0.0, OperatorCounts())

        return SimpleNamespace(remote=lambda *_: call)


def placed(*devices: str) -> Placement:
    """Placement of both operators."""
    assignment = dict(zip(GRAPH, devices, strict=True))
    return Placement.of(GRAPH.operators.name, CLUSTER.devices.name, assignment)


@pytest.mark.parametrize("call", ["pause", "drain", "look", "take"])
def test_a_move_that_fails_leaves_no_new_actors(call: str) -> None:
    """Whichever call fails; those of before run on."""
    ray = ActedRay()
    devices = LocalDevices(ray, CLUSTER, Path(), 1.0)
    pipeline = ActorPipeline.start(devices, GRAPH, placed("d0", "d0"))
    before = list(pipeline.actors.values())
    ray.broken = {call}
    with pytest.raises(ActorError, match="an actor has ended"):
        pipeline.move(placed("d1", "d1").as_dict())
    assert ray.alive == before == list(pipeline.actors.values())
    assert pipeline.placement == placed("d0", "d0").as_dict()


def test_a_measurement_without_a_tuple_is_refused() -> None:
    """A graph whose source has no rate could not be placed."""
    devices = LocalDevices(ActedRay(), CLUSTER, Path(), 1.0)
    pipeline = ActorPipeline.start(devices, GRAPH, placed("d0", "d0"))
    counted = pipeline.snapshot()
    with pytest.raises(SettingError, match="'src' generated no tuple; measure for longer"):
        Interval(pipeline, counted, counted).measurement(GRAPH, CLUSTER)


@pytest.mark.parametrize("call", ["home", "connect", "start"])
def test_a_start_that_fails_leaves_no_actors(call: str) -> None:
    ray = ActedRay()
    ray.broken = {call}
    with pytest.raises(ActorError, match="an actor has ended"):
        ActorPipeline.start(LocalDevices(ray, CLUSTER, Path(), 1.0), GRAPH, placed("d0", "d1"))
    assert ray.alive == []
