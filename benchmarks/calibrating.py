"""Calibration of a Flink job from two probe runs, and predictions for its placements.

A run is a line of `calibration.py`'s file: tuples/s and CPU of every operator under a placement,
and what its TaskManagers took besides.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

import numpy as np

from streamplace import Cluster, Operator, Stream, StreamGraph, simulate
from streamplace.flink.measure.cluster import FRAMING
from streamplace.flink.measure.streams import (
    BYTES_OF_A_TUPLE,
    RemoteFlow,
    SendingCost,
    remote_shares,
)
from streamplace.io.clusters import cluster_from_tables
from streamplace.model.defaults import FLINK_HEADROOM
from streamplace.model.expansion import expand

PROBES = TOGETHER, IN_TURN, CHAINED = "together", "in turn", "chained"
MIPS = 1000.0
"""Speed of a whole core, a unit of account."""
OFFERED = 1e6
DIFFERENT = 2.0
"""Minimum ratio of mean tuple sizes for telling costs per tuple and per byte apart."""
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

    @cached_property
    def sizes(self) -> dict[str, float]:
        """Bytes per tuple that every operator receives."""
        rates = self.apart["rates"]
        return {name: seen["bytes"] / (seen["in"] or 1.0) for name, seen in rates.items()}

    @property
    def remote_flows(self) -> dict[str, RemoteFlow]:
        """Device → what it sends and receives where operators are dealt out in turn."""
        apart, rate = self.apart, self.measured(self.apart)
        tuples: dict[str, float] = defaultdict(float)
        traffic: dict[str, float] = defaultdict(float)
        for (source, target), carried in self.flow.items():
            on = [Counter(apart["vectors"][name]) for name in (source, target)]
            for device, share in remote_shares(*on).items():
                tuples[device] += rate * carried * share
                traffic[device] += rate * carried * share * self.sizes[target]
        return {device: RemoteFlow(tuples[device], traffic[device]) for device in tuples}

    def graph(self, run: Run) -> StreamGraph:
        """The job with the parallelism of a placement."""
        cost = self.seconds(self.together)
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
                self.sizes[target],
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


def sending_of(calibrations: Mapping[str, Calibration]) -> SendingCost:
    """CPU cost of remote tuples on a cluster, from the traffic of its devices in all jobs."""
    flows, network = {}, {}
    for job, seen in calibrations.items():
        for device, flow in seen.remote_flows.items():
            flows[f"{job} {device}"] = flow
            network[f"{job} {device}"] = seen.apart["networks"][device]
    return least_squares(network, flows)


def least_squares(cores: Mapping[str, float], flows: Mapping[str, RemoteFlow]) -> SendingCost:
    """Cost per tuple and per byte without a part at any rate, told apart where sizes differ."""
    rows = [(*flow, cores[key]) for key, flow in flows.items() if flow.tuples > 0]
    if not rows:
        return SendingCost(0.0, 0.0)
    tuples, traffic, taken = np.array(rows, np.float64).T
    sizes = traffic / tuples
    if not (sizes.min() > 0 and sizes.max() >= DIFFERENT * sizes.min()):
        per_byte = float(taken.sum() / (BYTES_OF_A_TUPLE * tuples + traffic).sum())
        return SendingCost(BYTES_OF_A_TUPLE * per_byte, per_byte)
    amounts = np.stack([tuples, traffic], axis=1)
    both = np.linalg.lstsq(amounts, taken, rcond=None)[0]
    if (both >= 0).all():
        return SendingCost(float(both[0]), float(both[1]))
    alone = (amounts * taken[:, None]).sum(axis=0) / (amounts**2).sum(axis=0)
    rest = ((taken[:, None] - amounts * alone) ** 2).sum(axis=0)
    if rest[0] <= rest[1]:
        return SendingCost(float(alone[0]), 0.0)
    return SendingCost(0.0, float(alone[1]))


def cluster_of(
    devices: Sequence[str], cores: float, bandwidth: float, java: float, sending: SendingCost
) -> Cluster:
    """Limited devices, as ``streamplace flink cluster`` writes them."""
    slow = sending.slower(1 / cores)
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
            "headroom": FLINK_HEADROOM,
            "overhead": slow.per_tuple,
            "overhead_per_byte": slow.per_byte,
            "devices": [{"name": name, **device} for name in devices],
        }
    )


def java_of(runs: Sequence[Run]) -> float:
    """Core seconds per second that Java takes of a TaskManager, the median of the probes."""
    return median(run["java"] for run in runs if run["placement"] in PROBES)
