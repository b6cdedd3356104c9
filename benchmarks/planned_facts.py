"""Facts of a job that was profiled on limited TaskManagers, and what they predict.

Rates are a row per operator, tuples/s that it reads (``in``) and writes (``out``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import mean
from typing import Any

import numpy as np

from streamplace import Cluster, StreamGraph
from streamplace.flink.advise.fixed_parallelism import with_loose_streams
from streamplace.flink.cpu.limits import CpuShare
from streamplace.flink.measure.cluster import FRAMING, slowness
from streamplace.flink.measure.sampling import Activity
from streamplace.flink.measure.streams import SendingCost
from streamplace.io.clusters import cluster_from_tables
from streamplace.io.graphs import graph_from_dict
from streamplace.model.buffers import is_of_messages
from streamplace.model.defaults import FLINK_HEADROOM
from streamplace.model.expansion import Expansion, expand
from streamplace.model.graph import PROFILE_WINDOWS
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.subtasks import with_parallelism
from streamplace.model.units import LARGEST
from streamplace.planning.offers import Catalogue, Offer

MIPS = 1000.0
"""Speed of a whole core, a unit of account."""
CORES = {"small": 0.15, "large": 0.20}
PRICES = {"small": 1.0, "large": 1.3}
BANDWIDTH = 200e6
KEY_GROUPS, FEWER_GROUPS = 8, {"riot-etl": 4}
"""Largest parallelism; 80 subtasks of riot-etl on three small heaps do not start within 100 s."""
STEADY = 0.05
"""Shares of operators that differ by less are those of a job whose queues are full or empty."""
MOMENTS = 0.1
"""Error of a ratio of two counters of a profile: both ends of its 20 s may be a second apart."""
ALIKE_SECONDS = 0.45
"""Looks at two operators that are less apart are of the same update of Flink's counters."""
LEAST_RATE = 60.0
"""Tuples/s that an operator is sent at least for its rate to be known well."""

Row = Mapping[str, Any]
Rates = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class JobFacts:
    """Facts from the profile of a job.

    Attributes
    ----------
    graph
        The job on one TaskManager, every operator once but for those that are fixed.
    rates
        Of the operators in the profile.
    java
        Cores that Java takes of each TaskManager.
    sending
        CPU cost of remote tuples, in seconds of a whole core.
    fixed
        Operators whose parallelism the program sets itself; plans keep it.
    """

    graph: StreamGraph
    rates: Rates
    java: float
    sending: SendingCost
    fixed: tuple[str, ...] = ()

    @classmethod
    def of(cls, row: Row) -> "JobFacts":
        """Facts from a line of the file; every operator gets the key groups of the runs."""
        graph = graph_from_dict(row["graph"])
        messages = {key: value for key, value in graph.attributes.items() if is_of_messages(key)}
        graph = replace(graph, name=row["job"], attributes={PROFILE_WINDOWS: 1, **messages})
        groups = np.full(graph.n_operators, key_groups(row["job"]), np.int32)
        graph = graph.with_operators(replace(graph.operators, max_parallelism=groups))
        graph = with_loose_streams(graph, row.get("fixed", ()))
        sending = SendingCost(row["per_tuple"], row["per_byte"])
        return cls(graph, row["rates"], row["java"], sending, tuple(row.get("fixed", ())))

    @property
    def cost(self) -> float:
        """Core seconds of all operators per tuple of the sources, but for constant loads."""
        graph = self.graph
        instructions = float((graph.input_rate * graph.charged_ipt).sum())
        return instructions / (MIPS * 1e6) / graph.source_rate

    @cached_property
    def ratios(self) -> dict[tuple[str, str], float]:
        """Tuples of every stream per tuple that its source writes, whatever the stream.

        Operators are counted at different moments of a second, so ratios are whole where they have
        to be: the only stream of an operator carries all that it writes, or copies of it.
        """
        names = self.graph.operators.name
        ratios = {}
        streams = self.graph.streams
        number = np.bincount(streams.source, minlength=len(names))
        for u, v, selectivity in zip(
            streams.source.tolist(),
            streams.target.tolist(),
            streams.selectivity.tolist(),
            strict=True,
        ):
            rates = self.rates[names[u]]
            ratio = selectivity * (rates["in"] or rates["out"]) / rates["out"]
            if number[u] == 1 or abs(ratio - 1) < MOMENTS:
                ratio = max(1.0, round(ratio))
            ratios[names[u], names[v]] = ratio
        return ratios

    def dearer(self, factor: float) -> "JobFacts":
        """Facts of a job whose operators and streams take so many times the CPU."""
        graph = self.graph
        graph = replace(graph, streams=replace(graph.streams, ipt=factor * graph.streams.ipt))
        rows = graph.operators
        rows = replace(rows, ipt=factor * rows.ipt, constant=factor * rows.constant)
        return replace(self, graph=graph.with_operators(rows))

    def limited(self, max_rates: Mapping[str, float]) -> "JobFacts":
        """Facts of a job of which some operators have these largest rates of a subtask."""
        rows = self.graph.operators
        limits = dict(zip(rows.name, rows.max_rate.tolist(), strict=True)) | dict(max_rates)
        rows = replace(rows, max_rate=np.array([limits[name] for name in rows.name]))
        return replace(self, graph=self.graph.with_operators(rows))

    def capacity(self, deployment: Row) -> float:
        """Tuples/s of the sources that a deployment carries by prediction."""
        cluster = self.cluster(deployment["cores"])
        split, placement = _deployed(self.graph, cluster, deployment["vectors"])
        return capacity(split, cluster, placement)

    def cluster(self, cores: Mapping[str, float]) -> Cluster:
        """Limited devices, as ``streamplace flink cluster`` writes them."""
        slow = self.sending.slower(slowness(map(CpuShare, cores.values())))
        card = {"egress": BANDWIDTH, "ingress": BANDWIDTH, "reserved": self.java * MIPS}
        devices = [{"name": name, "mips": c * MIPS, **card} for name, c in cores.items()]
        return cluster_from_tables(
            {
                "bandwidth": LARGEST,
                "framing": FRAMING,
                "headroom": FLINK_HEADROOM,
                "overhead": slow.per_tuple,
                "overhead_per_byte": slow.per_byte,
                "devices": devices,
            }
        )

    def catalogue(self) -> Catalogue:
        """Both types of machines, without what is left for bursts; Java's CPU is reserved."""
        cluster = self.cluster(CORES)
        offers = []
        for name, price in PRICES.items():
            offers.append(replace(Offer.of_device(cluster.devices[name]), name=name, price=price))
        return Catalogue(tuple(offers), cluster.overhead_s, cluster.overhead_s_per_byte)

    def received(self, rates: Rates, rate: float) -> float:
        """Least share of a run: of the rate that sources emit, or of what is sent that is read."""
        sent = dict.fromkeys(rates, 0.0)
        for (source, target), ratio in self.ratios.items():
            sent[target] += ratio * rates[source]["out"]
        fed = {target for _, target in self.ratios}
        shares = [sum(rates[name]["out"] for name in rates if name not in fed) / rate]
        shares += [rates[name]["in"] / n for name, n in sent.items() if n >= LEAST_RATE]
        return min(shares)

    def throughput(self, rates: Rates) -> float:
        """Tuples/s of the sources that a run sustained: those of its slowest operator."""
        return min(self._in_source_tuples(rates))

    def is_steady(self, rates: Rates) -> bool:
        """Whether all operators sustained about the same."""
        sustained = self._in_source_tuples(rates)
        return max(sustained) <= (1 + STEADY) * min(sustained)

    def _in_source_tuples(self, rates: Rates) -> list[float]:
        expected = self.graph.input_rate / self.graph.source_rate
        sustained = []
        for name, per_tuple in zip(self.graph.operators.name, expected.tolist(), strict=True):
            tuples = rates[name]["in"] or rates[name]["out"]
            if tuples >= LEAST_RATE:
                sustained.append(tuples / per_tuple)
        return sustained


