"""Ray as an engine: pipelines of actors on a local Ray are measured, placed, verified and moved."""

import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from streamplace.engines.live import Measurement, Moved, OperatorCheck, Verification
from streamplace.engines.ray.actor import OperatorCounts, OperatorSnapshot
from streamplace.engines.ray.devices import LocalDevices, local_ray, offers_of, share_of
from streamplace.engines.ray.pipeline import ActorPipeline, check_graph
from streamplace.errors import SettingError
from streamplace.io.clusters import cluster_from_tables, cluster_to_tables
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import listed, quoted
from streamplace.model.operators import Operator
from streamplace.model.placement import Placement
from streamplace.model.streams import Stream
from streamplace.model.units import digits


class RayEngine:
    """A local Ray, an engine in the sense of ``streamplace.engines.live`` while its block runs.

    It has a node for every device of a cluster. A job is a pipeline that runs a stream graph: an
    actor for every operator computes according to the operator's cost and sends real bytes.

    Parameters
    ----------
    cluster
        The devices. Together their cores get half of this machine's, so they are slower than their
        nominal speed, all by the same factor; measured seconds are those of the devices.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._offers, self._cluster = offers_of(cluster), cluster
        self._running = ExitStack()
        self._devices: LocalDevices | None = None
        self._pipelines: dict[str, ActorPipeline] = {}
        self._started = 0

    def __enter__(self) -> Self:
        """Start Ray, which takes some seconds for each device."""
        ray = self._running.enter_context(local_ray(self._offers))
        folder = Path(self._running.enter_context(tempfile.TemporaryDirectory()))
        self._devices = LocalDevices(ray, self._cluster, folder, share_of(self._cluster))
        return self

    def __exit__(self, *raised: object) -> None:
        """End all jobs, and Ray."""
        self._pipelines.clear()
        self._devices = None
        self._running.close()

    def jobs(self) -> list[str]:
        """Ids of the running jobs."""
        return [*self._pipelines]

    def measure(self, job: str, seconds: float = 10.0) -> Measurement:
        """Measure a running job, and the resources of the devices without those of other jobs.

        Source rates, CPU per tuple and bytes per tuple are those of the actors during the
        measurement.
        """
        pipeline, others = self._pipeline(job), [name for name in self.jobs() if name != job]
        watched = [job, *others]
        first = {name: self._pipelines[name].snapshot() for name in watched}
        time.sleep(seconds)
        intervals = {
            name: Interval(self._pipelines[name], first[name], self._pipelines[name].snapshot())
            for name in watched
        }
        cluster = self._cluster
        for name in others:
            cluster = intervals[name].left_of(cluster)
        return intervals[job].measurement(pipeline.graph, cluster)

    def apply(self, program: StreamGraph, placement: Mapping[str, str]) -> str:
        """Start a pipeline that runs a graph with a placement, and return its id."""
        check_graph(program)
        devices = self._local()
        pipeline = ActorPipeline.start(devices, program, self._placed(program, placement))
        self._started += 1
        job = f"pipeline-{self._started}"
        self._pipelines[job] = pipeline
        return job

    def verify(self, job: str, placement: Mapping[str, str]) -> Verification:
        """Ask every actor on which node it runs, and whether it got every tuple once."""
        pipeline = self._pipeline(job)
        homes, counts = pipeline.homes(), pipeline.counts()
        checks = (
            OperatorCheck(
                name,
                {placement[name]: 1} if name in placement else {},
                {homes[name]: 1} if name in homes else {},
            )
            for name in dict.fromkeys((*homes, *placement))
        )
        faults = (fault for own in counts.values() for fault in own.faults)
        return Verification(tuple(checks), tuple(faults))

    def move(self, job: str, program: StreamGraph, placement: Mapping[str, str]) -> Moved:
        """Move operators of a running pipeline, with their state.

        Operators that move start on their new devices while the pipeline runs. Then the sources
        pause until all sent tuples were received, and the new actors continue from the counters of
        the old ones. If one of them does not start, the pipeline continues on its old devices. The
        program is the graph that the job was started with.
        """
        pipeline, where = self._pipeline(job), self._placed(program, placement).as_dict()
        if program != pipeline.graph:
            raise SettingError(
                f"job {quoted(job)} runs another graph than {quoted(program.name)}; give the graph "
                "that it was started with"
            )
        if where == pipeline.placement:
            return Moved(job, 0.0)
        return Moved(job, pipeline.move(where))

    def counts(self, job: str) -> dict[str, OperatorCounts]:
        """Counters of every operator, read while no tuple is in transit."""
        pipeline = self._pipeline(job)
        pipeline.pause()
        try:
            return pipeline.counts()
        finally:
            pipeline.resume()

    def cancel(self, job: str) -> None:
        """End a job."""
        pipeline = self._pipeline(job)
        del self._pipelines[job]
        pipeline.end(pipeline.actors.values())

    def _local(self) -> LocalDevices:
        if self._devices is None:
            raise SettingError(
                "Ray is not running; use the engine in a with block: with RayEngine(…)"
            )
        return self._devices

    def _pipeline(self, job: str) -> ActorPipeline:
        if job not in self._pipelines:
            others = listed(tuple(self._pipelines)) if self._pipelines else "none"
            raise SettingError(f"there is no job {quoted(job)}; running jobs: {others}")
        return self._pipelines[job]

    def _placed(self, graph: StreamGraph, placement: Mapping[str, str]) -> Placement:
        return Placement.of(graph.operators.name, self._cluster.devices.name, placement)


LIMITED = 0.95
"""A source that generates less than this part of its rate is held back."""
FULL = 0.99
"""Maximum part of a device that is reserved for other jobs, so that it remains usable."""
UNMEASURED = (
    "bandwidth: Ray does not measure it; it is as the cluster has it",
    "CPU of Ray itself: it is not limited, and no operator's",
)


@dataclass(frozen=True, slots=True)
class Interval:
    """Counters of the operators of a pipeline at the begin and at the end of an interval."""

    pipeline: ActorPipeline
    first: Mapping[str, OperatorSnapshot]
    second: Mapping[str, OperatorSnapshot]

    def measurement(self, graph: StreamGraph, cluster: Cluster) -> Measurement:
        """The measured graph, with the cluster that is available to it."""
        notes = [*UNMEASURED]
        operators = [self._operator(operator, notes) for operator in graph.operators]
        streams = [self._stream(number, s, notes) for number, s in enumerate(graph.streams)]
        limited = [
            (operator.name, operator.rate, measured.rate)
            for operator, measured in zip(graph.operators, operators, strict=True)
            if measured.rate < LIMITED * operator.rate
        ]
        notes += [
            f"rate of {name}: held back, it generates {digits(rate)} of {digits(full)} tuples/s"
            for name, full, rate in limited
        ]
        measured = StreamGraph.of(graph.name, operators, streams)
        return Measurement(measured, cluster, bool(limited), tuple(notes))

    def left_of(self, cluster: Cluster) -> Cluster:
        """Cluster without the CPU that the pipeline uses on its devices."""
        tables = cluster_to_tables(cluster)
        for row in tables["devices"]:
            taken = sum(
                self._core_s(name) / self._seconds(name)
                for name, device in self.pipeline.placement.items()
                if device == row["name"]
            )
            cores, reserved = row.get("cores", 1), row.get("reserved", 0.0)
            speed = row["mips"] - reserved / cores
            row["reserved"] = reserved + min(taken, FULL * cores) * speed
        return cluster_from_tables(tables)

    def _operator(self, operator: Operator, notes: list[str]) -> Operator:
        name, tuples = operator.name, self._tuples(operator.name)
        if operator.rate and not tuples:
            raise SettingError(f"source {quoted(name)} generated no tuple; measure for longer")
        if not tuples:
            notes.append(f"ipt of {name}: it received no tuples")
        speed = self.pipeline.devices.speed(self.pipeline.placement[name]) * 1e6
        ipt = self._core_s(name) / tuples * speed if tuples else 0.0
        rate = tuples / self._seconds(name) if operator.rate else 0.0
        return Operator(name, ipt=ipt, rate=rate, requires=operator.requires)

    def _stream(self, number: int, stream: Stream, notes: list[str]) -> Stream:
        first, second = self.first[stream.source].counts, self.second[stream.source].counts
        sent = second.sent.get(number, 0) - first.sent.get(number, 0)
        size = second.sent_bytes.get(number, 0) - first.sent_bytes.get(number, 0)
        if not sent:
            notes.append(f"payload of {stream.source}→{stream.target}: no tuple passed")
        per_tuple = sent / (self._tuples(stream.source) or 1)
        return Stream(stream.source, stream.target, per_tuple, size / sent if sent else 0.0)

    def _tuples(self, name: str) -> int:
        return self.second[name].counts.tuples - self.first[name].counts.tuples

    def _core_s(self, name: str) -> float:
        return self.second[name].counts.core_s - self.first[name].counts.core_s

    def _seconds(self, name: str) -> float:
        return self.second[name].at - self.first[name].at
