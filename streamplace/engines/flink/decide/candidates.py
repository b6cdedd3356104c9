"""Candidates: layouts that a measured job may have, with the predicted rate of each."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

import numpy as np

from streamplace.engines.flink.decide.decision import (
    MEASURED,
    PREDICTED,
    PRESENT,
    Candidate,
    Decision,
    decide,
    interval,
    moved_subtasks,
)
from streamplace.engines.flink.decide.held_back import (
    DividedLoads,
    divided_loads,
    rows_of,
    with_rates,
)
from streamplace.engines.flink.decide.layouts import (
    MODE_SETTING,
    MODES,
    Layout,
    Mode,
    even_layout,
    in_one_group,
    layout_by_speed,
    layouts,
)
from streamplace.engines.flink.measure.cluster import is_pinnable
from streamplace.engines.flink.measure.key_shares import possible_orders
from streamplace.engines.flink.measure.measurement import Measurement
from streamplace.engines.flink.measure.placed_subtasks import capacity
from streamplace.engines.flink.pin.fitting import Managers, left_without, pinnable
from streamplace.engines.flink.pin.names import index_name
from streamplace.engines.flink.pin.pinning import Vectors, vectors_of
from streamplace.engines.flink.program.chains import operators_in
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.settings import shown_settings
from streamplace.engines.names import resource
from streamplace.model.constraints import Constraints
from streamplace.model.expansion import expand
from streamplace.model.graph import CONSISTENCY_ERROR, StreamGraph
from streamplace.model.problem import Problem
from streamplace.model.trust import check_trust, trust_of
from streamplace.model.units import LARGEST
from streamplace.objectives.conditions import composed_objective
from streamplace.placers.registry import USUAL_BUDGET, Budget

SATURATING = 2.0
"""The search is repeated for this multiple of the rate that it found, until it finds less.

Only the part of held-back sources is multiplied if the rates of the others do not change.
"""
MOST_RAISES = 8
EVEN, FOUND, BY_SPEED = "even spread", "found by search", "shares by speed"
ORDER = ("SLOTS", BY_SPEED, FOUND, EVEN, "TASKS", "NONE")
"""Order in which layouts are tried of which nothing is known: from what helps most jobs."""
SPREAD_OUT = "cluster.evenly-spread-out-slots"
"""Older name of the mode SLOTS."""


@dataclass(frozen=True, slots=True)
class Question:
    """Input of a decision: the measured job, its layout and the constraints."""

    measured: Measurement  # the job and the devices
    present: Layout  # operator → device of each of its subtasks
    slots: Mapping[str, int]  # device → number of slots that Flink may give to the job
    spreads: bool  # whether subtasks of one operator can be pinned to several devices
    # Tuples/s that all sources are offered together; None for as much as possible.
    rate: float | None = None
    # Devices on which nothing can be placed: other jobs use them exclusively, or they are not
    # configured for it.
    occupied: frozenset[str] = frozenset()
    modes: tuple[Mode, ...] = MODES  # Flink's modes that the cluster supports
    configured: Mode | None = None  # the mode that it is configured with
    # Relative error of predictions when two layouts of the job are compared.
    width: float = PREDICTED
    # TaskManagers with the resources that the job may use; None if any layout can be pinned.
    managers: Managers | None = None
    is_placed: bool = False  # whether the slot sharing groups of the job are those of its placement

    def pinnable(self, layout: Layout) -> Layout | None:
        """Return a layout as it can be pinned; None if that is impossible."""
        known = self.managers
        return layout if known is None else pinnable(layout, self.measured.graph, known)

    def to_pin(self, layout: Layout) -> Layout | None:
        """Return a layout of Flink's own as it can be pinned; None if that is impossible."""
        used = {device for devices in layout.values() for device in devices}
        is_whole = all(len(set(devices)) == 1 for devices in layout.values())
        if not used <= {*self.free} or not (self.spreads or is_whole):
            return None
        return self.pinnable(layout)

    @property
    def free(self) -> list[str]:
        """Devices on which subtasks can be placed."""
        names = self.measured.cluster.devices.name
        return [name for name in names if name not in self.occupied]


