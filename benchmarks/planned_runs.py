"""Plans for limited TaskManagers, the best placement on one machine less, and what runs tell.

Rates are a row per operator, tuples/s that it reads (``in``) and writes (``out``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from streamplace import Cluster, StreamGraph, place, plan
from streamplace.engines.flink.cpu.limits import CpuShare
from streamplace.engines.flink.measure.cluster import FRAMING, HEADROOM, slowness
from streamplace.engines.flink.measure.sending_cost import SendingCost
from streamplace.engines.flink.program.fixed import with_loose_streams
from streamplace.errors import ProblemError
from streamplace.io.clusters import cluster_from_tables
from streamplace.io.graphs import graph_from_dict
from streamplace.model.buffers import is_of_messages
from streamplace.model.expansion import Expansion, expand
from streamplace.model.graph import PROFILE_WINDOWS
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.units import LARGEST
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.result import PlanResult

MIPS = 1000.0
"""Speed of a whole core, a unit of account."""
DEVICES = tuple(f"tm-{i}" for i in range(8))
CORES = {"small": 0.15, "large": 0.20}
PRICES = {"small": 1.0, "large": 1.3}
BANDWIDTH = 200e6
EIGHTH = 0.12
"""Cores of a TaskManager where there are eight."""
KEY_GROUPS, FEWER_GROUPS = 8, {"riot-etl": 4}
"""Largest parallelism; 80 subtasks of riot-etl on three small heaps do not start within 100 s."""
LEVELS = (0.25, 0.35, 0.45, 0.55)
"""Rates of a job, by the cores that its operators need in all."""
WHICH, SEED = ("plan", "less"), 20_280
PLACEMENTS = 3
"""Placements of each job on eight TaskManagers."""
RUN_SECONDS, WARM_SECONDS, JOB_SECONDS = 33.0, 40.0, 90.0
"""Approximate duration of a run, of warming up a job, and of profiling it and making its plans."""
OFFERED = 1.1
"""What is offered on eight TaskManagers, as a multiple of what is predicted."""
CARRIED = 0.98
"""Share of what is offered, or sent to an operator, that must be received."""
STEADY = 0.05
"""Shares of operators that differ by less are those of a job whose queues are full or empty."""
LEAST_RATE = 60.0
"""Tuples/s that an operator is sent at least for its rate to be known well."""
SEARCH_SECONDS = 4.0
CONFIDENCE = 0.9
NOISE, LEAST_RATIO = 0.03, 0.5
"""Share by which runs of one placement differ, and the least that a correction believes."""

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
        operators = replace(graph.operators, max_parallelism=groups)
        graph = replace(graph, operators=operators, streams=_of(graph, operators))
        graph = with_loose_streams(graph, {(u, v) for u, v in row.get("loose", ())})
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
        """Tuples of every stream per tuple that its source writes, whatever the stream."""
        names = self.graph.operators.name
        found = {}
        streams = self.graph.streams
        for u, v, selectivity in zip(
            streams.source.tolist(),
            streams.target.tolist(),
            streams.selectivity.tolist(),
            strict=True,
        ):
            seen = self.rates[names[u]]
            found[names[u], names[v]] = selectivity * (seen["in"] or seen["out"]) / seen["out"]
        return found

    def dearer(self, factor: float) -> "JobFacts":
        """Facts of a job whose operators and streams take so many times the CPU."""
        graph = self.graph
        streams = replace(graph.streams, ipt=factor * graph.streams.ipt)
        rows = graph.operators
        rows = replace(rows, ipt=factor * rows.ipt, constant=factor * rows.constant)
        graph = replace(graph, operators=rows, streams=replace(streams, operators=rows))
        return replace(self, graph=graph)

    def cluster(self, cores: Mapping[str, float], *, is_all_free: bool = False) -> Cluster:
        """Limited devices, as ``streamplace flink cluster`` writes them; or all of their CPU."""
        slow = self.sending.slower(slowness(map(CpuShare, cores.values())))
        reserved, headroom = (0.0, 0.0) if is_all_free else (self.java * MIPS, HEADROOM)
        card = {"egress": BANDWIDTH, "ingress": BANDWIDTH, "reserved": reserved}
        devices = [{"name": name, "mips": c * MIPS, **card} for name, c in cores.items()]
        return cluster_from_tables(
            {
                "bandwidth": LARGEST,
                "framing": FRAMING,
                "headroom": headroom,
                "overhead": slow.per_tuple,
                "overhead_per_byte": slow.per_byte,
                "devices": devices,
            }
        )

    def catalogue(self) -> Catalogue:
        """Both types of machines, with what is left of them beside Java and bursts."""
        cluster = self.cluster(CORES)
        offers = []
        for name, price in PRICES.items():
            device = cluster.devices[name]
            card = {"egress": device.egress, "ingress": device.ingress}
            offers.append(Offer(name, price, device.mips, **card))
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
        found = self._in_source_tuples(rates)
        return max(found) <= (1 + STEADY) * min(found)

    def _in_source_tuples(self, rates: Rates) -> list[float]:
        expected = self.graph.input_rate / self.graph.source_rate
        found = []
        for name, per_tuple in zip(self.graph.operators.name, expected.tolist(), strict=True):
            tuples = rates[name]["in"] or rates[name]["out"]
            if tuples >= LEAST_RATE:
                found.append(tuples / per_tuple)
        return found


def key_of(row: Row) -> tuple[Any, ...]:
    """Key of a line: what it measures."""
    return tuple(row.get(k) for k in ("kind", "job", "level", "which", "repeat", "placement"))


def in_random_order(job: str, repeat: int) -> list[tuple[float, str]]:
    """Runs of a job in a repeat, all rates mixed."""
    runs = [(level, which) for level in LEVELS for which in WHICH]
    order = np.random.default_rng([SEED, repeat, *map(ord, job)]).permutation(len(runs))
    return [runs[i] for i in order]


def seconds_left(done: set[tuple[Any, ...]], jobs: Sequence[str], repeats: int) -> float:
    """How long what is missing will take; corrections are not known beforehand."""
    seconds = WARM_SECONDS * len(jobs)
    for job in jobs:
        profile_key = key_of({"kind": "profile", "job": job})
        seconds += JOB_SECONDS * (profile_key not in done)
        eight = ({"kind": "eight", "job": job, "placement": n} for n in range(PLACEMENTS))
        seconds += RUN_SECONDS * sum(key_of(row) not in done for row in eight)
        for repeat in range(repeats):
            for level, which in in_random_order(job, repeat):
                row = {"kind": "run", "job": job, "level": level, "which": which, "repeat": repeat}
                seconds += RUN_SECONDS * (key_of(row) not in done)
    return seconds


def key_groups(job: str) -> int:
    """Key groups of a job's operators."""
    return FEWER_GROUPS.get(job, KEY_GROUPS)


