"""Notes on plans: what a reader of the graph would not expect of the parallelisms and machines."""

from collections.abc import Iterator
from math import isfinite

import numpy as np

from streamplace.model.arrays import Ints
from streamplace.model.assumptions import NO_CPU, of_memory, of_payload
from streamplace.model.messages import counted
from streamplace.model.report import some
from streamplace.model.streams import CHAINED
from streamplace.planning.demand import FORWARD
from streamplace.planning.deployment import PlannedDeployment
from streamplace.planning.packed import PackedMachines
from streamplace.planning.problem import PlanProblem
from streamplace.planning.search import least_of_each

MANY = 4
"""Least number of subtasks, where one would do, that is worth a note."""


def notes_of(
    problem: PlanProblem, packed: PackedMachines, deployment: PlannedDeployment
) -> tuple[str, ...]:
    """Notes on what nobody stated, on many subtasks of an operator, and on broken chains."""
    assumed = "; ".join(_assumed(problem))
    return (
        *((f"Assumed: {assumed}.",) if assumed else ()),
        *_as_many(problem, packed),
        *_broken(problem, packed.parallelism, deployment),
    )


def _assumed(problem: PlanProblem) -> Iterator[str]:
    """Costs and limits that neither the graph nor the machines state."""
    graph, offers = problem.graph, problem.catalogue.offers
    memory = of_memory(graph, is_limited=any(isfinite(float(one.memory)) for one in offers))
    yield from filter(None, [memory])
    if not (graph.charged_ipt.any() or graph.operators.constant.any()):
        yield NO_CPU
    yield from of_payload(graph)


def _as_many(problem: PlanProblem, packed: PackedMachines) -> Iterator[str]:
    """Operators of which one subtask would do, with as many as one that is joined one to one."""
    demand, parallelism, name = problem.demand, packed.parallelism, problem.demand.name
    counts = packed.counts(len(problem.catalogue.offers))
    least = least_of_each(demand, problem.catalogue, counts)
    partner: dict[int, tuple[int, bool]] = {}
    for e in np.flatnonzero(demand.one_to_one(parallelism)).tolist():
        u, v = int(demand.source[e]), int(demand.target[e])
        for one, other in ((u, v), (v, u)):
            many = least[one] == 1 < least[other] and parallelism[one] >= MANY
            if many and not demand.keeps[one]:
                partner[one] = other, bool(demand.joined[e] == FORWARD)
    free = [v for v, (_, must) in partner.items() if not must]
    if free:
        names = some([f"{name[v]} ({parallelism[v]})" for v in free], separator=", ", most=4)
        yield (
            f"One subtask would do for {names}; with as many as a neighbour, tuples stay on their "
            f"machines. --keep {name[free[0]]} keeps its parallelism of the graph."
        )
    tied = [v for v, (_, must) in partner.items() if must]
    if tied:
        names = some([f"{name[v]} ({parallelism[v]})" for v in tied], separator=", ", most=4)
        yield (
            f"One subtask would do for {names}, but forward streams give it as many as "
            f"{name[partner[tied[0]][0]]}. Rebalance them to change that; --keep {name[tied[0]]} "
            "keeps both."
        )


def _broken(
    problem: PlanProblem, parallelism: Ints, deployment: PlannedDeployment
) -> Iterator[str]:
    """Chained streams of the graph whose ends run on different machines."""
    streams, first = problem.graph.streams, np.cumsum(parallelism) - parallelism
    where, broken = deployment.placement.index, []
    for e in np.flatnonzero([kind == CHAINED for kind in streams.partitioning]).tolist():
        u, v = int(streams.source[e]), int(streams.target[e])
        lanes = np.arange(parallelism[u])
        apart = int((where[first[u] + lanes] != where[first[v] + lanes]).sum())
        if apart:
            names = problem.demand.name
            broken.append(f"{names[u]} and {names[v]} ({counted(apart, 'pair')} of subtasks)")
    if broken:
        yield (
            f"Chained operators run on different machines, where Flink must not chain them: "
            f"{some(broken, separator=', ', most=4)}."
        )