class _Carried(NamedTuple):
    """Tuples/s that a layout carries, and those of them that no layout changes."""

    rate: float
    kept: float


class Judge:
    """Predicts the rates of a job's layouts.

    If the sources are held back now, or emit more than the model allows the present layout,
    predictions are scaled so that the present layout carries the measured rate.

    The rates of all sources change together, except where some are held back and as much is asked
    for as possible: then only theirs do, see `streamplace.engines.flink.decide.held_back`.

    Attributes
    ----------
    rate
        Tuples/s for which the job is placed; None for as much as possible.
    kept
        Tuples/s of sources whose rates do not change; 0 if those of all sources do.
    scale
        What the present layout was measured to carry, relative to what the model says.
    """

    def __init__(self, question: Question, scale: float | None = None) -> None:
        """Compare the model with the present layout, unless its scale is known."""
        measured, rate = question.measured, question.rate
        self._question, graph = question, measured.graph
        self.kept = measured.kept_rate if rate is None else 0.0
        if rate is None and not measured.is_limited:
            rate = graph.source_rate
        self.rate = rate
        self._present = names_of(graph, question.present)
        if scale is None:
            scale = self._scale_of_held_back() if self.kept else None
            if scale is None:
                self.kept, scale = 0.0, self._scale_of_all()
        self.scale = scale

    def _scale_of_held_back(self) -> float | None:
        """Scale if the rates of held-back sources change alone; None if the model denies it."""
        loads = self._divided(self._present)
        scale = loads.fullest
        return scale if 0 < scale < inf and loads.limit(scale) is not None else None

    def _scale_of_all(self) -> float:
        measured = self._question.measured
        rate, now = measured.graph.source_rate, self._carried_together(self._present)
        is_known = 0 < now < inf and (measured.is_limited or now < rate)
        return rate / now if is_known else 1.0

    def carried(self, layout: Layout) -> float:
        """Tuples/s that a layout carries."""
        return self._carried(layout).rate

    def carried_if_pinned(self, layout: Layout) -> float:
        """Tuples/s that a layout carries at least, whichever of its subtasks Flink puts where."""
        return min(map(self.carried, possible_orders(layout, self._question.measured.shares)))

    def by_model(self, layout: Layout) -> float:
        """Total rate up to which a layout carries the graph `at_rate`, if it is pinned."""
        orders = possible_orders(layout, self._question.measured.shares)
        return min(map(self.carried if self.kept else self._carried_together, orders))

    def at_rate(self, rate: float) -> StreamGraph:
        """Graph that the model must carry for a total rate.

        The rate is not scaled if the rates of all sources change together.
        """
        measured = self._question.measured
        graph = measured.graph
        if not self.kept:
            return graph.at_rate(rate)
        factor = (rate - self.kept) / (graph.source_rate - self.kept)
        factors = np.where(rows_of(graph, measured.held_back), factor, 1.0)
        return with_rates(graph, factors / self.scale * graph.operators.rate)

    def _carried(self, layout: Layout) -> _Carried:
        measured = self._question.measured
        if self.kept:
            limit = self._divided(layout).limit(self.scale)
            if limit is not None:
                held = measured.graph.source_rate - self.kept
                more = held / limit if limit else inf
                return _Carried(self.kept + more, self.kept)
        return _Carried(self.scale * self._carried_together(layout), 0.0)

    def _carried_together(self, layout: Layout) -> float:
        """Tuples/s if the rates of all sources change, by the model without scaling."""
        measured = self._question.measured
        graph = measured.graph
        return graph.source_rate * capacity(graph, measured.cluster, layout, measured.shares)

    def _divided(self, layout: Layout) -> DividedLoads:
        measured = self._question.measured
        graph, cluster = measured.graph, measured.cluster
        return divided_loads(graph, cluster, layout, measured.held_back, measured.shares)

    def pinned(self, name: str, layout: Layout) -> Candidate:
        """Return a layout that is pinned: Flink decides which subtask runs where."""
        return self.candidate(name, *possible_orders(layout, self._question.measured.shares))

    def present(self) -> Candidate:
        """Return the present layout of the job."""
        width = MEASURED if self._question.measured.is_limited else self._question.width
        return self._candidate(PRESENT, [self._present], width)

    def candidate(self, name: str, *places: Layout, mode: Mode | None = None) -> Candidate:
        """Return a layout that the job may get, or one of several if Flink chooses among them."""
        return self._candidate(name, places, self._question.width, mode)

    def _candidate(
        self,
        name: str,
        places: Sequence[Layout],
        width: float,
        mode: Mode | None = None,
    ) -> Candidate:
        carried = [self._carried(layout) for layout in places]
        values, kept = [one.rate for one in carried], [one.kept for one in carried]
        middle = sorted(range(len(places)), key=values.__getitem__)[(len(places) - 1) // 2]
        return Candidate(
            name,
            places[middle],
            interval(values, width, kept).up_to(inf if self.rate is None else self.rate),
            moved_subtasks(self._present, places[middle]),
            mode,
            is_configured=mode is not None and mode == self._question.configured,
            kept=kept[middle],
            capacity=values[middle],
        )


def checked(question: Question) -> StreamGraph:
    """Graph with the error of the model for the measured layout.

    Profiles are checked on this machine only, and by their CPU. For a job that is limited on other
    machines, or by a network, the error is the predicted rate of the present layout relative to the
    measured one. The same holds for any job whose predicted rate is 0, because constant loads alone
    exceed a device: its predictions cannot be scaled to the measured rate.
    """
    graph, judge = question.measured.graph, Judge(question)
    carries_nothing = not judge.present().carries.value
    if carries_nothing or question.measured.is_limited:
        known, error = trust_of(graph), -1.0 if carries_nothing else 1 / judge.scale - 1
        if known is None or carries_nothing or known.error > abs(error):
            return replace(graph, attributes={**graph.attributes, CONSISTENCY_ERROR: error})
    return graph


def check_model(question: Question, *, trusts: bool = False) -> str | None:
    """Return the warning to print before a decision; None if the model is not doubtful.

    A model that contradicts the measurement raises ProblemError, unless the profile is trusted.
    """
    return check_trust(checked(question), trusts=trusts)


def contradiction(question: Question) -> str | None:
    """How the model contradicts the measurement; None if its predictions can be used."""
    trust = trust_of(checked(question))
    return str(trust) if trust is not None and trust.is_wrong else None


def decision(question: Question, budget: Budget = USUAL_BUDGET) -> Decision:
    """Find layouts for a job, and predict them by the same model."""
    judge, graph = Judge(question), question.measured.graph
    unpinned = in_one_group(graph) if question.is_placed else graph
    others = []
    for mode in question.modes:
        possible = layouts(unpinned, question.slots, mode)
        if possible:
            one = judge.candidate(f"Flink's {mode}", *possible, mode=mode)
            pins = question.to_pin(one.layout)
            others.append(
                replace(
                    one,
                    layout=pins or one.layout,
                    can_be_pinned=pins is not None,
                    order=ORDER.index(mode),
                )
            )
    if question.free:
        devices = question.measured.cluster.devices
        left = dict(zip(devices.name, (devices.speed * devices.cores).tolist(), strict=True))
        speeds = {name: left[name] for name in question.free}
        for name, layout in (
            (EVEN, even_layout(graph, question.free)),
            (BY_SPEED, layout_by_speed(graph, speeds)),
        ):
            if question.spreads and (pins := question.pinnable(layout)) is not None:
                others.append(replace(judge.pinned(name, pins), order=ORDER.index(name)))
        found = judge.pinned(FOUND, searched(question, judge, budget))
        others.append(replace(found, order=ORDER.index(FOUND)))
    return decide(judge.present(), others)


def searched(question: Question, judge: Judge, budget: Budget | None) -> Layout:
    """Search a layout for a rate; without one, for growing rates until they are not carried.

    If that cannot be pinned, it is searched among those of whole operators.
    """
    from streamplace.placers.named import named_placer

    placer, judged_by = named_placer("auto"), composed_objective("throughput")
    graph, cluster = question.measured.graph, question.measured.cluster
    only = dict.fromkeys(graph.operators.name, question.free) if question.occupied else None
    asked = judge.rate or graph.source_rate
    best: Layout = {}
    carried = 0.0
    for _ in range(MOST_RAISES):
        problem = Problem(judge.at_rate(asked), cluster, Constraints(allowed=only))
        if question.spreads:
            problem = expand(problem.graph).problem(problem)
        result = placer.place(problem, judged_by, seed=0, budget=budget or USUAL_BUDGET)
        vectors = vectors_of(result.placement.as_dict(), graph.operators.parallel)
        places = names_of(graph, vectors)
        found = judge.by_model(places)
        if not best or found > carried:
            best, carried = places, found
        more = judge.kept + SATURATING * (carried - judge.kept)
        if judge.rate is not None or carried < asked or more > LARGEST:
            break
        asked = more
    fitting = question.pinnable(best)
    if fitting is None:
        return searched(replace(question, spreads=False), judge, budget)
    return fitting


def names_of(graph: StreamGraph, vectors: Vectors) -> Layout:
    """Layout by the operators of a graph, each of which may consist of several that Flink fused."""
    layout = {}
    numbers = zip(graph.operators.name, graph.operators.parallelism.tolist(), strict=True)
    for name, number in numbers:
        first = next(one for one in (name, *operators_in(name)) if one in vectors)
        vector = vectors[first]
        layout[name] = [vector] * number if isinstance(vector, str) else list(vector)
    return layout


def slots_for(rest: Rest, job: str) -> dict[str, int]:
    """Device → slots that Flink may give to a job when it is submitted again without pins."""
    slots = {}
    for manager in rest.task_managers():
        device, number = manager["id"], manager.get("slotsNumber", 0)
        taken = rest.task_manager(device).get("allocatedSlots", ())
        own = sum(slot["jobId"] == job for slot in taken)
        alone = own == len(taken)
        slots[device] = number if alone else min(number, manager.get("freeSlots", 0) + own)
    return slots


def is_placed(rest: Rest, job: str) -> bool:
    """Whether slots of a job request a TaskManager, so that its groups are those of a placement.

    A slot of any other job has its part of everything that the TaskManager offers.
    """
    for manager in filter(is_pinnable, rest.task_managers()):
        device = manager["id"]
        for slot in rest.task_manager(device).get("allocatedSlots", ()):
            taken = slot.get("resource", {}).get("extendedResources", {})
            if slot["jobId"] == job and taken and taken.get(resource(device), 0) <= 1:
                return True
    return False


def can_spread(rest: Rest) -> bool:
    """Whether all TaskManagers that can be pinned to are configured for spread operators."""
    rows = [row for row in rest.task_managers() if is_pinnable(row)]
    offered = [row["totalResource"]["extendedResources"] for row in rows]
    return bool(offered) and all(index_name(0) in resources for resources in offered)


def occupied_devices(rest: Rest, job: str) -> frozenset[str]:
    """Devices to which nothing can be pinned.

    Other jobs use them exclusively, or they are not configured for pins although others are.
    """
    rows = left_without(rest, job)
    unprepared = {row["id"] for row in rows if not is_pinnable(row)}
    return frozenset(
        row["id"]
        for row in rows
        if row["freeResource"].get("extendedResources", {}).get(resource(row["id"]), 1.0) < 1
        or (row["id"] in unprepared and len(unprepared) < len(rows))
    )


def known_modes(rest: Rest) -> tuple[Mode, ...]:
    """Return Flink's modes that a cluster supports; TASKS is not tried before Flink 2.3."""
    is_new = flink_version(rest) >= (2, 3)
    return tuple(mode for mode in MODES if is_new or mode != "TASKS")


def flink_version(rest: Rest) -> tuple[int, int]:
    """Major and minor version of a cluster's Flink; zeros if its version has another form."""
    found = re.match(r"(\d+)\.(\d+)", rest.get("/config")["flink-version"])
    return (0, 0) if found is None else (int(found[1]), int(found[2]))


def configured_mode(rest: Rest) -> Mode | None:
    """Return the mode that a cluster is configured with; None if it is unknown or not modelled."""
    settings = shown_settings(rest)
    if settings is None:
        return None
    usual = "SLOTS" if settings.get(SPREAD_OUT, "").lower() == "true" else "NONE"
    given = settings.get(MODE_SETTING, usual).upper()
    return next((mode for mode in MODES if mode == given), None)