def _of(graph: StreamGraph, operators: Any) -> Any:
    return replace(graph.streams, operators=operators)


def parallel(graph: StreamGraph, parallelism: Mapping[str, int]) -> StreamGraph:
    """Graph whose operators have so many subtasks."""
    numbers = np.array([parallelism[name] for name in graph.operators.name], np.int32)
    operators = replace(graph.operators, parallelism=numbers)
    return replace(graph, operators=operators, streams=_of(graph, operators))


def capacity(split: Expansion, cluster: Cluster, placement: Placement) -> float:
    """Tuples/s of the sources that a placement of subtasks carries by prediction."""
    from streamsim import bottleneck, resource_loads

    problem = Problem(split.graph, cluster)
    loads = resource_loads(problem.instance, placement.index)
    return float(split.original.source_rate / bottleneck(loads).load)


def placed(split: Expansion, cluster: Cluster, vectors: Mapping[str, Sequence[str]]) -> Placement:
    """Placement of the subtasks of every operator on the devices of its vector."""
    assignment = {
        subtask: device
        for name, vector in vectors.items()
        for subtask, device in zip(split.subtasks(name), vector, strict=True)
    }
    return Placement.of(split.graph.operators.name, cluster.devices.name, assignment)


def planned_pair(facts: JobFacts, level: float) -> dict[str, Any]:
    """Plan for a rate, and the best placement without its cheapest machine, as a line.

    The plan holds with `CONFIDENCE` by the recorded runs of other jobs. It has no headroom beside
    that: what is measured is whether it carries the rate, not how soon it catches up after a
    restart.
    """
    always = float(facts.graph.operators.constant.sum()) / MIPS
    if always >= level:
        raise SystemExit(f"{facts.graph.name} uses {always:.2f} cores at any rate; raise LEVELS")
    rate, catalogue = (level - always) / facts.cost, facts.catalogue()
    result = plan(
        facts.graph,
        rate=rate,
        offers=catalogue,
        keep_parallelism=facts.fixed,
        confidence=CONFIDENCE,
        budget=SEARCH_SECONDS,
    )
    assert result.errors is not None
    return {
        "level": level,
        "rate": rate,
        **_bought(result),
        "errors": result.errors.to_json(),
        "less": _deployment(*_without_cheapest(facts, result, catalogue)),
        "less_cost": result.cost - min(PRICES[name] for name in result.machines),
    }


