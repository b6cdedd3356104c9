"""Simulation of a placement with queues, which shows latencies and transients, with names."""

from dataclasses import asdict, dataclass
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.display.report import Detail, Part, Report, duration, percent
from streamplace.drawing.figures import (
    GREY,
    LEGEND,
    PALETTE,
    add_title,
    legend_text,
    line_style,
    new_figure,
    wrapped,
)
from streamplace.errors import SettingError
from streamplace.model.arrays import Floats
from streamplace.model.message_text import shown
from streamplace.model.mixins import Displayed
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.units import digits

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from streamsim.engine import Doubt, Fit, GivenSettings, Observations, Settings, Trace
    from streamsim.engine.settings import Randomness

DRAWN_QUEUES, PRINTED_QUEUES = 6, 4
"""Longest queues in a picture and in a report."""
LABEL_WIDTH = 24
ARRIVALS: "dict[Randomness, str]" = {
    "nothing": "even arrivals",
    "arrivals": "random arrivals",
    "all": "random arrivals and times of service",
}


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds from source to sink: mean and percentiles; None if nothing arrives."""

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

    Throughputs and latencies are None if the run does not determine them.
    """

    valid: bool  # whether the run has settled, and its settings do not limit the result
    duration: float  # simulated seconds
    dt: float  # seconds per time step
    capacity: float | None  # of every stream in tuples; None if it follows from the rates
    throughput: float | None  # source-equivalent tuples/s at the sinks
    admitted: float | None  # tuples/s that the sources admit
    relative_throughput: float | None
    # Arrivals and times of service for which the latencies hold. If a resource is full, they are
    # constant, whatever the setting.
    arrivals: str
    latency: Latency  # time since generation
    latency_without_backlog: Latency  # time since the source admitted the tuple
    # Seconds until throughput stays within 1 % of its final level; None if it never does.
    time_to_steady: float | None
    backlog: float  # tuples that wait at the sources at the end
    queues: dict[str, float]  # longest queue of every stream, in tuples
    utilisation: dict[str, float]
    windows: dict[str, float]  # windowed operator → seconds that it holds a tuple on average
    # Reasons why the run is not valid: the stream concerned, and the setting to change.
    warnings: tuple[str, ...]

    def report(self) -> Report:
        """Throughput, latencies and queues, or the reasons why there are none."""
        simulated = f"  simulated: {duration(self.duration)} in steps of {duration(self.dt)}"
        if self.relative_throughput is None or self.throughput is None:
            return Report(("With queues: no result.", *self.warnings, Detail(simulated)))
        title = (
            f"With queues: {percent(self.relative_throughput)} of the offered tuples, "
            f"{digits(self.throughput, 6)} source tuples/s at the sinks"
        )
        bursts = ", as windows send in bursts" if self.windows else ""
        steady = f"never{bursts}" if self.time_to_steady is None else duration(self.time_to_steady)
        waits = ", ".join(f"{name} {duration(wait)}" for name, wait in self.windows.items())
        longest = sorted(self.queues.items(), key=lambda item: -item[1])[:PRINTED_QUEUES]
        queues = ", ".join(f"{name} {length:.0f}" for name, length in longest)
        lines: list[Part] = [
            f"  latency ({self.arrivals}): {self.latency.words}",
            *([f"  windows wait on average: {waits}"] if waits else []),
            Detail(f"  without backlog: {self.latency_without_backlog.words}"),
            f"  steady after: {steady}",
            *([Detail(f"  longest queues: {queues}")] if queues else []),
            Detail(simulated),
        ]
        if self.backlog >= 1:
            lines.append(f"  waiting at the sources in the end: {self.backlog:.0f} tuples")
        return Report((title, *lines))

    def __repr__(self) -> str:
        if self.relative_throughput is None:
            return "<QueueRun: no result>"
        return f"<QueueRun: {percent(self.relative_throughput)} of the offered tuples>"


