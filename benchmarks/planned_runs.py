"""Plans for limited TaskManagers, the best placement on one machine less, and random placements."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from planned_facts import CORES, MIPS, PRICES, JobFacts, Row, capacity

from streamplace import Cluster, place, plan
from streamplace.errors import ProblemError
from streamplace.model.expansion import Expansion, expand
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.units import LARGEST
from streamplace.planning.offers import Catalogue
from streamplace.planning.result import PlanResult

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
    where = {"cores": dict.fromkeys(DEVICES, EIGHTH), "vectors": vectors}
    return {"predicted": facts.capacity(where), **where}
