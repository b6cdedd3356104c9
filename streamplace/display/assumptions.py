"""Assumptions for facts of a problem that nobody stated: printed beside every verdict."""

from collections.abc import Iterator, Sequence

import numpy as np

from streamplace.display.report import duration, some
from streamplace.model.defaults import BPS, MIPS
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import shown
from streamplace.model.mixins import kept
from streamplace.model.problem import Problem
from streamplace.model.units import format_bandwidth, format_speed

LONG_WINDOW = 3600.0
"""Seconds; the size of a longer window may have been meant in milliseconds."""
NO_CPU = "no operator costs CPU (ipt)"
MAX_NAMES = 3
"""Names in a sentence."""


@kept
def assumptions(problem: Problem) -> tuple[str, ...]:
    """Assumptions for a problem, as sentences.

    >>> from streamplace import Cluster, Operator, Problem, StreamGraph
    >>> one = StreamGraph.of("one", [Operator("a", rate=1.0)])
    >>> assumptions(Problem(one, Cluster.uniform()))[0]
    '5 default devices of 2500 MIPS, 1 Gbps, no memory limit (--cluster)'
    """
    graph, seconds = problem.graph, problem.seconds
    free = not (graph.charged_ipt.any() or graph.charged_constant.any())
    costs_nothing = free if seconds is None else not seconds.any()
    cpu = (NO_CPU,) if costs_nothing else ()
    machines = (*_of_cluster(problem), *_of_lost_devices(problem))
    return (*machines, *cpu, *of_payload(graph), *_of_graph(graph))


def assumed(sentences: Sequence[str]) -> tuple[str, ...]:
    """All assumptions in one line of a report; empty if there are none."""
    return (f"Assumed: {'; '.join(sentences)}",) if sentences else ()


def _few(names: Sequence[str]) -> str:
    return some(names, separator=", ", most=MAX_NAMES)


def _of_lost_devices(problem: Problem) -> Iterator[str]:
    """Yield the pins that were dropped with their devices."""
    dropped = problem.constraints.dropped
    for device in sorted(set(dropped.values())):
        names = sorted(name for name, home in dropped.items() if home == device)
        yield f"no pin to {shown(device)}, which is lost ({_few(names)})"


def _of_cluster(problem: Problem) -> Iterator[str]:
    """Yield default devices, speeds and bandwidths, and whether memory is without effect."""
    cluster = problem.cluster
    devices, defaults = cluster.devices, cluster.defaults
    memory = of_memory(problem.graph, is_limited=bool(np.isfinite(devices.memory).any()))
    speed = format_speed(MIPS)
    network = format_bandwidth(BPS) if len(devices) > 1 else ""
    if "devices" in defaults and {"mips", "bandwidth"} <= defaults:
        facts = [f"{len(devices)} default devices of {speed}", network, memory]
        yield f"{', '.join(filter(None, facts))} (--cluster)"
        return
    facts = [f"{len(devices)} devices"] if "devices" in defaults else []
    facts += [speed] if "mips" in defaults else []
    facts += [network] if "bandwidth" in defaults and network else []
    if facts:
        yield f"{', '.join(facts)} by default"
    if memory:
        yield memory


def of_memory(graph: StreamGraph, *, is_limited: bool) -> str:
    """Sentence if memory is without effect: machines have no limit, or operators need none."""
    needs = graph.operators.memory.any()
    if not is_limited:
        return "no memory limit" + (", though operators need memory" if needs else "")
    return "" if needs else "no operator needs memory"


def of_payload(graph: StreamGraph) -> Iterator[str]:
    """Yield whether streams carry nothing."""
    if len(graph.streams) and not graph.streams.bytes_per_tuple().any():
        yield "streams carry no bytes (payload)"


def _of_graph(graph: StreamGraph) -> Iterator[str]:
    """Yield silent sources, long windows and repeated streams of a graph."""
    streams, operators = graph.streams, graph.operators
    fed = np.bincount(streams.target, minlength=len(operators)) > 0
    if len(silent := np.flatnonzero(~fed & (operators.rate == 0)).tolist()):
        whose = [shown(operators.name[v]) for v in silent]
        yield f"no tuples from {_few(whose)}, at rate 0"
    for v, window in sorted(operators.window.items()):
        if window.size > LONG_WINDOW:
            yield f"the window of {shown(operators.name[v])} is {duration(window.size)} long"
    # Inputs of operators that fire "all" are counted once each, however often they are written.
    ends = np.stack([streams.source, streams.target])[:, ~operators.fires_all[streams.target]]
    pairs, count = np.unique(ends, axis=1, return_counts=True)
    if (count > 1).any():
        names = operators.name
        twice = [f"{shown(names[u])}→{shown(names[v])}" for u, v in pairs[:, count > 1].T.tolist()]
        yield f"{_few(twice)} written more than once, and sent as often"