def run_queues(
    problem: Problem, placement: Placement, settings: "GivenSettings | None" = None
) -> QueueRun:
    """Simulate a placement with bounded queues, CPU sharing and a network, tick by tick.

    Without duration, time step or capacity in ``settings``, they follow from the problem.
    """
    from streamsim.engine import GivenSettings, observe

    given = settings or GivenSettings()
    fitted = _fitted(problem, placement, given)
    observed = observe(problem.instance, placement.index[None, :], fitted.settings)
    return _queue_run(problem, placement, fitted, observed, given)


def run_queues_traced(
    problem: Problem, placement: Placement, settings: "GivenSettings"
) -> "tuple[QueueRun, Trace, Settings]":
    """Simulate once like `run_queues`, and also return the ticks and settings for `draw_queues`."""
    from streamsim.engine import mean_service, observe_traced

    fitted = _fitted(problem, placement, settings)
    observed, ticks = observe_traced(problem.instance, placement.index, fitted.settings)
    run = _queue_run(problem, placement, fitted, observed, settings)
    service = mean_service(problem.instance, placement.index)
    return run, ticks._replace(latency=ticks.latency + service), fitted.settings


def _fitted(problem: Problem, placement: Placement, settings: "GivenSettings") -> "Fit":
    """Settings of a run, and whether its result is reliable."""
    from streamsim.engine import fit

    problem.check(placement)
    for row in problem.instance.windows:
        if settings.dt is not None and row[2] < settings.dt * (1 - 1e-9):
            raise SettingError(
                f"dt is {settings.dt:g} s, but the window of "
                f"{shown(problem.graph.operators.name[int(row[0])])} advances every {row[2]:g} s; "
                f"give a dt of at most {row[2]:g} s, or leave it out"
            )
    return fit(problem.instance, placement.index, settings)


def _latencies(
    problem: Problem,
    placement: Placement,
    fitted: "Fit",
    observed: "Observations",
    given: "GivenSettings",
) -> tuple[str, Floats, Floats]:
    """Arrivals, and mean and quantiles since generation and since admission.

    They are of single tuples. If only their capacities end the queues, they are of the amounts that
    the engine moves, with the mean time of service.
    """
    from streamsim.engine import mean_service, tuple_times
    from streamsim.engine.observations import QUANTILES, weighted_quantiles

    instance, place = problem.instance, placement.index
    times = tuple_times(instance, place, fitted.settings, given.random, duration=given.duration)
    if times is None:
        service = mean_service(instance, place)
        latency = np.array([observed.latency[0], *observed.latency_quantiles[0]])
        processing = np.array([observed.processing[0], *observed.processing_quantiles[0]])
        rounding = 1e-12 * fitted.settings.duration
        latency, processing = (
            service + np.where(waits < rounding, 0.0, waits) for waits in (latency, processing)
        )
        return ARRIVALS["nothing"], latency, processing
    latency, processing = (
        np.array([mean, *quantiles])
        for mean, quantiles in (weighted_quantiles(row, times[2], QUANTILES) for row in times[:2])
    )
    return ARRIVALS[given.random], latency, processing


def _queue_run(
    problem: Problem,
    placement: Placement,
    fitted: "Fit",
    observed: "Observations",
    given: "GivenSettings",
) -> QueueRun:
    runs, streams, settings = observed.runs, problem.graph.streams, fitted.settings
    valid = fitted.doubt is None
    arrivals, latency, processing = _latencies(problem, placement, fitted, observed, given)

    def determined(number: float) -> float | None:
        return float(number) if valid and not isnan(number) else None

    return QueueRun(
        valid=valid,
        duration=settings.duration,
        dt=settings.dt,
        capacity=settings.capacity if isfinite(settings.capacity or 0.0) else None,
        throughput=determined(runs.throughput[0]),
        admitted=determined(runs.admitted[0]),
        relative_throughput=determined(runs.relative[0]),
        arrivals=arrivals,
        latency=Latency(*map(determined, latency)),
        latency_without_backlog=Latency(*map(determined, processing)),
        time_to_steady=determined(observed.settled[0]),
        backlog=float(runs.backlog[0]),
        queues={streams.label(e): float(observed.max_queue[0, e]) for e in range(len(streams))},
        utilisation=dict(zip(placement.devices, runs.device_utilisation[0].tolist(), strict=True)),
        windows={
            problem.graph.operators.name[int(v)]: float(size) / 2
            for v, size, *_ in problem.instance.windows
        },
        warnings=() if fitted.doubt is None else (_doubted(problem, settings, fitted.doubt),),
    )


