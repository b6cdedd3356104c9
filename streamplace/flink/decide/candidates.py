"""Candidates: possible layouts of a measured job, with the predicted rate of each.

Flink's own scheduler would produce some of them (`slot_assignment`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from streamplace.flink.constants import MIN_GAIN
from streamplace.flink.decide.rates import JobRates
from streamplace.flink.decide.slot_assignment import (
    MODES,
    known_modes,
    layouts,
    mode_line,
    parallelism,
)
from streamplace.flink.layout import Layout
from streamplace.flink.measure.cluster import Measurement, possible_orders
from streamplace.flink.pin.free_resources import (
    Managers,
    is_pinnable,
    is_placed,
    managers_without,
    occupied_devices,
    pinnable,
)
from streamplace.flink.pin.pinning import index_name
from streamplace.flink.rest.client import Rest
from streamplace.model import Constraints, Problem, StreamGraph
from streamplace.model.expansion import expand
from streamplace.model.prediction_intervals import PredictionErrors, RateInterval
from streamplace.model.units import MAX_VALUE
from streamplace.objectives.conditions import composed_objective
from streamplace.placers.registry import USUAL_BUDGET, Budget

RATE_GROWTH = 2.0
"""Factor of the rate from one search to the next, until a search finds no layout for its rate.

The rates of sources that keep up do not grow.
"""
BY_SEARCH, BY_SPEED = "found by search", "shares by speed"
ORDER = ("Flink's SLOTS", BY_SPEED, BY_SEARCH, "Flink's TASKS", "Flink's NONE")
"""Order of trials of layouts with equal predictions: first the most helpful kinds."""


@dataclass(frozen=True)
class Question:
    """Input of a decision: the measured job, its layout and the constraints."""

    measured: Measurement  # the job and the devices
    present: Layout  # by operators, with fused operators one by one
    slots: Mapping[str, int]  # device → number of slots that Flink may give to the job
    spreads: bool  # whether subtasks of one operator can be pinned to several devices
    # Tuples/s that arrive for all sources together; None for the emitted rate, or for the maximum
    # if the sources are back-pressured.
    rate: float | None = None
    # Devices on which nothing can be placed: other jobs use them exclusively, or they are not
    # configured for it.
    occupied: frozenset[str] = frozenset()
    modes: tuple[str, ...] = MODES  # Flink's modes that the cluster supports
    # TaskManagers with the resources that the job may use; None if any layout can be pinned.
    managers: Managers | None = None
    is_placed: bool = False  # whether the job has the slot sharing groups of a placement
    errors: PredictionErrors | None = None  # of predictions for the job; None ignores them

    @classmethod
    def of(
        cls,
        rest: Rest,
        job: str,
        measured: Measurement,
        present: Layout,
        rate: float | None,
        errors: PredictionErrors | None,
    ) -> "Question":
        """Read from a cluster which layouts a running job may have."""
        managers = managers_without(rest, job)
        resources = [
            row["totalResource"]["extendedResources"] for row in managers if is_pinnable(row)
        ]
        return cls(
            measured,
            present,
            {row["id"]: _slots_for(job, row) for row in managers},
            bool(resources) and all(index_name(0) in names for names in resources),
            rate,
            occupied_devices(managers),
            known_modes(rest),
            managers,
            is_placed(job, managers) is True,
            errors,
        )

    @cached_property
    def rates(self) -> JobRates:
        """Predicts the rates of layouts."""
        return JobRates(self.measured, self.present.by_task(self.measured.graph), self.rate)

    def pinnable(self, layout: Layout) -> Layout | None:
        """Return a layout as it can be pinned; None if that is impossible."""
        if not layout.devices <= {*self.free} or (layout.spread_devices and not self.spreads):
            return None
        if self.managers is None:
            return layout
        return pinnable(layout, self.measured.graph, self.managers)

    @cached_property
    def speeds(self) -> dict[str, float]:
        """Speed of all cores of each device together."""
        devices = self.measured.cluster.devices
        return dict(zip(devices.name, (devices.speed * devices.cores).tolist(), strict=True))

    @property
    def free(self) -> list[str]:
        """Devices on which subtasks can be placed."""
        names = self.measured.cluster.devices.name
        return [name for name in names if name not in self.occupied]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible layout of a job, and its predicted rate."""

    name: str
    layout: Layout  # by operators; the best of the possible layouts of a mode of Flink
    predicted: RateInterval  # capacity in tuples/s, with the errors of predictions
    kept: float = 0.0  # tuples/s of the capacity that do not depend on the layout
    line: str = ""  # line of configuration by which Flink produces it, or an equally good layout
    can_be_pinned: bool = True  # whether the cluster can run the job in this layout
    mode: str = ""  # Flink's mode whose possible layouts include this one
    by_flink: RateInterval | None = None  # tuples/s if Flink chooses one of its possible layouts

    @property
    def shown(self) -> RateInterval:
        """Interval to print: for a mode of Flink, over all possible layouts."""
        return self.by_flink or self.predicted

    @property
    def order(self) -> int:
        """Position among layouts of equal predictions."""
        return ORDER.index(self.name) if self.name in ORDER else len(ORDER)