def key_groups(job: str) -> int:
    """Key groups of a job's operators."""
    return FEWER_GROUPS.get(job, KEY_GROUPS)


def capacity(split: Expansion, cluster: Cluster, placement: Placement) -> float:
    """Tuples/s of the sources that a placement of subtasks carries by prediction."""
    from streamsim import bottleneck, resource_loads

    problem = Problem(split.graph, cluster)
    loads = resource_loads(problem.instance, placement.index)
    return float(split.original.source_rate / bottleneck(loads).load)


def _deployed(
    graph: StreamGraph, cluster: Cluster, vectors: Mapping[str, Sequence[str]]
) -> tuple[Expansion, Placement]:
    """Subtasks of a graph, and their placement on the devices of the vectors."""
    numbers = np.array([len(vectors[name]) for name in graph.operators.name], np.int32)
    split = expand(with_parallelism(graph, numbers))
    assignment = {
        subtask: device
        for name, vector in vectors.items()
        for subtask, device in zip(split.subtasks(name), vector, strict=True)
    }
    names = split.graph.operators.name
    return split, Placement.of(names, cluster.devices.name, assignment)


def rates_of(activity: Mapping[str, Activity]) -> Rates:
    """Tuples/s of every operator, each between its own moments."""
    return {
        name: {"in": round(own.records_in, 1), "out": round(own.records_out, 1)}
        for name, own in activity.items()
    }


def rates_together(activity: Mapping[str, Activity]) -> Rates:
    """Tuples/s of every operator, of all between the same two updates of Flink's counters."""
    readings = {name: own.readings for name, own in activity.items()}
    anchor = next(iter(readings.values()))
    rounds = []
    for moment, _ in anchor:
        near = {
            name: min(own, key=lambda look: abs(look[0] - moment))
            for name, own in readings.items()
            if own
        }
        if len(near) == len(readings) and all(
            abs(look[0] - moment) < ALIKE_SECONDS for look in near.values()
        ):
            rounds.append(near)
    if len(rounds) < 2:
        return rates_of(activity)
    first, last = rounds[0], rounds[-1]
    span = mean(last[name][0] - first[name][0] for name in readings)
    return {
        name: {
            key: round((last[name][1].get(metric, 0) - first[name][1].get(metric, 0)) / span, 1)
            for key, metric in (("in", "numRecordsIn"), ("out", "numRecordsOut"))
        }
        for name in readings
    }