def _doubted(problem: Problem, settings: "Settings", doubt: "Doubt") -> str:
    """Explain why a run is not valid, and which setting to change."""
    streams = problem.graph.streams
    stream = streams.label(doubt.stream) if doubt.stream >= 0 else problem.graph.name
    why = f"After {settings.duration:g} s, the flow through {stream} has not settled"
    if doubt.reason == "capacity":
        why = (
            f"A capacity of {settings.capacity:g} tuples decides the result: in steps of "
            f"{settings.dt:g} s, it is too small for {stream}"
        )
    if doubt.setting == "duration":
        advice = "longer duration" if doubt.works is None else f"duration of {doubt.works:.10g} s"
        return f"{why}; give a {advice}."
    if doubt.works is None:
        return f"{why}; leave the capacity out."
    return f"{why}; give a capacity of {doubt.works:.10g}, or leave it out."


def draw_queues(problem: Problem, run: "Trace", settings: "Settings") -> "Figure":
    """Draw throughput (means over a second), the longest queues and latency over time."""
    figure, (rate, queue, wait) = new_figure(3, width=4.4, height=4.2)
    ticks = max(1, round(1 / settings.dt))
    flows = {"at the sinks": run.throughput, "admitted": run.admitted}
    for i, (label, flow) in enumerate(flows.items()):
        rate.plot(run.seconds, _running_mean(flow, ticks), label=label, **line_style(i))
    rate.axhline(problem.graph.source_rate, color=GREY, linestyle=":", label="offered")
    rate.set(ylabel="tuples/s", ylim=(0, None))
    tuples = run.queued + run.transit
    for i, e in enumerate(tuples.max(axis=0).argsort()[::-1][:DRAWN_QUEUES].tolist()):
        name = wrapped(legend_text(problem.graph.streams.label(e)), LABEL_WIDTH)
        queue.plot(run.seconds, tuples[:, e], linewidth=1.2, label=name, **line_style(i))
    if settings.capacity is not None:
        queue.axhline(settings.capacity, color=GREY, linestyle=":", label="capacity")
    queue.set(ylabel="tuples in a stream", ylim=(0, None))
    wait.plot(run.seconds, run.latency, color=PALETTE[0])
    wait.set(ylabel="latency on arrival (s)", ylim=(0, None))
    for axis in (rate, queue, wait):
        axis.set_xlabel("time (s)")
    legend: dict[str, Any] = {"fontsize": LEGEND, "frameon": False, "loc": "upper center"}
    for axis, columns in ((rate, 1), (queue, 2)):
        axis.legend(bbox_to_anchor=(0.5, -0.2), ncols=columns, **legend)
    return add_title(figure, f"{problem.graph.name}: {settings.duration:g} s with queues")


def _running_mean(values: Floats, ticks: int) -> Floats:
    """Mean over each tick and those before it, ``ticks`` in all; fewer at the beginning."""
    total = np.cumsum(values)
    before = np.concatenate([np.zeros(min(ticks, len(values))), total[:-ticks]])
    counts = np.minimum(np.arange(1, len(values) + 1), ticks)
    means: Floats = (total - before) / counts
    return means
