"""A pass as a trace in the Trace Event Format, which Perfetto and Chrome show."""

from collections.abc import Iterator
from typing import Any

from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.makespan.lanes import Bars, runs, transfers
from streamplace.objectives.makespan.options import PassOptions
from streamplace.objectives.makespan.timeline import pass_schedule

MICROSECONDS = 1e6


def trace(problem: Problem, placement: Placement, options: PassOptions) -> dict[str, Any]:
    """Devices and links as processes, cores as threads, streams between devices as arrows."""
    schedule = pass_schedule(problem, placement, options)
    operators, streams = problem.graph.operators.name, problem.graph.streams
    events: list[dict[str, Any]] = []
    thread: dict[int, dict[str, int]] = {}
    devices = runs(problem, placement, schedule)
    for pid, bars in enumerate(devices, 1):
        events += _process(pid, bars, "core")
        for event, v in _complete(pid, bars, "running"):
            thread[v] = {"pid": pid, "tid": event["tid"]}
            events.append({**event, "name": operators[v]})
    for pid, bars in enumerate(transfers(problem, placement, schedule), len(devices) + 1):
        events += _process(pid, bars, "lane")
        for event, e in _complete(pid, bars, "sending"):
            u, v = int(streams.source[e]), int(streams.target[e])
            events.append({**event, "name": streams.label(e)})
            leaves = float(schedule.start[u] + 0.99 * (schedule.finish[u] - schedule.start[u]))
            arrow = {"cat": "stream", "name": streams.label(e), "id": e}
            events.append({**arrow, "ph": "s", "ts": leaves * MICROSECONDS, **thread[u]})
            arrives = {"ts": float(schedule.start[v]) * MICROSECONDS, **thread[v]}
            events.append({**arrow, "ph": "f", "bp": "e", **arrives})
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {
            "graph": problem.graph.name,
            "makespan_s": schedule.makespan,
            "queue": options.rules_of(placement)[0].queue,
        },
    }


def _process(pid: int, bars: Bars, lane: str) -> Iterator[dict[str, Any]]:
    """Name a device or link and its lanes."""
    about: dict[str, Any] = {"ph": "M", "pid": pid, "tid": 0}
    yield {**about, "name": "process_name", "args": {"name": bars.row}}
    yield {**about, "name": "process_sort_index", "args": {"sort_index": pid}}
    for i in range(bars.n_lanes):
        yield {**about, "tid": i + 1, "name": "thread_name", "args": {"name": f"{lane} {i}"}}


def _complete(pid: int, bars: Bars, what: str) -> Iterator[tuple[dict[str, Any], int]]:
    """Events without their names, and the rows of their operators or streams."""
    columns = (bars.thing, bars.begin, bars.end, bars.lane, bars.critical)
    for thing, begin, end, lane, critical in zip(*(c.tolist() for c in columns), strict=True):
        event = {
            "ph": "X",
            "cat": f"{what},critical" if critical else what,
            "pid": pid,
            "tid": lane + 1,
            "ts": begin * MICROSECONDS,
            "dur": (end - begin) * MICROSECONDS,
            "args": {"critical": critical},
        }
        yield event, thing
