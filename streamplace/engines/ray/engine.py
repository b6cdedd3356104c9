"""Ray as an engine: pipelines of actors on a local Ray are measured, placed, verified and moved."""

import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from streamplace.engines.live import Measurement, Moved, OperatorCheck, Verification
from streamplace.engines.ray.actor import OperatorCounts
from streamplace.engines.ray.devices import LocalDevices, local_ray, offers_of, share_of
from streamplace.engines.ray.measuring import Interval
from streamplace.engines.ray.pipeline import ActorPipeline, check_graph
from streamplace.errors import SettingError
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import listed, quoted
from streamplace.model.placement import Placement


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
