"""Facts of a profiled job, what they predict, and its plans for limited TaskManagers.

Rates are a row per operator, tuples/s that it reads (``in``) and writes (``out``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import mean
from typing import Any

import numpy as np
from calibration import assignment_of, limited_devices

from streamplace import Cluster, StreamGraph, place, plan
from streamplace.errors import ProblemError
from streamplace.flink.advise.fixed_parallelism import with_loose_streams
from streamplace.flink.measure.sampling import Activity
from streamplace.flink.measure.streams import SendingCost
from streamplace.io.graphs import graph_from_dict
from streamplace.model.buffers import is_of_messages
from streamplace.model.expansion import Expansion, expand
from streamplace.model.graph import PROFILE_WINDOWS
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.subtasks import with_parallelism
from streamplace.model.units import MAX_VALUE
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.result import PlanResult

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
    """Facts from the profile of a job."""

    graph: StreamGraph  # on one TaskManager, every operator once but for those that are fixed
    rates: Rates  # of the operators in the profile
    java: float  # cores that Java takes of each TaskManager
    sending: SendingCost  # CPU cost of remote tuples, in seconds of a whole core
    fixed: tuple[str, ...] = ()  # operators whose parallelism the program sets; plans keep it

    @classmethod
    def of(cls, row: Row) -> "JobFacts":
        """Facts from a line of the file; every operator gets the key groups of the runs."""
        graph = graph_from_dict(row["graph"] | {"streams": joined(row["graph"]["streams"])})
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
        return limited_devices(cores, MIPS, self.java, self.sending, BANDWIDTH, MAX_VALUE)

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


def joined(streams: Sequence[Row]) -> list[dict[str, Any]]:
    """Streams, of which those between the same operators are one with their selectivity in all."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in streams:
        one = found.setdefault((row["from"], row["to"]), {**row, "selectivity": 0.0})
        one["selectivity"] += row.get("selectivity", 1.0)
    return list(found.values())


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
    names, devices = split.graph.operators.name, cluster.devices.name
    return split, Placement.of(names, devices, assignment_of(split, vectors))


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


DEVICES = tuple(f"tm-{i}" for i in range(8))
EIGHTH = 0.12
"""Cores of a TaskManager where there are eight."""
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
SEARCH_SECONDS = 4.0
CONFIDENCE = 0.9
NOISE, LEAST_RATIO = 0.03, 0.5
"""Share by which runs of one placement differ, and the least that a correction believes."""


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


def corrected_pair(
    facts: JobFacts, pair: Row, measured: float, max_rates: Mapping[str, float]
) -> dict[str, Any]:
    """Plan after a run that did not carry its rate, with costs re-scaled by what it sustained.

    The largest rates of subtasks are those that a profile of this run found; what they explain does
    not make costs higher.

    The reserve for what the profile did not know is not charged again, only the noise of runs:
    otherwise the correction would overshoot by that reserve.
    """
    facts = facts.limited(max_rates)
    predicted = min(pair["plan"]["predicted"], facts.capacity(pair["plan"]))
    short = min(1.0, max(LEAST_RATIO, measured / predicted))
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
    try:
        fewer = plan(
            facts.graph,
            rate="max",
            offers=replace(catalogue, offers=offers),
            keep_parallelism=facts.fixed,
            budget=SEARCH_SECONDS,
        )
    except ProblemError:
        return best
    other = expand(fewer.graph)
    carried = capacity(other, fewer.cluster, fewer.placement)
    return max(best, (carried, other, fewer.placement), key=lambda one: one[0])


def replace_devices(cluster: Cluster, rows: Sequence[int]) -> Cluster:
    """Cluster of some of its devices."""
    devices = [cluster.devices[cluster.devices.name[i]] for i in rows]
    return Cluster.of(
        devices,
        bandwidth=MAX_VALUE,
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
    where = {"cores": dict.fromkeys(DEVICES, EIGHTH), "vectors": vectors}
    return {"predicted": facts.capacity(where), **where}
