"""Candidates: layouts that a measured job may have, with the predicted rate of each."""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from streamplace.engines.flink.decide.layouts import (
    MODE_SETTING,
    MODES,
    Mode,
    even_layout,
    in_one_group,
    layout_by_speed,
    layouts,
)
from streamplace.engines.flink.decide.rates import JobRates
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.cluster import is_pinnable
from streamplace.engines.flink.measure.measurement import Measurement, possible_orders
from streamplace.engines.flink.pin.fitting import Managers, left_without, pinnable
from streamplace.engines.flink.pin.names import index_name
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.settings import shown_settings
from streamplace.engines.names import resource
from streamplace.model.constraints import Constraints
from streamplace.model.expansion import expand
from streamplace.model.intervals import PredictionErrors, RateInterval
from streamplace.model.problem import Problem
from streamplace.model.units import LARGEST
from streamplace.objectives.conditions import composed_objective
from streamplace.placers.registry import USUAL_BUDGET, Budget

LOG = logging.getLogger(__name__)
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


@dataclass(frozen=True)
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
    # TaskManagers with the resources that the job may use; None if any layout can be pinned.
    managers: Managers | None = None
    is_placed: bool = False  # whether the slot sharing groups of the job are those of its placement
    errors: PredictionErrors | None = None  # of predictions for the job; None ignores them

    @cached_property
    def rates(self) -> JobRates:
        """Predicts the rates of layouts."""
        return JobRates(self.measured, self.present.by_task(self.measured.graph), self.rate)

    def pinnable(self, layout: Layout) -> Layout | None:
        """Return a layout as it can be pinned; None if that is impossible."""
        known = self.managers
        return layout if known is None else pinnable(layout, self.measured.graph, known)

    def to_pin(self, layout: Layout) -> Layout | None:
        """Return a layout of Flink's own as it can be pinned; None if that is impossible."""
        is_whole = not layout.spread_devices
        if not layout.devices <= {*self.free} or not (self.spreads or is_whole):
            return None
        return self.pinnable(layout)

    @property
    def free(self) -> list[str]:
        """Devices on which subtasks can be placed."""
        names = self.measured.cluster.devices.name
        return [name for name in names if name not in self.occupied]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layout that a job may have, and the rate that it should carry."""

    name: str
    layout: Layout  # devices of its subtasks; one of several layouts if Flink decides
    predicted: RateInterval  # tuples/s, however few are offered, with the errors of predictions
    kept: float = 0.0  # tuples/s of them that do not depend on the layout
    line: str = ""  # line of configuration by which Flink produces it without pins
    can_be_pinned: bool = True  # whether the cluster can run the job in this layout
    order: int = 0  # position among layouts of which nothing is known


def candidate(question: Question, name: str, *places: Layout) -> Candidate:
    """Return a layout with its prediction, or one of several of which Flink chooses.

    Intervals are those of the job's errors, since an error of its model concerns all its layouts.
    Rates of sources that do not depend on the layout are certain.
    """
    carried = [question.rates.of(layout) for layout in places]
    order = sorted(range(len(places)), key=carried.__getitem__)
    least, middle, most = (carried[order[i]] for i in (0, (len(order) - 1) // 2, -1))
    kept = min(question.rates.kept, least)
    predicted = RateInterval(least, middle, most)
    if (errors := question.errors) is not None:
        predicted = RateInterval(
            kept + errors.low * (least - kept), middle, kept + errors.high * (most - kept)
        )
    layout = places[order[(len(order) - 1) // 2]]
    return Candidate(name, layout, predicted, kept, order=_position(name))


def candidates(question: Question, budget: Budget = USUAL_BUDGET) -> list[Candidate]:
    """Find layouts for a job: those of Flink's modes, even and uneven spreads, and a search."""
    graph = question.measured.graph
    unpinned = in_one_group(graph) if question.is_placed else graph
    found = []
    for mode in question.modes:
        if possible := layouts(unpinned, question.slots, mode):
            one = candidate(question, f"Flink's {mode}", *possible)
            pins = question.to_pin(one.layout)
            line = "" if mode == question.configured else f"{MODE_SETTING}: {mode}"
            can_be_pinned = pins is not None
            found.append(
                replace(one, layout=pins or one.layout, line=line, can_be_pinned=can_be_pinned)
            )
    if question.free:
        devices = question.measured.cluster.devices
        power = dict(zip(devices.name, (devices.speed * devices.cores).tolist(), strict=True))
        speeds = {name: power[name] for name in question.free}
        places = {FOUND: searched(question, budget)}
        for name, layout in (
            (EVEN, even_layout(graph, question.free)),
            (BY_SPEED, layout_by_speed(graph, speeds)),
        ):
            if question.spreads and (own := question.pinnable(layout)) is not None:
                places[name] = own
        shares = question.measured.shares
        found += [
            candidate(question, n, *possible_orders(one, shares)) for n, one in places.items()
        ]
    return sorted(found, key=lambda one: -one.predicted.value)


def _position(name: str) -> int:
    known = name.removeprefix("Flink's ")
    return ORDER.index(known) if known in ORDER else len(ORDER)


def searched(question: Question, budget: Budget | None = None) -> Layout:
    """Search a layout for a rate; without one, for growing rates until they are not carried.

    If that cannot be pinned, it is searched among those of whole operators.
    """
    from streamplace.placers.named import named_placer

    placer, judged_by = named_placer("auto"), composed_objective("throughput")
    rates, graph, cluster = question.rates, question.measured.graph, question.measured.cluster
    only = dict.fromkeys(graph.operators.name, question.free) if question.occupied else None
    grows = question.rate is None and question.measured.is_limited
    asked = question.rate or graph.source_rate
    best = Layout()
    carried = 0.0
    for _ in range(MOST_RAISES):
        problem = Problem(rates.at_rate(asked), cluster, Constraints(allowed=only))
        if question.spreads:
            problem = expand(problem.graph).problem(problem)
        result = placer.place(problem, judged_by, seed=0, budget=budget or USUAL_BUDGET)
        assignment = result.placement.as_dict()
        layout = Layout.of(assignment, graph.operators.parallel).by_task(graph)
        found = rates.if_pinned(layout)
        LOG.debug("searched for %.6g/s: a layout for %.6g/s", asked, found)
        if not best or found > carried:
            best, carried = layout, found
        more = rates.kept + SATURATING * (carried - rates.kept)
        if not grows or carried < asked or more > LARGEST:
            break
        asked = more
    fitting = question.pinnable(best)
    return searched(replace(question, spreads=False), budget) if fitting is None else fitting


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
