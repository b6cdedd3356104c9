"""Plans of a watched job: layouts on one, two and more of its TaskManagers, with what they carry.

The TaskManagers are put in order, and each plan uses the first so many of them. So a job that needs
fewer leaves the same ones free. The present layout is the plan for its number of TaskManagers,
unless one was found there that carries more, beyond the error of comparisons.

While some sources are held back and others keep up, plans differ in what the former may send, see
`streamplace.engines.flink.decide.rates`. Such plans say nothing about lower rates of the
others, so the job is measured again when no source is held back any more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamplace.engines.flink.decide.candidates import Question, searched
from streamplace.engines.flink.decide.layouts import Layout, even_layout
from streamplace.engines.flink.decide.proposal import NOISE
from streamplace.engines.flink.decide.rates import JobRates
from streamplace.engines.flink.measure.measurement import Measurement
from streamplace.engines.flink.measure.placed_subtasks import placed
from streamplace.model.cluster import Cluster
from streamplace.model.intervals import PredictionErrors, RateInterval
from streamplace.model.messages import shown
from streamplace.objectives.throughput.loads import at_max_rate
from streamplace.placers.registry import Budget

MOST_PLANS = 8
"""Most plans; with more, a policy could cost more in the worst case (2K - 1 times the best)."""
AMPLE = 4.0
"""Layouts are searched for this multiple of what an even spread carries, so all are too small."""
CLEAR = 0.142
"""Least predicted gain over the present layout beyond the errors with which they are compared."""
BETTER = 0.02
"""Least gain of a plan over the one with fewer TaskManagers; below, it takes over its layout."""


@dataclass(frozen=True, slots=True)
class WatchPlan:
    """A layout that a job may have."""

    machines: int  # number of TaskManagers that it may use
    layout: Layout  # operator → devices of its subtasks
    carries: RateInterval  # tuples/s, with their interval

    @property
    def devices(self) -> list[str]:
        """TaskManagers that it uses."""
        return sorted({device for vector in self.layout.values() for device in vector})


@dataclass(frozen=True, slots=True)
class JobModel:
    """A measured job with the layouts that it may have."""

    job: str  # its id
    name: str  # its name
    # Plans with rising numbers of TaskManagers; they carry no less with more.
    plans: tuple[WatchPlan, ...]
    level: int  # number of the plan that has as many TaskManagers as the present layout
    present: WatchPlan  # the present layout
    limit: str  # the resource that limits it first
    # Tuples/s of sources that keep up while others are held back. Plans let only the others send
    # more; 0 if all sources change together.
    kept: float = 0.0
    varies: bool = False  # whether the rate of a source varied during the measurement
    # Clause on CPU of operators or TaskManagers that was not measured; empty if all was. Fewer
    # TaskManagers may not have it.
    uncounted: str = ""
    spread: float = 0.0  # spread of the profile, by which the intervals are wider

    def widened(self, width: float) -> "JobModel":
        """Return the same model with all intervals wider by a factor of exp(width) at each end."""

        def wider(plan: WatchPlan) -> WatchPlan:
            sure = self.kept if plan.carries.value > self.kept else 0.0
            return replace(plan, carries=plan.carries.widened(width, sure))

        return replace(self, plans=tuple(map(wider, self.plans)), present=wider(self.present))


def job_model(
    job: str,
    question: Question,
    errors: PredictionErrors | None,
    at_most: int | None = None,
    budget: Budget | None = None,
) -> JobModel:
    """Find plans for a measured job; without errors, predictions are regarded as exact."""
    measured = question.measured
    graph, cluster = measured.graph, measured.cluster
    judge = replace(question, rate=None).rates
    now = judge.present
    order = device_order(cluster, question.free, {d for vector in now.values() for d in vector})
    used = len({device for vector in now.values() for device in vector})
    most = len(order) if at_most is None else min(at_most, len(order))
    present = present_plan(judge, now, used, measured.is_limited, errors)
    ample = None if judge.kept else AMPLE * graph.source_rate
    if question.spreads and order and ample:
        ample = AMPLE * max(graph.source_rate, judge.if_pinned(even_layout(graph, order)))
    plans: list[WatchPlan] = []
    carried, kept = 0.0, judge.kept
    for number in sorted({*plan_sizes(most), used}):
        if number > most:
            plans.append(replace(present, machines=number))
            continue
        layout = _best(question, judge, order[:number], ample, budget)
        if plans and judge.if_pinned(layout) - kept < (1 + BETTER) * (carried - kept):
            layout = plans[-1].layout
        found = judge.if_pinned(layout)
        if number == used and found - kept <= (1 + CLEAR) * (judge.of(now) - kept):
            plans.append(present)
        else:
            plans.append(WatchPlan(number, layout, predicted(found, errors, kept)))
        carried = max(carried, judge.if_pinned(plans[-1].layout))
    level = next(i for i, plan in enumerate(plans) if plan.machines == used)
    limit = limit_of(measured, now)
    return JobModel(job, graph.name, tuple(plans), level, present, limit, kept, measured.varies)


def plan_sizes(most: int) -> list[int]:
    """Numbers of TaskManagers of the plans: all, or some that grow by a factor.

    >>> plan_sizes(4), plan_sizes(40)
    ([1, 2, 3, 4], [1, 2, 3, 5, 8, 14, 24, 40])
    """
    if most <= MOST_PLANS:
        return list(range(1, most + 1))
    grown = np.geomspace(1, most, MOST_PLANS).round().astype(int).tolist()
    return sorted({max(size, i + 1) for i, size in enumerate(grown)})


def device_order(cluster: Cluster, free: Sequence[str], used: set[str]) -> list[str]:
    """Order of the devices in plans: fast ones first, and of equal ones those in use."""
    devices = cluster.devices
    speed = dict(zip(devices.name, (devices.speed * devices.cores).tolist(), strict=True))
    return sorted(free, key=lambda name: (-float(f"{speed[name]:.1g}"), name not in used, name))


def limit_of(measured: Measurement, layout: Layout) -> str:
    """The resource that limits a layout first, in words."""
    from streamsim import bottleneck, resource_loads

    names = measured.cluster.devices.name
    job = placed(measured.graph, measured.cluster, layout, measured.shares)
    worst = bottleneck(resource_loads(job.problem.instance, job.placement))
    if worst.kind == "link":
        return f"the link {names[worst.device]} → {names[worst.peer]}"
    if worst.kind == "core" and len(slow := at_max_rate(job.problem, job.placement, worst)):
        operator = job.expansion.original.operators.name[job.expansion.operator[slow[0]]]
        return f"what a subtask of {shown(operator)} reads at most"
    what = {"device": "the CPU", "core": "a core"}.get(worst.kind, "the network card")
    return f"{what} of {names[worst.device]}"


def _best(
    question: Question,
    judge: JobRates,
    devices: Sequence[str],
    rate: float | None,
    budget: Budget | None,
) -> Layout:
    """Return the better one of the layout that search finds on some devices and of an even one.

    Without a rate, growing ones are searched for, of the held-back sources alone.
    """
    names = question.measured.cluster.devices.name
    others = frozenset(names).difference(devices)
    asked = replace(question, occupied=others, rate=rate)
    graph = question.measured.graph
    layouts = [searched(asked, budget)]
    even = question.pinnable(even_layout(graph, devices)) if question.spreads else None
    if even is not None:
        layouts.append(even)
    return max(layouts, key=judge.if_pinned)


def predicted(rate: float, errors: PredictionErrors | None, kept: float) -> RateInterval:
    """Interval of a prediction; what some sources send anyway is certain, where there is room."""
    if errors is None:
        return RateInterval(rate, rate, rate)
    sure = kept if rate > kept else 0.0
    return RateInterval(
        sure + errors.at_least(rate - sure), rate, sure + errors.high * (rate - sure)
    )


def present_plan(
    judge: JobRates,
    layout: Layout,
    used: int,
    is_limited: bool,
    errors: PredictionErrors | None,
) -> WatchPlan:
    """Return the present layout: measured under back-pressure, otherwise predicted."""
    carried = judge.of(layout)
    if is_limited:
        noise = NOISE * (carried - judge.kept)
        return WatchPlan(used, layout, RateInterval(carried - noise, carried, carried + noise))
    return WatchPlan(used, layout, predicted(carried, errors, judge.kept))
