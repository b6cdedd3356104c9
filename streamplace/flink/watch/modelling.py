"""Capacities of layouts of a watched job, on one, two and more TaskManagers.

The TaskManagers are ordered, and a layout on n of them uses the first n, so all layouts of a size
leave the same TaskManagers free. Every measurement fits the model to the windows of all measured
layouts (`JobImprover.propose`).
"""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from streamplace.flink.constants import MAX_SIZES
from streamplace.flink.decide.candidates import Candidate, Question, candidate, candidates
from streamplace.flink.decide.improving import JobImprover, Proposal, Trial
from streamplace.flink.layout import Layout
from streamplace.flink.measure.cluster import ALL, ASSUMED_CPU, Measurement, placed
from streamplace.flink.measure.cost_fit import Observation, averaged
from streamplace.flink.measure.profile import UNMEASURED_PYTHON
from streamplace.flink.watch.deciding import JobModel, LayoutOption
from streamplace.model.graph import CPU_ORIGIN
from streamplace.model.message_text import listed, shown
from streamplace.model.prediction_intervals import RateInterval
from streamplace.model.profile_trust import profile_spread
from streamplace.objectives.throughput.loads import RESOURCES, at_max_rate
from streamplace.placers.registry import USUAL_BUDGET, Budget

_NUMBER = re.compile(r"\b\d[\d.,]*")


@dataclass(frozen=True, slots=True)
class JobModeller:
    """Measures a watched job, and finds layouts for it; nothing is stopped."""

    improver: JobImprover
    at_most: int | None = None  # maximum number of TaskManagers of the job; None for all
    budget: Budget = USUAL_BUDGET  # budget of each search
    _notes: set[str] = field(default_factory=set, init=False)  # printed notes
    # Operator → use of its subtasks in all measured layouts, averaged by rate, because a watch of
    # weeks could not keep every window.
    _observed: dict[str, Sequence[Observation]] = field(default_factory=dict, init=False)

    def __call__(self, job: str, managers: Set[str], trials: Sequence[Trial]) -> JobModel:
        """Measure a job on the present TaskManagers; ``trials``: its other measured layouts."""
        engine, offered = self.improver.engine, {*managers, ALL}
        cards = {name: speed for name, speed in engine.cards.items() if name in offered}
        improver = replace(
            self.improver,
            engine=replace(engine, cards=cards),
            decides=partial(self._layouts, managers),
            tell=self._note,
        )
        proposal = improver.propose(job, {**self._observed}, trials)
        measured, present, rates = proposal.measured, proposal.where, proposal.question.rates
        for name, windows in measured.observed.items():
            self._observed[name] = averaged(windows)
        for note in measured.notes:
            self._note(f"note: {note}")
        if gap := _cpu_gap(measured):
            self._note(f"note: the job is not moved to fewer TaskManagers, because {gap}")
        if CPU_ORIGIN in measured.graph.attributes:
            self._note(f"{CPU_ORIGIN}: {measured.graph.attributes[CPU_ORIGIN]}")
        if (errors := proposal.question.errors) is not None:
            self._note(f"intervals: {errors.words}")
        here = option_of(proposal, candidate(proposal.question, present.name, present.layout))
        others = [
            option_of(proposal, other)
            for other in proposal.candidates
            if other.can_be_pinned and not present.is_at(other.layout)
        ]
        if gap:
            others = [replace(o, counts_all_cpu=o.machines >= here.machines) for o in others]
        number = sum(name in managers for name in measured.cluster.devices.name)
        sizes = plan_sizes(self._limited(number))
        return JobModel(
            here,
            tuple(others),
            tuple(sorted({*sizes, here.machines})),
            limit_of(measured, present.layout),
            float(rates.sustained.sum()) / measured.graph.source_rate,
        )

    def _limited(self, number: int) -> int:
        """Number of TaskManagers within the limit of the user."""
        return number if self.at_most is None else min(self.at_most, number)

    def _note(self, note: str) -> None:
        """Print a note once; notes that differ only in numbers are the same."""
        if (words := _NUMBER.sub("", note)) not in self._notes:
            self.improver.tell(note)
            self._notes.add(words)

    def _layouts(self, managers: Set[str], question: Question) -> list[Candidate]:
        """Layouts on all present TaskManagers that the job may use, and on the first of them.

        Fast TaskManagers come first, and among equal ones those that the job uses.
        """
        names, used = frozenset(question.speeds), question.present.devices
        job = replace(question, occupied=question.occupied | names.difference(managers))
        order = sorted(
            job.free, key=lambda name: (-float(f"{job.speeds[name]:.1g}"), name not in used, name)
        )
        largest = self._limited(len(order))
        answers = candidates(job, self.budget)
        for number in {*plan_sizes(largest), min(len(used), largest)} - {0, len(order)}:
            fewer = replace(job, occupied=names.difference(order[:number]), modes=())
            answers += [
                replace(c, name=f"{c.name} on {number}") for c in candidates(fewer, self.budget)
            ]
        return [c for c in answers if len(c.layout.devices) <= max(largest, len(used))]


def option_of(proposal: Proposal, answer: Candidate) -> LayoutOption:
    """A layout with the interval of its capacity.

    The rates of sources that keep up are certain, up to the capacity of the layout.
    """
    low, value, high = answer.predicted
    if (errors := proposal.question.errors) is not None:
        low = answer.kept + errors.at_least((low - answer.kept) / errors.low)
    return LayoutOption(
        answer.layout,
        RateInterval(low, value, high),
        moves=answer.layout.number_moved_from(proposal.where.layout),
        order=answer.order,
        kept=answer.kept,
        spread=profile_spread(proposal.measured.graph),
        is_known=proposal.question.rates.contradiction is None,
    )


def plan_sizes(largest: int) -> list[int]:
    """Numbers of TaskManagers up to the largest: all, or `MAX_SIZES` that grow by a factor.

    >>> plan_sizes(4), plan_sizes(40)
    ([1, 2, 3, 4], [1, 2, 3, 5, 8, 14, 24, 40])
    """
    if largest <= MAX_SIZES:
        return list(range(1, largest + 1))
    grown = np.geomspace(1, largest, MAX_SIZES).round().astype(int).tolist()
    return sorted({max(size, i + 1) for i, size in enumerate(grown)})


def limit_of(measured: Measurement, layout: Layout) -> str:
    """The resource that limits a layout first, in words."""
    from streamsim import bottleneck, resource_loads

    names = measured.cluster.devices.name
    job = placed(measured.graph, measured.cluster, layout, measured.shares)
    worst = bottleneck(resource_loads(job.problem.instance, job.placement))
    if worst.kind == "core" and len(slow := at_max_rate(job.problem, job.placement, worst)):
        operator = job.expansion.original.operators.name[job.expansion.operator[slow[0]]]
        return f"the max_rate of a subtask of {shown(operator)}"
    peer = f"→{names[worst.peer]}" if worst.peer >= 0 else ""
    return RESOURCES[worst.kind].format(f"{names[worst.device]}{peer}")


def _cpu_gap(measured: Measurement) -> str:
    """Clause on unmeasured CPU of operators or TaskManagers; empty if all is measured."""
    if unknown := measured.unknown_cpu:
        return f"the CPU of {listed(unknown)} is not known"
    if UNMEASURED_PYTHON in measured.notes:
        return "the CPU of the job's Python processes is not measured"
    if ASSUMED_CPU in measured.notes:
        return "the CPU of TaskManagers on other machines is assumed (give --cluster)"
    return ""
