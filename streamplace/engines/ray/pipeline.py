"""A pipeline of actors that runs a stream graph, one actor for each operator."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamplace.engines.names import resource
from streamplace.engines.ray.actor import (
    OperatorActor,
    OperatorCounts,
    OperatorSnapshot,
    OperatorTask,
    OutputStream,
)
from streamplace.engines.ray.devices import LocalDevices
from streamplace.errors import GraphError, StreamplaceError
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted
from streamplace.model.operators import ALL
from streamplace.model.placement import Placement

DEMAND = 0.001
"""Amount of its device's resource that an actor requests."""
START_SECONDS = 120.0
"""Maximum time for the start of actors."""
MOST_OPERATORS = 64
"""Limited because every operator is a process."""


class ActorError(StreamplaceError):
    """An actor does not start, or has ended."""


def check_graph(graph: StreamGraph) -> None:
    """Raise GraphError if actors cannot run a graph."""
    operators = graph.operators
    if graph.n_operators > MOST_OPERATORS:
        raise GraphError(
            f"the graph has {graph.n_operators} operators; a local Ray runs at most "
            f"{MOST_OPERATORS}, each as a process"
        )
    for operator in operators:
        if operator.parallelism > 1:
            raise GraphError(
                f"operator {quoted(operator.name)} has {operator.parallelism} subtasks; run the "
                "graph of all subtasks: expand(graph).graph"
            )
        if operator.window is not None or operator.fires == ALL:
            raise GraphError(
                f"operator {quoted(operator.name)} does not fire for every tuple; Ray actors run "
                "only operators without windows that fire 'each'"
            )
        if operator.constant:
            raise GraphError(
                f"operator {quoted(operator.name)} has a constant load; Ray actors compute only "
                "when tuples arrive, so run the graph without it"
            )
        if operator.max_rate:
            raise GraphError(
                f"operator {quoted(operator.name)} has a max_rate; Ray actors process tuples as "
                "fast as their cores allow, so run the graph without it"
            )


@dataclass(slots=True)
class ActorPipeline:
    """The actors of a job."""

    devices: LocalDevices  # the local Ray that they run on
    graph: StreamGraph
    placement: dict[str, str]  # operator → device
    actors: dict[str, Any]  # operator → actor

    @classmethod
    def start(
        cls, devices: LocalDevices, graph: StreamGraph, placement: Placement
    ) -> "ActorPipeline":
        """Start all actors with a placement; if one does not start or answer, end all."""
        pipeline = cls(devices, graph, placement.as_dict(), {})
        pipeline.actors = pipeline._start_actors(pipeline.placement)
        try:
            pipeline._connect()
            pipeline.resume()
        except BaseException:
            pipeline.end(pipeline.actors.values())
            raise
        return pipeline

    def snapshot(self) -> dict[str, OperatorSnapshot]:
        """Counters of every operator, with their time."""
        return self._answers({name: actor.look.remote() for name, actor in self.actors.items()})

    def counts(self) -> dict[str, OperatorCounts]:
        """Counters of every operator."""
        return {name: seen.counts for name, seen in self.snapshot().items()}

    def homes(self) -> dict[str, str]:
        """Device of every operator, as reported by its own process."""
        nodes = self._answers({name: actor.home.remote() for name, actor in self.actors.items()})
        device_of = self.devices.device_of_node()
        return {name: device_of.get(node, node) for name, node in nodes.items()}

    def pause(self) -> None:
        """Stop the sources, and wait until no tuple is in transit."""
        self._answers({name: self.actors[name].pause.remote() for name in self._sources()})
        for row in self.graph.order.tolist():  # so that a drained operator receives no more tuples
            name = self.graph.operators.name[row]
            self._answers({name: self.actors[name].drain.remote()})

    def resume(self) -> None:
        """Make the sources generate tuples."""
        self._answers({name: self.actors[name].start.remote() for name in self._sources()})

    def move(self, placement: Mapping[str, str]) -> float:
        """Continue operators on other devices, with their counters; return the seconds of pause.

        Operators that stay keep running. If one cannot move, none does.
        """
        moved = {name: d for name, d in placement.items() if d != self.placement[name]}
        new, old = self._start_actors(moved), self.actors
        begin = time.monotonic()
        try:
            self.pause()
            counts = self.counts()
            self._answers({name: actor.take.remote(counts[name]) for name, actor in new.items()})
            self.actors = {**old, **new}
            self._connect()
        except BaseException:
            self.actors = old
            self.end(new.values())
            self._connect()
            raise
        else:
            self.end(old[name] for name in new)
            self.placement = dict(placement)
        finally:
            self.resume()
        return time.monotonic() - begin

    def _connect(self) -> None:
        targets: dict[str, dict[int, Any]] = {name: {} for name in self.actors}
        for number, stream in enumerate(self.graph.streams):
            targets[stream.source][number] = self.actors[stream.target]
        self._answers(
            {name: actor.connect.remote(targets[name]) for name, actor in self.actors.items()}
        )

    def end(self, actors: Iterable[Any]) -> None:
        """End some actors."""
        for actor in actors:
            self.devices.ray.kill(actor)

    def _sources(self) -> list[str]:
        return [operator.name for operator in self.graph.operators if operator.rate > 0]

    def _start_actors(self, placement: Mapping[str, str]) -> dict[str, Any]:
        """Start actors of some operators and wait until all run; end all if one does not."""
        kind, actors = self.devices.ray.remote(OperatorActor), {}
        for name, device in placement.items():
            options = {"num_cpus": 0, "resources": {resource(device): DEMAND}}
            actors[name] = kind.options(**options).remote(self._task(name, device))
        try:
            self._answers({name: actor.home.remote() for name, actor in actors.items()})
        except BaseException:
            self.end(actors.values())
            raise
        return actors

    def _task(self, name: str, device: str) -> OperatorTask:
        graph, row = self.graph, self.graph.operators.index(name)
        operator, size = graph.operators[row], graph.streams.bytes_per_tuple()
        outputs = tuple(
            OutputStream(number, stream.selectivity, round(float(size[number])))
            for number, stream in enumerate(graph.streams)
            if stream.source == name
        )
        seconds = operator.ipt / (self.devices.speed(device) * 1e6)
        cores = self.devices.cores(device)
        return OperatorTask(name, seconds, self.devices.share, operator.rate, outputs, cores)

    def _answers(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Wait for answers: operator → answer of its actor."""
        errors = self.devices.ray.exceptions
        try:
            answers: Sequence[Any] = self.devices.ray.get([*asked.values()], timeout=START_SECONDS)
        except errors.GetTimeoutError:
            names = ", ".join(map(quoted, asked))
            raise ActorError(
                f"{names}: no answer after {START_SECONDS:g} s; `ray status` shows what is missing"
            ) from None
        except errors.RayError as error:
            raise ActorError(f"an actor has ended: {str(error).splitlines()[0]}") from None
        return dict(zip(asked, answers, strict=True))