def corrected_pair(facts: JobFacts, pair: Row, measured: float) -> dict[str, Any]:
    """Plan after a run that did not carry its rate, with costs re-scaled by what it sustained.

    The reserve for what the profile did not know is not charged again, only the noise of runs:
    otherwise the correction would overshoot by that reserve.
    """
    short = min(1.0, max(LEAST_RATIO, measured / pair["plan"]["predicted"]))
    result = plan(
        facts.dearer((1 + NOISE) / short).graph,
        rate=pair["rate"],
        offers=facts.catalogue(),
        keep_parallelism=facts.fixed,
        confidence=0,
        budget=SEARCH_SECONDS,
    )
    return {"level": pair["level"], "ratio": short, **_bought(result)}


def _bought(result: PlanResult) -> dict[str, Any]:
    split = expand(result.graph)
    whole = capacity(split, result.cluster, result.placement), split, result.placement
    return {
        "machines": dict(result.machines),
        "cost": result.cost,
        "bound": float(result.bound),
        "plan": _deployment(*whole),
    }


def _without_cheapest(
    facts: JobFacts, result: PlanResult, catalogue: Catalogue
) -> tuple[float, Expansion, Placement]:
    """Best placement that is found without the cheapest machine: by `plan` and by `place`."""
    names = result.cluster.devices.name
    cheapest = min(result.machines, key=lambda name: PRICES[name])
    gone = max(i for i, name in enumerate(names) if type_of(name) == cheapest)
    counts = {name: n - (name == cheapest) for name, n in result.machines.items()}
    split = expand(result.graph)
    left = replace_devices(result.cluster, [i for i in range(len(names)) if i != gone])
    found = place(
        Problem(split.graph.at_rate(10 * result.rate), left), seed=0, budget=SEARCH_SECONDS
    )
    best = capacity(split, left, found.placement), split, found.placement
    offers = tuple(
        replace(offer, at_most=counts[offer.name])
        for offer in catalogue.offers
        if counts.get(offer.name)
    )
    for share in (1.0, 0.99, 0.97) if result.cheaper is not None else ():
        assert result.cheaper is not None
        try:
            fewer = plan(
                facts.graph,
                rate=share * result.cheaper.rate,
                offers=replace(catalogue, offers=offers),
                keep_parallelism=facts.fixed,
                budget=SEARCH_SECONDS,
            )
        except ProblemError:
            continue
        other = expand(fewer.graph)
        carried = capacity(other, fewer.cluster, fewer.placement)
        return max(best, (carried, other, fewer.placement), key=lambda one: one[0])
    return best


def replace_devices(cluster: Cluster, rows: Sequence[int]) -> Cluster:
    """Cluster of some of its devices."""
    devices = [cluster.devices[cluster.devices.name[i]] for i in rows]
    return Cluster.of(
        devices,
        bandwidth=LARGEST,
        overhead=cluster.overhead_s,
        overhead_per_byte=cluster.overhead_s_per_byte,
    )


def type_of(machine: str) -> str:
    """Type of a planned machine.

    >>> type_of("small-0"), type_of("small")
    ('small', 'small')
    """
    return machine if machine in CORES else machine.rpartition("-")[0]


def _deployment(carried: float, split: Expansion, placement: Placement) -> dict[str, Any]:
    """Which TaskManager has how many cores, and which subtasks are where."""
    machines = sorted(placement.devices, key=lambda name: -CORES[type_of(name)])
    task_manager = dict(zip(machines, DEVICES, strict=False))
    vectors = {
        name: [task_manager[m] for m, count in sorted(where.items()) for _ in range(count)]
        for name, where in split.fold_names(placement).items()
    }
    cores = {task_manager[name]: CORES[type_of(name)] for name in machines}
    return {"predicted": carried, "cores": cores, "vectors": vectors}


def scattered(facts: JobFacts, rng: np.random.Generator) -> dict[str, Any]:
    """A random placement on eight TaskManagers, each with some subtasks, and its prediction."""
    operators = facts.graph.operators
    names, p = operators.name, 2 if len(operators) > 6 else 3
    kept = dict(zip(names, operators.parallelism.tolist(), strict=True))
    subtasks = {v: kept[v] if v in facts.fixed else p for v in names}
    while True:
        vectors = {v: sorted(map(str, rng.choice(DEVICES, n))) for v, n in subtasks.items()}
        used = [device for vector in vectors.values() for device in vector]
        if len(set(used)) == len(DEVICES):
            break
    split = expand(parallel(facts.graph, subtasks))
    cores = dict.fromkeys(DEVICES, EIGHTH)
    cluster = facts.cluster(cores)
    predicted = capacity(split, cluster, placed(split, cluster, vectors))
    return {"predicted": predicted, "cores": cores, "vectors": vectors}
