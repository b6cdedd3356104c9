"""Candidates: layouts that a measured job may have, with what the model says of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, isfinite

from streamplace.engines.flink.chains import unfused
from streamplace.engines.flink.decision import (
    MEASURED,
    PREDICTED,
    Candidate,
    Decision,
    decide,
    interval,
    moved_subtasks,
)
from streamplace.engines.flink.layouts import MODES, Layout, even_layout, layouts
from streamplace.engines.flink.names import index_name
from streamplace.engines.flink.pinning import Vectors, vectors_of
from streamplace.engines.flink.rest import Rest
from streamplace.engines.flink.worth import capacity
from streamplace.engines.live import Measurement
from streamplace.model.cluster import Cluster
from streamplace.model.expansion import expand
from streamplace.model.graph import StreamGraph
from streamplace.model.intervals import PredictionErrors
from streamplace.model.problem import Problem
from streamplace.model.units import LARGEST
from streamplace.objectives.conditions import composed_objective
from streamplace.placers.registry import USUAL_BUDGET, Budget

SATURATING = 2.0
"""The search is asked for so many times what it has found, until it finds less."""
MOST_RAISES = 8
PRESENT, EVEN, FOUND = "the present layout", "an even spread", "the layout that was found"


@dataclass(frozen=True, slots=True)
class Question:
    """What is known of a job before it is decided where it should run.

    Attributes
    ----------
    measured
        The job and the devices.
    present
        Operator → the device of each of its subtasks.
    slots
        Device → number of slots that Flink may give to the job.
    spreads
        Whether subtasks of one operator can be pinned to several devices.
    rate
        Tuples/s that all sources are offered together; None for as much as possible.
    width
        What predictions may be off by.
    """

    measured: Measurement
    present: Layout
    slots: Mapping[str, int]
    spreads: bool
    rate: float | None = None
    width: float | PredictionErrors = PREDICTED


def decision(question: Question, seed: int = 0, budget: Budget | None = None) -> Decision:
    """Find layouts for a job, judge all of them by the same model, and choose one.

    Where the sources are held back now, predictions are scaled so that the present layout carries
    what was measured.
    """
    measured, graph, cluster = question.measured, question.measured.graph, question.measured.cluster
    rate = question.rate
    if rate is None and not measured.is_limited:
        rate = graph.source_rate
    most = inf if rate is None else rate
    present = _names_of(graph, question.present)

    def carried(layout: Layout) -> float:
        return graph.source_rate * capacity(graph, cluster, layout)

    now = carried(present)
    scale = graph.source_rate / now if measured.is_limited and isfinite(now) else 1.0

    def candidate(name: str, places: list[Layout], mode: object = None) -> Candidate:
        values = [scale * carried(layout) for layout in places]
        middle = sorted(range(len(places)), key=values.__getitem__)[(len(places) - 1) // 2]
        width = MEASURED if name == PRESENT and measured.is_limited else question.width
        return Candidate(
            name,
            places[middle],
            interval(values, width).up_to(most),
            moved_subtasks(present, places[middle]),
            next((one for one in MODES if one == mode), None),
        )

    others = []
    for mode in MODES:
        possible = layouts(graph, question.slots, mode)
        if possible:
            others.append(candidate(f"Flink's own layout {mode}", possible, mode))
    if question.spreads:
        others.append(candidate(EVEN, [even_layout(graph, cluster.devices.name)]))
    sought = searched(graph, cluster, rate, carried, question.spreads, seed, budget)
    others.append(candidate(FOUND, [sought]))
    return decide(candidate(PRESENT, [present]), others)


def searched(
    graph: StreamGraph,
    cluster: Cluster,
    rate: float | None,
    carried: Callable[[Layout], float],
    spreads: bool,
    seed: int = 0,
    budget: Budget | None = None,
) -> Layout:
    """Search a layout for a rate; without one, for rates that grow until they are not carried.

    Parameters
    ----------
    carried
        Tuples/s that a layout carries.
    spreads
        Whether the subtasks of an operator may be on several devices.
    """
    from streamplace.placers.named import named_placer

    placer, judge = named_placer("auto"), composed_objective("throughput")
    asked = rate or graph.source_rate
    best: Layout = {}
    for _ in range(MOST_RAISES):
        problem = Problem(graph.at_rate(asked), cluster)
        if spreads:
            problem = expand(problem.graph).problem(problem)
        result = placer.place(problem, judge, seed=seed, budget=budget or USUAL_BUDGET)
        vectors = vectors_of(result.placement.as_dict(), graph.operators.parallel)
        places = _names_of(graph, vectors)
        if not best or carried(places) > carried(best):
            best = places
        more = SATURATING * carried(best)
        if rate is not None or carried(best) < asked or more > LARGEST:
            break
        asked = more
    return best


def _names_of(graph: StreamGraph, vectors: Vectors) -> Layout:
    """Layout of the operators of a graph, of which each may be several that Flink has fused."""
    layout = {}
    numbers = zip(graph.operators.name, graph.operators.parallelism.tolist(), strict=True)
    for name, number in numbers:
        first = next(one for one in (name, *unfused(name)) if one in vectors)
        vector = vectors[first]
        layout[name] = [vector] * number if isinstance(vector, str) else list(vector)
    return layout


def slots_for(rest: Rest, job: str) -> dict[str, int]:
    """Device → slots that Flink may give to a job when it is submitted again without pins."""
    slots = {}
    for manager in rest.task_managers():
        device, number = manager["id"], manager.get("slotsNumber", 0)
        taken = rest.task_manager(device).get("allocatedSlots", ())
        own = sum(slot["jobId"] == job for slot in taken)
        alone = own == len(taken)
        slots[device] = number if alone else min(number, manager.get("freeSlots", 0) + own)
    return slots


def can_spread(rest: Rest) -> bool:
    """Whether all TaskManagers are configured for operators that are spread over them."""
    return all(index_name(0) in offered for offered in rest.offered().values())
