"""Plans of a watched job that Flink's adaptive scheduler runs: fewer and more subtasks.

The scheduler chooses the slots. In application mode it takes those of as few TaskManagers as have
enough of them, so a plan for n of them has subtasks for all of their slots. In a session it may
spread subtasks over all TaskManagers, so a plan that must leave some of them has subtasks for n
slots. Subtasks are in proportion to those that the job had when it was first watched. A plan is
predicted to carry what the worst of some possible layouts does; with fewer TaskManagers than there
are, on the slowest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamplace.engines.flink.decide.candidates import (
    Judge,
    Question,
    flink_version,
    names_of,
)
from streamplace.engines.flink.decide.layouts import Layout, adaptive_layouts
from streamplace.engines.flink.rest.client import Refusal, Rest
from streamplace.engines.flink.rest.plan import FlinkTask, read_plan
from streamplace.engines.flink.rest.scheduler import largest_numbers
from streamplace.engines.flink.watch.plans import (
    BETTER,
    JobModel,
    NewDevices,
    WatchPlan,
    device_order,
    limit_of,
    plan_sizes,
    predicted,
    present_plan,
)
from streamplace.model.expansion import with_parallelism
from streamplace.model.graph import StreamGraph
from streamplace.model.intervals import PredictionErrors
from streamplace.model.streams import RESCALE

Subtasks = Mapping[str, int]
"""Task → number of its subtasks."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """Base and limits of the numbers of subtasks when a job is scaled."""

    base: Subtasks  # numbers when the job was first watched
    most: Subtasks  # largest possible numbers; a task that cannot be parallel has 1
    packs: bool = False  # whether Flink takes as few TaskManagers as have enough slots

    def to_slots(self, graph: StreamGraph, slots: int) -> dict[str, int]:
        """Numbers of subtasks that use so many slots, in proportion to the base.

        Every slot sharing group gets its part of the slots, and at least one. Single subtasks stay
        single, unless all tasks are: programs often need them to be.
        """
        rows = graph.operators
        groups = dict(zip(rows.name, rows.slot_sharing_group, strict=True))
        size: dict[str, int] = {}
        for name, group in groups.items():
            size[group] = max(size.get(group, 0), self.base[name])
        total, is_single = sum(size.values()), max(self.base.values()) == 1
        numbers = {}
        for name, group in groups.items():
            own = max(1, size[group] * slots // total)
            number = max(1, round(self.base[name] * own / size[group]))
            if self.base[name] == 1 and not is_single:
                number = 1
            numbers[name] = min(number, self.most[name])
        return numbers


def required_subtasks(rest: Rest, job: str) -> dict[str, int]:
    """Task → number of subtasks that the adaptive scheduler should give it."""
    _, tasks, _ = read_plan(rest, job)
    return required_of(rest, job, tasks)


def required_of(rest: Rest, job: str, tasks: Sequence[FlinkTask]) -> dict[str, int]:
    """Return the required numbers of subtasks of the tasks of a job, by name.

    They are the present ones if Flink does not know requirements, as before version 1.18.
    """
    try:
        required = largest_numbers(rest, job)
    except Refusal:
        return {task.name: task.parallelism for task in tasks}
    return {task.name: required[task.id] for task in tasks}


def packs_subtasks(rest: Rest) -> bool:
    """Whether the adaptive scheduler takes as few TaskManagers as have enough slots.

    It does so in application mode, by default, since Flink 2.0.
    """
    settings = rest.settings()
    prefers = settings.get("jobmanager.adaptive-scheduler.prefer-minimal-taskmanagers", "true")
    is_application = settings.get("execution.target", "").lower() == "embedded"
    return is_application and prefers.lower() == "true" and flink_version(rest) >= (2, 0)


def with_subtasks(graph: StreamGraph, numbers: Subtasks) -> StreamGraph:
    """Graph whose operators have so many subtasks.

    The plan of a job keeps which streams join neighbours only, so where a stream was forwarded and
    numbers are unequal now, Flink rescales it.
    """
    rows = np.array([numbers[name] for name in graph.operators.name], np.int32)
    streams = graph.streams
    differ = rows[streams.source] != rows[streams.target]
    kinds = tuple(
        RESCALE if kind == "forward" and unlike else kind
        for kind, unlike in zip(streams.partitioning, differ.tolist(), strict=True)
    )
    return with_parallelism(replace(graph, streams=replace(streams, partitioning=kinds)), rows)


def rescaled_model(
    job: str,
    question: Question,
    scaling: Scaling,
    errors: PredictionErrors | None,
    at_most: int | None,
    new: NewDevices,
) -> JobModel:
    """Find plans for a measured job; see `streamplace.engines.flink.watch.plans.job_model`."""
    measured = question.measured
    judge = Judge(replace(question, rate=None))
    now = names_of(measured.graph, question.present)
    in_use = {device for vector in now.values() for device in vector}
    # TaskManagers may have gone since the devices were measured, or read from a file.
    there = [name for name in question.free if name in question.slots and name not in new.names]
    order = [*reversed(device_order(measured.cluster, there, in_use)), *new.names]
    slots = {**question.slots, **dict.fromkeys(new.names, question.slots.get(new.like, 0))}
    slots = {device: slots[device] for device in order}
    most, used = min(len(order), at_most or len(order)), len(in_use)
    present = present_plan(judge, now, used, measured.is_limited, errors)
    plans: list[WatchPlan] = []
    for number in sorted({*plan_sizes(most), used}):
        if number == used or number > most:
            plans.append(replace(present, machines=number))
            continue
        few = {device: slots[device] for device in order[:number]}
        if scaling.packs or number >= len(there):
            found = _rescaled(question, judge, scaling, few, sum(few.values()))
        else:
            found = _rescaled(question, judge, scaling, slots, number)
        if found is None:
            continue
        layout, rate = found
        before = plans[-1] if plans else None
        if before and rate - judge.kept < (1 + BETTER) * (before.carries.value - judge.kept):
            plans.append(replace(before, machines=number))
        else:
            plans.append(WatchPlan(number, layout, predicted(rate, errors, judge.kept)))
    level = next(i for i, plan in enumerate(plans) if plan.machines == used)
    return JobModel(
        job,
        measured.graph.name,
        tuple(plans),
        level,
        present,
        limit_of(measured, now),
        new,
        judge.kept,
        measured.varies,
        pins=False,
    )


def _rescaled(
    question: Question, judge: Judge, scaling: Scaling, slots: Mapping[str, int], most: int
) -> tuple[Layout, float] | None:
    """Worst layout on some TaskManagers with subtasks for so many slots, and its rate.

    None if they do not fit, or if the job has them: Flink would not put them elsewhere. Keys may be
    uneven in other ways among other numbers of subtasks, which is not known before.
    """
    measured = question.measured
    graph = measured.graph
    numbers = scaling.to_slots(graph, most)
    if list(numbers.values()) == graph.operators.parallelism.tolist():
        return None
    scaled = replace(measured, graph=with_subtasks(graph, numbers), shares={})
    of_scaled = Judge(replace(question, measured=scaled, rate=None), judge.scale)
    rated: Sequence[tuple[Layout, float]] = [
        (layout, of_scaled.carried(layout))
        for spreads in (False, True)
        for layout in adaptive_layouts(scaled.graph, slots, spreads=spreads)
    ]
    return min(rated, key=lambda one: one[1], default=None)
