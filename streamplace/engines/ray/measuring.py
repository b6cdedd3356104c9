"""Measure a pipeline: convert the counters of its actors to a graph and a cluster."""

from collections.abc import Mapping
from dataclasses import dataclass

from streamplace.engines.live import Measurement
from streamplace.engines.ray.actor import OperatorSnapshot
from streamplace.engines.ray.pipeline import ActorPipeline
from streamplace.io.clusters import cluster_from_tables, cluster_to_tables
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.operators import Operator
from streamplace.model.streams import Stream
from streamplace.model.units import digits

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
            row["reserved"] = min(taken, FULL * row.get("cores", 1)) * row["mips"]
        return cluster_from_tables(tables)

    def _operator(self, operator: Operator, notes: list[str]) -> Operator:
        name, tuples = operator.name, self._tuples(operator.name)
        if not tuples:
            notes.append(f"ipt of {name}: it received no tuples")
        speed = self.pipeline.devices.mips(self.pipeline.placement[name]) * 1e6
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
