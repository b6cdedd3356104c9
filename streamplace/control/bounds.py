"""Bounds of the cost of plans: what they are computed for, and how few of them are needed.

Bounds of controllers add up what arrives in a window of time. Without windows in the graph, all
loads are linear in the rates, so a plan that carries rates carries their mean as well. The output
of a window of the graph is concave: with several sources, a plan may carry each of two rates and
not their mean. `graphs_of_means` yields the graphs that such a plan carries.

A bound takes long, so it is computed for some rates; others have the bound of a lower rate.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf

import numpy as np

from streamplace.errors import GraphError
from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.graph import StreamGraph
from streamplace.model.operators import Window
from streamplace.planning.traces import RateTrace

FINEST_ONE, FINEST_SEVERAL = 1024, 8
"""Rate levels in the bounds: for a single source, and for each of several."""
MOST_BOUNDS = 128
"""Levels of the rate of the only source that are bounded; others have the bound of a lower one."""
NOTHING = 1e-9
"""Rate that stands for none, as a share of the peak: no more than bounds allow for rounding."""


def graphs_of_means(graph: StreamGraph, trace: RateTrace, rates: Floats) -> Iterator[StreamGraph]:
    """Yield graphs that a plan carries if the mean of the rates that it carries is this one [S].

    With a single source that emits, that is the graph at the mean, because loads rise with the
    rate. Otherwise, windows have only the output that is proportional to their input. Moreover, a
    plan carries the mean of each source alone, because it carries no less of it at some time; only
    the windows that this source feeds then have their whole output. There is no graph for rates
    that give the inputs of a join unequal rates.
    """
    alone = [rates * (np.arange(len(rates)) == s) for s in np.flatnonzero(rates > 0)]
    nowhere = np.zeros(graph.n_operators, np.bool_)
    ways = [(rates, nowhere)] if len(rates) > 1 or not alone else []
    if graph.operators.window or not ways:
        ways += [(part, _fed(graph, trace, part)) for part in alone]
    for part, fed in ways:
        made = _with_output(graph, trace, part, fed)
        if made is not None:
            yield made


def _fed(graph: StreamGraph, trace: RateTrace, rates: Floats) -> Bools:
    """Whether a source with a rate leads to each operator, [N]."""
    fed = graph.operators.rate > 0
    if len(rates) > 1:
        emitting = [name for name, rate in zip(trace.sources, rates, strict=True) if rate > 0]
        fed = np.isin(graph.operators.name, emitting)
    flow = graph.flow
    for u, v in zip(flow.source.tolist(), flow.target.tolist(), strict=True):
        fed[v] |= fed[u]
    return np.asarray(fed)


def _with_output(
    graph: StreamGraph, trace: RateTrace, rates: Floats, fed: Bools
) -> StreamGraph | None:
    """Return the graph at these rates; windows that are not ``fed`` have proportional output."""
    operators = graph.operators
    windows = {
        v: window if fed[v] else _proportional(window) for v, window in operators.window.items()
    }
    try:
        changed = graph.with_operators(replace(operators, window=windows)) if windows else graph
        return trace.graph(changed, rates, NOTHING)
    except GraphError:
        return None


def _proportional(window: Window) -> Window:
    """Window with the part of the output that is proportional to the input at any rate."""
    factor = window.factor if window.limit == inf else 0.0
    return replace(window, base=0.0, factor=factor, limit=inf)


def cost_bounds(rates: Floats, top: Floats, bound_at: Callable[[Floats], float]) -> Floats:
    """Bound of the cost at each row of rates [_, S], computed for few of them, up to the top."""
    return (_bounds_of_one if len(top) == 1 else _bounds_of_several)(rates, top, bound_at)


def _bounds_of_one(rates: Floats, top: Floats, bound_at: Callable[[Floats], float]) -> Floats:
    """Bound of the cost at each rate [_, 1] of the only source, rounded down to one that is known.

    The levels in between are bounded where most rates gain most: between two levels of the same
    bound there is nothing to gain.
    """
    level = np.floor(rates[:, 0] / top[0] * FINEST_ONE)
    ordered = np.sort(level)
    known = {k: bound_at(top * (k / FINEST_ONE)) for k in (0, FINEST_ONE)}

    def gap(low: int, high: int) -> tuple[float, int, int]:
        inside = np.searchsorted(ordered, high) - np.searchsorted(ordered, low + 1)
        return (-(known[high] - known[low]) * float(inside), low, high)

    gaps = [gap(0, FINEST_ONE)]
    while gaps and gaps[0][0] < 0 and len(known) < MOST_BOUNDS:
        _, low, high = heapq.heappop(gaps)
        middle = (low + high) // 2
        known[middle] = bound_at(top * (middle / FINEST_ONE))
        for part in (gap(low, middle), gap(middle, high)):
            heapq.heappush(gaps, part)
    levels = np.array(sorted(known), np.float64)
    raised = np.maximum.accumulate([known[int(k)] for k in levels])
    return np.asarray(raised[np.searchsorted(levels, level, side="right") - 1])


def _bounds_of_several(rates: Floats, top: Floats, bound_at: Callable[[Floats], float]) -> Floats:
    """Bound of the cost at each row of rates [_, S], rounded down; it rises with the rates.

    Between two rows of the same bound there is nothing to gain. Rows are bounded in an order that
    halves the distance of those that are known, by the sum of their parts of the peaks.
    """
    grid, which = rounded(np.floor(alike(rates / top, np.min) * FINEST_SEVERAL), top)
    ranked, last = np.argsort((grid / top).sum(axis=1), kind="stable"), len(grid) - 1
    values, is_known = np.zeros(len(grid)), np.zeros(len(grid), np.bool_)
    for rank in sorted(range(len(grid)), key=lambda i: (0 < i < last, -(i & -i))):
        row = ranked[rank]
        low = values[is_known & (grid <= grid[row]).all(axis=1)].max(initial=0.0)
        high = values[is_known & (grid >= grid[row]).all(axis=1)].min(initial=np.inf)
        values[row] = low if low >= high else max(low, bound_at(grid[row]))
        is_known[row] = True
    below = (grid[None, :, :] <= grid[:, None, :]).all(axis=2)
    raised = np.where(below, values[None, :], 0.0).max(axis=1)
    return np.asarray(raised[which])


def alike(parts: Floats, end: Callable[..., Floats]) -> Floats:
    """Parts of the peaks [_, S]; those that are equal but for an error of a join get one end.

    Otherwise rounding could separate what the inputs of a join bring.
    """
    from streamsim.flow import UNEQUAL

    is_near = np.abs(parts[:, :, None] - parts[:, None, :]) <= 2 * UNEQUAL
    return end(np.where(is_near, parts[:, None, :], parts[:, :, None]), axis=2)


def rounded(levels: Floats, top: Floats) -> tuple[Floats, Ints]:
    """Distinct rows of rates on a grid below the top, and which of them each row becomes."""
    grid, which = np.unique(levels, axis=0, return_inverse=True)
    return grid / FINEST_SEVERAL * top, which.reshape(-1).astype(np.int32)
