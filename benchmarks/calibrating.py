"""What two probe runs of a Flink job tell of it, and what a placement will sustain by that.

A run is a line of `calibration.py`'s file: tuples/s and CPU of every operator under a placement,
and what its TaskManagers took besides.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

from streamplace import Cluster, Operator, Stream, StreamGraph, simulate
from streamplace.engines.flink.background import remote_share
from streamplace.engines.flink.cluster import FRAMING, HEADROOM
from streamplace.engines.flink.pinning import counts
from streamplace.io.clusters import cluster_from_tables
from streamplace.model.expansion import expand

PROBES = TOGETHER, IN_TURN = "together", "in turn"
MIPS = 1000.0
"""Speed of a whole core, a unit of account."""
OFFERED = 1e6
LEAST_RATE = 60.0
"""Tuples/s that an operator reads at least for its rate to be known well."""
DEAF = 0.8
"""A receiver that reads less of what is sent than this has a stream of its own kind."""

Run = Mapping[str, Any]
Flow = Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class Calibration:
    """A job, as it was seen all on one device and dealt out in turn."""

    together: Run
    apart: Run

    @cached_property
    def flow(self) -> Flow:
        """Tuples of every stream per tuple that the source lets in."""
        seen, flow = self.together["rates"], {}
        inputs, receivers = defaultdict(list), defaultdict(int)
        for source, target, _ in self.together["edges"]:
            inputs[target].append(source)
            receivers[source] += 1
        enters: dict[str, float] = {}
        for name in seen:
            for source in inputs[name]:
                sent = seen[source]["out"] / (seen[source]["in"] or seen[source]["out"] or 1.0)
                part = 1.0
                if len(inputs[name]) == 1 and receivers[source] > 1:
                    part = seen[name]["in"] / (seen[source]["out"] or 1.0)
                flow[source, name] = enters[source] * sent * (part if part < DEAF else 1.0)
            fed = [flow[source, name] for source in inputs[name]]
            enters[name] = sum(fed) if fed else 1.0
        return flow

    @cached_property
    def enters(self) -> dict[str, float]:
        """Tuples that every operator takes in per tuple that the source lets in."""
        found: dict[str, float] = dict.fromkeys(self.together["rates"], 0.0)
        for (_, target), tuples in self.flow.items():
            found[target] += tuples
        return {name: tuples or 1.0 for name, tuples in found.items()}

    def measured(self, run: Run) -> float:
        """Tuples/s that the source lets in, in the long run.

        Queues that still fill make operators before them quicker than they will be, so the slowest
        operator counts.
        """
        rates = {name: seen["in"] or seen["out"] for name, seen in run["rates"].items()}
        return min(r / self.enters[name] for name, r in rates.items() if r > LEAST_RATE)

    def seconds(self, run: Run) -> dict[str, float]:
        """Core seconds of every operator per tuple that the source lets in, with its garbage."""
        tuples = {name: seen["in"] or seen["out"] for name, seen in run["rates"].items()}
        cpu = {n: run["cpu"].get(n, 0.0) / (tuples[n] or 1.0) * self.enters[n] for n in tuples}
        besides = run["besides"] / self.measured(run)
        return {name: cost * (1 + besides / sum(cpu.values())) for name, cost in cpu.items()}

    @property
    def overhead(self) -> float:
        """Core seconds per remote tuple and end: what being apart costs, in whatever threads."""
        apart, ends = self.apart, 0.0
        for (source, target), tuples in self.flow.items():
            on = [counts(apart["vectors"][name]) for name in (source, target)]
            ends += 2 * tuples * remote_share(*on)
        network = apart["network"] / self.measured(apart)
        dearer = sum(self.seconds(apart).values()) - sum(self.seconds(self.together).values())
        return (network + max(0.0, dearer)) / ends

    def graph(self, run: Run) -> StreamGraph:
        """The job with the parallelism of a placement."""
        cost, sizes = self.seconds(self.together), self.apart["rates"]
        fed = {target for _, target in self.flow}
        operators = [
            Operator(
                name,
                cost[name] / self.enters[name] * MIPS * 1e6,
                rate=0.0 if name in fed else OFFERED,
                parallelism=len(run["vectors"][name]),
            )
            for name in self.enters
        ]
        kinds = {(source, target): kind for source, target, kind in self.together["edges"]}
        streams = [
            Stream(
                source,
                target,
                tuples / self.enters[source],
                sizes[target]["bytes"] / (sizes[target]["in"] or 1.0),
                kinds[source, target],
            )
            for (source, target), tuples in self.flow.items()
        ]
        return StreamGraph.of("job", operators, streams)

    def predicted(self, run: Run, cluster: Cluster) -> float:
        """Tuples/s that a placement sustains in the steady state."""
        split = expand(self.graph(run))
        assignment = {
            subtask: device
            for name, devices in run["vectors"].items()
            for subtask, device in zip(split.subtasks(name), devices, strict=True)
        }
        return OFFERED * simulate(split.graph, assignment, cluster).relative_throughput


def cluster_of(
    devices: Sequence[str], cores: float, bandwidth: float, java: float, overhead: float
) -> Cluster:
    """Limited devices, as ``streamplace flink cluster`` writes them."""
    device = {
        "mips": cores * MIPS,
        "reserved": java * MIPS,
        "egress": bandwidth,
        "ingress": bandwidth,
    }
    return cluster_from_tables(
        {
            "bandwidth": bandwidth,
            "framing": FRAMING,
            "headroom": HEADROOM,
            "overhead": overhead,
            "devices": [{"name": name, **device} for name in devices],
        }
    )


def bare_cluster(devices: Sequence[str], cores: float, bandwidth: float) -> Cluster:
    """The same devices when nothing is known of Java and the network."""
    card = {"egress": bandwidth, "ingress": bandwidth}
    rows = [{"name": name, "mips": cores * MIPS, **card} for name in devices]
    return cluster_from_tables({"bandwidth": bandwidth, "devices": rows})


def java_of(runs: Sequence[Run]) -> float:
    """Core seconds per second that Java takes of a TaskManager, the median of the probes."""
    return median(run["java"] for run in runs if run["placement"] in PROBES)
