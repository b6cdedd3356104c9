"""Means: graphs that a plan carries if it carries given rates in the mean over some time.

Bounds of controllers add up what arrives in a window of time. Without windows in the graph, all
loads are linear in the rates, so a plan that carries rates carries their mean as well. The output
of a window of the graph is concave: with several sources, a plan may carry each of two rates and
not their mean.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import inf

import numpy as np

from streamplace.errors import GraphError
from streamplace.model.arrays import Bools, Floats
from streamplace.model.graph import StreamGraph
from streamplace.model.operators import Window
from streamplace.planning.traces import RateTrace

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
