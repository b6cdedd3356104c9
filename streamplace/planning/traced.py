"""Plans for traces: for the peak or a quantile of the rates, and for each hour alone."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import inf

import numpy as np

from streamplace.model.expansion import expand, with_parallelism
from streamplace.model.graph import StreamGraph
from streamplace.model.problem import Problem
from streamplace.planning.deployment import ROUNDING
from streamplace.planning.hours import PlanHour
from streamplace.planning.result import PlanResult
from streamplace.planning.traces import RateTrace

PlanEach = Callable[[list[StreamGraph]], Iterable[PlanResult]]
"""Returns the plans for graphs, in order."""


def planned_for_trace(
    graph: StreamGraph, trace: RateTrace, quantile: float, plan_each: PlanEach
) -> PlanResult:
    """Return the plan for a quantile of the rates of each source, with the plan of every hour.

    Loads grow with the rate of every source, so the plan for the peaks carries the whole trace.
    """
    hours = list(trace.hours())
    levels = [trace.level(quantile), *(rates for _, rates in hours)]
    distinct = {rates.tobytes(): rates for rates in levels}
    graphs = [trace.graph(graph, rates) for rates in distinct.values()]
    results = dict(zip(distinct, plan_each(graphs), strict=True))
    plan = results[levels[0].tobytes()]
    return replace(
        plan,
        hours=tuple(_hour(start, results[rates.tobytes()], plan) for start, rates in hours),
    )


def _hour(start: float, alone: PlanResult, plan: PlanResult) -> PlanHour:
    carried = share_carried(plan, alone.graph) >= 1 - ROUNDING
    return PlanHour(start, alone.rate, alone.machines, alone.cost, alone.bound, carried)


def share_carried(plan: PlanResult, graph: StreamGraph) -> float:
    """Part of the rates of a graph that the placement of a plan carries, without headroom."""
    from streamsim import bottleneck, resource_loads

    parallelism = np.array([plan.parallelism[name] for name in graph.operators.name], np.int32)
    subtasks = expand(with_parallelism(graph, parallelism)).graph
    instance = Problem(subtasks, plan.cluster).instance
    load = bottleneck(resource_loads(instance, plan.placement.index)).load
    return 1 / load if load > 0 else inf
