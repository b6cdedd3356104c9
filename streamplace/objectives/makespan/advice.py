"""Advice: the move of one operator, or of two neighbours, that shortens a pass most."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamplace.model.arrays import Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.makespan.options import PassOptions

if TYPE_CHECKING:
    from streamsim.passes import Schedule

MOST_CANDIDATES = 64
WORTH = 1e-9
"""Smallest relative gain of a move."""


@dataclass(frozen=True, slots=True)
class PassAdvice:
    """Operators to move to a device, and the resulting makespan."""

    operators: tuple[str, ...]
    device: str
    makespan: float


def best_move(
    problem: Problem, placement: Placement, schedule: "Schedule", options: PassOptions
) -> PassAdvice | None:
    """Return the best legal move of operators on the critical chain; None if none helps."""
    from streamsim.passes import makespans

    groups = _candidates(problem, schedule)
    if not groups:  # a pass that takes no time
        return None
    moves = [(group, d) for group in groups for d in range(problem.n_devices)]
    batch = np.tile(placement.index, (len(moves), 1))
    for row, (group, d) in zip(batch, moves, strict=True):
        row[list(group)] = d
    legal = problem.legal(batch)
    rules, order = options.rules_of(placement)
    values = makespans(problem.one_pass, batch, rules, priorities=order)
    values = np.where(legal, values, np.inf)
    best = int(np.argmin(values))
    if values[best] >= schedule.makespan * (1 - WORTH):
        return None
    group, d = moves[best]
    names = problem.graph.operators.name
    return PassAdvice(
        tuple(names[v] for v in group), problem.cluster.devices.name[d], float(values[best])
    )


def _candidates(problem: Problem, schedule: "Schedule") -> list[tuple[int, ...]]:
    """Operators of the critical chain, and pairs that are joined by a stream of it."""
    streams = problem.graph.streams
    lasting = np.argsort(-schedule.chain.seconds, kind="stable")
    sent: Ints = schedule.chain.stream[lasting]
    pairs = dict.fromkeys((int(streams.source[e]), int(streams.target[e])) for e in sent if e >= 0)
    ends = [v for pair in pairs for v in pair]
    singles = dict.fromkeys([*schedule.chain.operator[lasting].tolist(), *ends])
    alone = list(singles)[:MOST_CANDIDATES]
    return [*((v,) for v in alone), *list(pairs)[:MOST_CANDIDATES]]
