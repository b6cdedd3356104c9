"""What the steady state cannot tell: a placement simulated with queues, under its own names."""

from dataclasses import asdict, dataclass
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from streamplace.drawing.charts import LEGEND, PALETTE, add_title, legend_text, line_style, wrapped
from streamplace.drawing.figures import GREY, new_figure
from streamplace.errors import SettingError
from streamplace.model.arrays import Floats
from streamplace.model.display import Displayed
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.report import Report, duration, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from streamsim.engine import Observations, Settings, Trace

MOST_QUEUES, MOST_LONGEST = 6, 4
WIDEST = 24


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds from source to sink: mean and percentiles; None where nothing arrives."""

    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None

    @property
    def words(self) -> str:
        """Numbers in words."""
        numbers = [(name, value) for name, value in asdict(self).items() if value is not None]
        waits = ", ".join(f"{name} {duration(value)}" for name, value in numbers)
        return waits or "nothing arrived"


@dataclass(frozen=True, slots=True)
class QueueRun(Displayed):
    """A run of the queueing engine, measured after its warm-up.

    Attributes
    ----------
    throughput, admitted
        Source-equivalent tuples/s at the sinks, and tuples/s that the sources let in.
    latency, latency_without_backlog
        Since generation, and since the source admitted the tuple.
    time_to_steady
        Seconds until throughput stays within 1 % of its final level; None where it never does.
    backlog
        Tuples that wait at the sources in the end.
    queues
        Longest queue of every stream, in tuples.
    warnings
        What makes the run doubtful, such as queues too short for the time step.
    """

    throughput: float
    admitted: float
    relative_throughput: float
    latency: Latency
    latency_without_backlog: Latency
    time_to_steady: float | None
    backlog: float
    queues: dict[str, float]
    utilisation: dict[str, float]
    warnings: tuple[str, ...]

    def report(self) -> Report:
        """Throughput, latencies and queues."""
        title = (
            f"With queues: {percent(self.relative_throughput)} of the offered tuples, "
            f"{self.throughput:g} source tuples/s at the sinks"
        )
        steady = "never" if self.time_to_steady is None else duration(self.time_to_steady)
        longest = sorted(self.queues.items(), key=lambda item: -item[1])[:MOST_LONGEST]
        lines = [
            f"  latency: {self.latency.words}",
            f"  without backlog: {self.latency_without_backlog.words}",
            f"  steady after: {steady}",
            f"  longest queues: {', '.join(f'{name} {q:.0f}' for name, q in longest)}",
        ]
        if self.backlog >= 1:
            lines.append(f"  waiting at the sources in the end: {self.backlog:.0f} tuples")
        return Report((title, *lines))

    def __repr__(self) -> str:
        return f"<QueueRun: {percent(self.relative_throughput)} of the offered tuples>"


def engine_settings(duration: float, dt: float, capacity: float, policy: str) -> "Settings":
    """Settings of the engine; what they refuse becomes an error of ours."""
    from streamsim.engine import Settings

    try:
        return Settings(duration=duration, dt=dt, capacity=capacity, policy=policy)  # type: ignore[arg-type]
    except ValueError as error:
        raise SettingError(str(error)) from None


def run_queues(
    problem: Problem, placement: Placement, settings: "Settings | None" = None
) -> QueueRun:
    """Simulate a placement with bounded queues, CPU sharing and a network, tick by tick."""
    from streamsim.engine import observe

    problem.check(placement)
    seen = observe(problem.instance, placement.index[None, :], settings)
    return _queue_run(problem, placement, seen)


def run_queues_traced(
    problem: Problem, placement: Placement, settings: "Settings | None" = None
) -> "tuple[QueueRun, Trace]":
    """Simulate once like `run_queues`, and return every tick for `draw_queues`, too."""
    from streamsim.engine import observe_traced

    problem.check(placement)
    seen, ticks = observe_traced(problem.instance, placement.index, settings)
    return _queue_run(problem, placement, seen), ticks


def _queue_run(problem: Problem, placement: Placement, seen: "Observations") -> QueueRun:
    runs, streams = seen.runs, problem.graph.streams
    return QueueRun(
        throughput=float(runs.throughput[0]),
        admitted=float(runs.admitted[0]),
        relative_throughput=float(runs.relative[0]),
        latency=_latency(float(seen.latency[0]), *seen.latency_quantiles[0].tolist()),
        latency_without_backlog=_latency(
            float(seen.processing[0]), *seen.processing_quantiles[0].tolist()
        ),
        time_to_steady=_number(float(seen.settled[0])),
        backlog=float(runs.backlog[0]),
        queues={streams.label(e): float(seen.max_queue[0, e]) for e in range(len(streams))},
        utilisation=dict(zip(placement.devices, runs.device_utilisation[0].tolist(), strict=True)),
        warnings=runs.warnings,
    )


def draw_queues(problem: Problem, run: "Trace", settings: "Settings") -> "Figure":
    """Draw throughput (means of a second), the longest queues and latency over time."""
    figure, (rate, queue, wait) = new_figure(3, width=4.4, height=4.2)
    ticks = max(1, round(1 / settings.dt))
    flows = {"at the sinks": run.throughput, "admitted": run.admitted}
    for i, (label, flow) in enumerate(flows.items()):
        rate.plot(run.seconds, _running_mean(flow, ticks), label=label, **line_style(i))
    rate.axhline(problem.graph.source_rate, color=GREY, linestyle=":", label="offered")
    rate.set(ylabel="tuples/s", ylim=(0, None))
    tuples = run.queued + run.transit
    for i, e in enumerate(tuples.max(axis=0).argsort()[::-1][:MOST_QUEUES].tolist()):
        name = wrapped(legend_text(problem.graph.streams.label(e)), WIDEST)
        queue.plot(run.seconds, tuples[:, e], linewidth=1.2, label=name, **line_style(i))
    queue.axhline(settings.capacity, color=GREY, linestyle=":", label="capacity")
    queue.set(ylabel="tuples in a stream", ylim=(0, None))
    wait.plot(run.seconds, run.latency, color=PALETTE[0])
    wait.set(ylabel="latency on arrival (s)", ylim=(0, None))
    for axis in (rate, queue, wait):
        axis.set_xlabel("time (s)")
    for axis, columns in ((rate, 1), (queue, 2)):
        axis.legend(
            fontsize=LEGEND,
            frameon=False,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.2),
            ncols=columns,
        )
    return add_title(figure, f"{problem.graph.name}: {settings.duration:g} s with queues")


def _running_mean(values: Floats, ticks: int) -> Floats:
    """Mean of each tick and those before it, ``ticks`` in all; fewer at the beginning."""
    total = np.cumsum(values)
    before = np.concatenate([np.zeros(min(ticks, len(values))), total[:-ticks]])
    counts = np.minimum(np.arange(1, len(values) + 1), ticks)
    means: Floats = (total - before) / counts
    return means


def _latency(*numbers: float) -> Latency:
    return Latency(*(_number(x) for x in numbers))


def _number(x: float) -> float | None:
    return None if isnan(x) else x
