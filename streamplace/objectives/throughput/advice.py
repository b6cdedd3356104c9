"""Advice: the move of one operator, or of two neighbours, that raises the throughput most."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from streamplace.model.arrays import Ints
from streamplace.model.problem import Problem

if TYPE_CHECKING:
    from streamsim.steady import Bottleneck

MOST_CANDIDATES = 64


@dataclass(frozen=True, slots=True)
class RateAdvice:
    """Operators to move to a device, and the resulting relative throughput."""

    operators: tuple[str, ...]
    device: str
    relative_throughput: float


def best_move(problem: Problem, placement: Ints, top: "Bottleneck") -> RateAdvice | None:
    """Return the best legal move of an operator at the bottleneck, or of it and a neighbour.

    Operators that must share a device with them move, too. None if no such move lowers the load
    of the fullest resource.
    """
    from streamsim import throughput
    from streamsim.incremental import Incremental

    state = Incremental(problem.instance, placement)
    least, best = state.peak * (1 - 1e-9), None
    for group in _together(problem, _candidates(problem, placement, top)):
        for d in range(problem.n_devices):
            if problem.rules is not None and not problem.legal(_moved(placement, group, d))[0]:
                continue
            for v in group:
                state.move(v, d)
            if state.peak < least:
                least, best = state.peak, (group, d)
            for v in group:
                state.move(v, int(placement[v]))
    if best is None:
        return None
    group, d = best
    return RateAdvice(
        tuple(problem.graph.operators.name[v] for v in group),
        problem.cluster.devices.name[d],
        float(throughput(problem.instance, _moved(placement, group, d)[None, :])[0]),
    )


def _moved(placement: Ints, group: tuple[int, ...], d: int) -> Ints:
    """Copy of a placement, with a group of operators on device d."""
    moved = placement.copy()
    moved[list(group)] = d
    return moved


def _together(problem: Problem, groups: list[tuple[int, ...]]) -> Iterable[tuple[int, ...]]:
    """Extend groups by the operators that must share a device with theirs, without duplicates."""
    if problem.rules is None:
        return groups
    unit = problem.rules.unit
    whole = (np.flatnonzero(np.isin(unit, unit[list(group)])) for group in groups)
    return dict.fromkeys(tuple(rows.tolist()) for rows in whole)


def _candidates(problem: Problem, placement: Ints, top: "Bottleneck") -> list[tuple[int, ...]]:
    """Operators at the bottleneck, and pairs of them with a neighbour."""
    instance = problem.instance
    a, b = placement[instance.source], placement[instance.target]
    if top.kind in ("device", "core"):
        rows = np.flatnonzero(placement == top.device)
        heavy = rows[np.argsort(-instance.full_load[rows, instance.device_type[top.device]])]
    else:
        sender = a == top.device if top.kind != "ingress" else b == top.device
        on_it = sender & (a != b) & ((b == top.peer) if top.kind == "link" else True)
        streams = np.flatnonzero(on_it)
        streams = streams[np.argsort(-instance.traffic[streams])][:MOST_CANDIDATES]
        heavy = np.fromiter(
            dict.fromkeys(
                chain.from_iterable((instance.source[e], instance.target[e]) for e in streams)
            ),
            np.int32,
        )
    singles = [(int(v),) for v in heavy[:MOST_CANDIDATES]]
    touching = np.isin(instance.source, heavy) | np.isin(instance.target, heavy)
    pairs = np.flatnonzero(touching)[:MOST_CANDIDATES]
    return singles + [(int(instance.source[e]), int(instance.target[e])) for e in pairs]