def candidate(question: Question, name: str, *places: Layout) -> Candidate:
    """Candidate for a layout that Flink chooses: the median layout, with an interval for all.

    The errors of predictions of the job widen the interval, except for the rates of sources that do
    not depend on the layout.
    """
    carried = sorted((question.rates.of(layout), i) for i, layout in enumerate(places))
    median = (len(carried) - 1) // 2
    (low, _), (value, row), (high, _) = (carried[i] for i in (0, median, -1))
    kept = min(question.rates.kept, low)
    predicted = RateInterval(low, value, high)
    if (errors := question.errors) is not None:
        predicted = RateInterval(
            kept + errors.low * (low - kept), value, kept + errors.high * (high - kept)
        )
    return Candidate(name, places[row].by_operator(), predicted, kept)


def candidates(question: Question, budget: Budget = USUAL_BUDGET) -> list[Candidate]:
    """Find layouts for a job: of Flink's modes, shares by speed, and a search."""
    graph = question.measured.graph
    unpinned = in_one_group(graph) if question.is_placed else graph
    names, answers = {*question.measured.cluster.devices.name}, []
    for mode in question.modes:
        possible = layouts(unpinned, question.slots, mode)
        if possible and all(layout.devices <= names for layout in possible):
            answers.append(_of_mode(question, mode, possible))
    if question.free:
        places: dict[str, Layout | None] = {BY_SEARCH: search_layout(question, budget)}
        if question.spreads:
            speeds = {name: question.speeds[name] for name in question.free}
            places[BY_SPEED] = question.pinnable(layout_by_speed(graph, speeds))
        shares = question.measured.shares
        answers += [
            candidate(question, name, *possible_orders(layout, shares))
            for name, layout in places.items()
            if layout is not None
        ]
    return sorted(answers, key=lambda c: -c.predicted.value)


def _of_mode(question: Question, mode: str, possible: Sequence[Layout]) -> Candidate:
    """The best of the layouts that Flink may choose in a mode, to be pinned.

    The line of configuration is set only if the other layouts carry about as much.
    """
    name, rate = f"Flink's {mode}", question.rates.of
    best = max(possible, key=rate)
    pins = question.pinnable(best)
    is_sure = (1 + MIN_GAIN) * min(map(rate, possible)) >= rate(best)
    return replace(
        candidate(question, name, pins or best),
        line=mode_line(mode) if is_sure else "",
        can_be_pinned=pins is not None,
        mode=mode,
        by_flink=candidate(question, name, *possible).predicted,
    )


def search_layout(question: Question, budget: Budget = USUAL_BUDGET) -> Layout:
    """Search a layout for the rate in question; without one, for growing rates while they fit.

    If the layout cannot be pinned, the search is repeated over layouts of whole operators.
    """
    from streamplace.placers.named import named_placer

    placer, judged_by = named_placer("auto"), composed_objective("throughput")
    rates, graph, cluster = question.rates, question.measured.graph, question.measured.cluster
    only = dict.fromkeys(graph.operators.name, question.free) if question.occupied else None
    rate = question.rate or graph.source_rate
    best = Layout()
    carried = 0.0
    while True:
        problem = Problem(rates.at_rate(rate), cluster, Constraints(allowed=only))
        if question.spreads:
            problem = expand(problem.graph).problem(problem)
        result = placer.place(problem, judged_by, seed=0, budget=budget)
        assignment = result.placement.as_dict()
        layout = Layout.of(assignment, graph.operators.parallel).by_task(graph)
        capacity = rates.if_pinned(layout)
        if not best or capacity > carried:
            best, carried = layout, capacity
        next_rate = rates.kept + RATE_GROWTH * (carried - rates.kept)
        if question.rate is not None or carried < rate or next_rate > MAX_VALUE:
            break
        rate = next_rate
    if (pins := question.pinnable(best)) is None:
        return search_layout(replace(question, spreads=False), budget)
    return pins


def _slots_for(job: str, manager: Mapping[str, Any]) -> int:
    """Slots of a TaskManager that Flink may give to a job that is submitted again without pins."""
    allocated = manager.get("allocatedSlots", ())
    of_job: int = sum(slot["jobId"] == job for slot in allocated)
    number = int(manager.get("slotsNumber", 0))
    if of_job == len(allocated):
        return number
    return min(number, int(manager.get("freeSlots", 0)) + of_job)


def in_one_group(graph: StreamGraph) -> StreamGraph:
    """Return the graph with all operators in one slot sharing group, as in most programs.

    A placed job has the groups of its placement; the groups of the program are unknown.
    """
    one_group = ("",) * graph.n_operators
    return graph.with_operators(replace(graph.operators, slot_sharing_group=one_group))


def layout_by_speed(graph: StreamGraph, speeds: Mapping[str, float]) -> Layout:
    """Distribute subtasks over the devices in proportion to speed.

    Each subtask goes to the device with the fewest subtasks of its operator per speed; if several
    have equally few, to the one with the fewest subtasks of all operators per speed.

    >>> from streamplace.model import Operator, Stream
    >>> ends = [Operator("src", rate=1, parallelism=2), Operator("map", parallelism=3)]
    >>> graph = StreamGraph.of("job", ends, [Stream("src", "map")])
    >>> layout_by_speed(graph, {"a": 2.0, "b": 1.0})
    Layout({'src': ['a', 'a'], 'map': ['a', 'a', 'b']})
    """
    layout: dict[str, list[str]] = {}
    total = Counter[str]()
    for name, number in parallelism(graph).items():
        counts = Counter[str]()
        for _ in range(number):
            device = min(
                speeds, key=lambda d: ((counts[d] + 1) / speeds[d], (total[d] + 1) / speeds[d])
            )
            counts[device] += 1
            total[device] += 1
        layout[name] = [device for device in speeds for _ in range(counts[device])]
    return Layout(layout)
