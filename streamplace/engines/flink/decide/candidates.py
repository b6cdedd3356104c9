"""Candidates: layouts that a measured job may have, with the predicted rate of each.

Some are those in which Flink's own scheduler would run the job. It shares slots in two steps.
First, the subtasks of a slot sharing group are collected into bundles, one per slot, with at most
one subtask of every operator. Then slots are chosen for them from TaskManagers, and bundles are put
into them. ``taskmanager.load-balance.mode`` decides how:

====== ====================================== =========================== =========================
mode   bundles                                slots                       bundles into slots
====== ====================================== =========================== =========================
NONE   a subtask joins one that it reads from one TaskManager after another in any order
SLOTS  as NONE                                of the emptiest TaskManager in any order
TASKS  of equal numbers of subtasks           one TaskManager after another largest bundle first, to
                                                                          the TaskManager with the
                                                                          fewest subtasks
====== ====================================== =========================== =========================

If Flink may use any order, there are several possible layouts: `layouts` returns some of them. The
rules are those of Flink 2.3; a test starts jobs in each mode and compares. In that version TASKS
fills one TaskManager after another, so it balances tasks only among those that the job needs.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal, get_args

import numpy as np

from streamplace.engines.flink.constants import VARIANTS, WORTHWHILE
from streamplace.engines.flink.decide.rates import JobRates
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.cluster import Measurement, possible_orders
from streamplace.engines.flink.pin.free_resources import (
    Managers,
    is_pinnable,
    is_placed,
    left_without,
    occupied_devices,
    pinnable,
)
from streamplace.engines.flink.pin.pinning import index_name
from streamplace.engines.flink.rest.client import Rest
from streamplace.model.constraints import Constraints
from streamplace.model.expansion import expand
from streamplace.model.graph import StreamGraph
from streamplace.model.prediction_intervals import PredictionErrors, RateInterval
from streamplace.model.problem import Problem
from streamplace.model.streams import FORWARD, RESCALED
from streamplace.model.units import LARGEST
from streamplace.objectives.conditions import composed_objective
from streamplace.placers.registry import USUAL_BUDGET, Budget

Mode = Literal["NONE", "SLOTS", "TASKS"]
MODES: tuple[Mode, ...] = get_args(Mode)
MODE_SETTING = "taskmanager.load-balance.mode"
Bundle = list[tuple[int, int]]
"""Subtasks that share a slot, as rows of their operators and their numbers."""
SATURATING = 2.0
"""The search is repeated for this multiple of the rate that it found, until it finds a lower one.

Only the share of held-back sources is multiplied if the rates of the others do not change.
"""
EVEN, FOUND, BY_SPEED = "even spread", "found by search", "shares by speed"
ORDER = ("Flink's SLOTS", BY_SPEED, FOUND, EVEN, "Flink's TASKS", "Flink's NONE")
"""Order in which layouts of equal predictions are tried: first what helps most jobs."""


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
    # TaskManagers with the resources that the job may use; None if any layout can be pinned.
    managers: Managers | None = None
    is_placed: bool = False  # whether the slot sharing groups of the job are those of its placement
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
        """Ask a cluster which layouts a running job may have."""
        managers = left_without(rest, job)
        offered = [
            row["totalResource"]["extendedResources"] for row in managers if is_pinnable(row)
        ]
        return cls(
            measured,
            present,
            {row["id"]: _slots_for(job, row) for row in managers},
            bool(offered) and all(index_name(0) in resources for resources in offered),
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
    """A layout that a job may have, and the rate that it should carry."""

    name: str
    layout: Layout  # by operators; of Flink's possible layouts, the best one
    predicted: RateInterval  # tuples/s, however few are offered, with the errors of predictions
    kept: float = 0.0  # tuples/s of them that do not depend on the layout
    line: str = ""  # line of configuration by which Flink produces it, or one that carries as much
    can_be_pinned: bool = True  # whether the cluster can run the job in this layout
    by_flink: RateInterval | None = None  # tuples/s if Flink chooses one of its possible layouts

    @property
    def shown(self) -> RateInterval:
        """Interval for its name: for a mode of Flink, over all possible layouts."""
        return self.by_flink or self.predicted

    @property
    def order(self) -> int:
        """Position among layouts of equal predictions."""
        return ORDER.index(self.name) if self.name in ORDER else len(ORDER)


def candidate(question: Question, name: str, *places: Layout) -> Candidate:
    """Candidate for layouts of which Flink chooses one: the middle one, with an interval for all.

    The errors of the job widen it; rates of sources that do not depend on the layout are certain.
    """
    carried = sorted((question.rates.of(layout), i) for i, layout in enumerate(places))
    (least, _), (value, middle), (most, _) = (carried[i] for i in (0, (len(carried) - 1) // 2, -1))
    kept = min(question.rates.kept, least)
    predicted = RateInterval(least, value, most)
    if (errors := question.errors) is not None:
        predicted = RateInterval(
            kept + errors.low * (least - kept), value, kept + errors.high * (most - kept)
        )
    return Candidate(name, places[middle].by_operator(), predicted, kept)


def candidates(question: Question, budget: Budget = USUAL_BUDGET) -> list[Candidate]:
    """Find layouts for a job: of Flink's modes, an even spread, shares by speed, and a search."""
    graph = question.measured.graph
    unpinned = in_one_group(graph) if question.is_placed else graph
    names, found = {*question.measured.cluster.devices.name}, []
    for mode in question.modes:
        possible = layouts(unpinned, question.slots, mode)
        if possible and all(layout.devices <= names for layout in possible):
            found.append(_of_mode(question, mode, possible))
    if question.free:
        places: dict[str, Layout | None] = {FOUND: searched(question, budget)}
        if question.spreads:
            speeds = {name: question.speeds[name] for name in question.free}
            places[EVEN] = question.pinnable(even_layout(graph, question.free))
            places[BY_SPEED] = question.pinnable(layout_by_speed(graph, speeds))
        shares = question.measured.shares
        found += [
            candidate(question, name, *possible_orders(layout, shares))
            for name, layout in places.items()
            if layout is not None
        ]
    return sorted(found, key=lambda c: -c.predicted.value)


def _of_mode(question: Question, mode: Mode, possible: Sequence[Layout]) -> Candidate:
    """The best of the layouts that Flink may choose, which is the one to pin.

    The line of configuration is given only if the others carry about as much.
    """
    name, rate = f"Flink's {mode}", question.rates.of
    best = max(possible, key=rate)
    pins = question.pinnable(best)
    is_sure = (1 + WORTHWHILE) * min(map(rate, possible)) >= rate(best)
    return replace(
        candidate(question, name, pins or best),
        line=f"{MODE_SETTING}: {mode}" if is_sure else "",
        can_be_pinned=pins is not None,
        by_flink=candidate(question, name, *possible).predicted,
    )


def searched(question: Question, budget: Budget = USUAL_BUDGET) -> Layout:
    """Search a layout for a rate; without one, for growing rates until one is not carried.

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
        found = rates.if_pinned(layout)
        if not best or found > carried:
            best, carried = layout, found
        more = rates.kept + SATURATING * (carried - rates.kept)
        if question.rate is not None or carried < rate or more > LARGEST:
            break
        rate = more
    fitting = question.pinnable(best)
    return searched(replace(question, spreads=False), budget) if fitting is None else fitting


def _slots_for(job: str, manager: Mapping[str, Any]) -> int:
    """Slots of a TaskManager that Flink may give to a job that is submitted again without pins."""
    held = manager.get("allocatedSlots", ())
    own = sum(slot["jobId"] == job for slot in held)
    number = int(manager.get("slotsNumber", 0))
    return number if own == len(held) else min(number, manager.get("freeSlots", 0) + own)


def known_modes(rest: Rest) -> tuple[Mode, ...]:
    """Return Flink's modes that a cluster supports; TASKS is new in Flink 2.3."""
    version = re.match(r"(\d+)\.(\d+)", rest.get("/config")["flink-version"])
    is_new = version is not None and (int(version[1]), int(version[2])) >= (2, 3)
    return tuple(mode for mode in MODES if is_new or mode != "TASKS")


def layouts(graph: StreamGraph, slots: Mapping[str, int], mode: Mode) -> list[Layout]:
    """Return layouts that Flink may choose for a job; empty if there are too few slots.

    The graph is in topological order; ``slots`` has the free slots of each device.

    >>> from streamplace.model import Operator, Stream
    >>> ends = [Operator("src", rate=1), Operator("map", parallelism=2)]
    >>> graph = StreamGraph.of("job", ends, [Stream("src", "map")])
    >>> layouts(graph, {"a": 2}, "NONE")
    [Layout({'src': ['a'], 'map': ['a', 'a']})]
    >>> {tuple(layout["map"]) for layout in layouts(graph, {"a": 2, "b": 2}, "SLOTS")} <= {
    ...     ("a", "b"), ("b", "a")}
    True
    """
    bundles = balanced_bundles(graph) if mode == "TASKS" else local_bundles(graph)
    if sum(slots.values()) < len(bundles):
        return []
    sampled = (
        _layout(graph, bundles, slots, mode, np.random.default_rng(seed))
        for seed in range(VARIANTS)
    )
    return list(dict.fromkeys(sampled))


def in_one_group(graph: StreamGraph) -> StreamGraph:
    """Return the graph with all operators in one slot sharing group, as in most programs.

    A placed job has the groups of its placement; those of the program are unknown.
    """
    one_group = ("",) * graph.n_operators
    return graph.with_operators(replace(graph.operators, slot_sharing_group=one_group))


def even_layout(graph: StreamGraph, devices: Sequence[str]) -> Layout:
    """Distribute the subtasks of every operator over the devices in turn.

    Operators whose parallelism is a multiple of the number of devices form a pipeline on each
    device. Each other operator begins after the last device of the previous one of these.

    >>> from streamplace.model import Operator, Stream
    >>> ends = [Operator("src", rate=1), Operator("map", parallelism=2), Operator("out")]
    >>> graph = StreamGraph.of("job", ends, [Stream("src", "map"), Stream("map", "out")])
    >>> even_layout(graph, ["a", "b"])
    Layout({'src': ['a'], 'map': ['a', 'b'], 'out': ['b']})
    """
    layout: dict[str, list[str]] = {}
    begin = 0
    for name, number in _parallelism(graph).items():
        left_over = number % len(devices)
        first = begin if left_over else 0
        layout[name] = [devices[(first + i) % len(devices)] for i in range(number)]
        begin += left_over
    return Layout(layout)


def layout_by_speed(graph: StreamGraph, speeds: Mapping[str, float]) -> Layout:
    """Distribute subtasks over the devices in proportion to speed.

    Each subtask goes to the device with the fewest subtasks per speed, of its operator first.

    >>> from streamplace.model import Operator, Stream
    >>> ends = [Operator("src", rate=1, parallelism=2), Operator("map", parallelism=3)]
    >>> graph = StreamGraph.of("job", ends, [Stream("src", "map")])
    >>> layout_by_speed(graph, {"a": 2.0, "b": 1.0})
    Layout({'src': ['a', 'a'], 'map': ['a', 'a', 'b']})
    """
    layout: dict[str, list[str]] = {}
    held = Counter[str]()
    for name, number in _parallelism(graph).items():
        own = Counter[str]()
        for _ in range(number):
            device = min(
                speeds, key=lambda d: ((own[d] + 1) / speeds[d], (held[d] + 1) / speeds[d])
            )
            own[device] += 1
            held[device] += 1
        layout[name] = [device for device in speeds for _ in range(own[device])]
    return Layout(layout)


def local_bundles(graph: StreamGraph) -> list[Bundle]:
    """Bundles in which a subtask joins one that it reads from, if the bundle lacks its operator."""
    bundles: list[Bundle] = []
    groups = graph.operators.slot_sharing_group
    pairwise = np.isin(graph.streams.distribution(), (FORWARD, RESCALED)).tolist()
    opened: dict[str, list[int]] = {}  # slot sharing group → its bundles
    places: list[list[int]] = []  # for each operator, the bundle of each of its subtasks
    for v, number in enumerate(_parallelism(graph).values()):
        senders = _senders(graph, v, places, pairwise)
        joined: dict[int, int] = {}  # bundle → the subtask that joins it
        others = []
        for i in range(number):
            near = chain.from_iterable(_near(i, number, *sender) for sender in senders)
            if (free := next((bundle for bundle in near if bundle not in joined), None)) is None:
                others.append(i)
            else:
                joined[free] = i
        own = opened.setdefault(groups[v], [])
        left = [bundle for bundle in own if bundle not in joined]
        new = range(len(bundles), len(bundles) + max(0, len(others) - len(left)))
        bundles += [[] for _ in new]
        own += new
        joined |= zip([*left, *new], others, strict=False)
        for bundle, i in joined.items():
            bundles[bundle].append((v, i))
        places.append(sorted(joined, key=joined.__getitem__))
    return bundles


def _senders(
    graph: StreamGraph, v: int, places: Sequence[Sequence[int]], pairwise: Sequence[bool]
) -> list[tuple[Sequence[int], bool]]:
    """For each stream into an operator from its group: bundles of the senders, and if pairwise."""
    streams, groups = graph.streams, graph.operators.slot_sharing_group
    inputs = np.flatnonzero(streams.target == v).tolist()
    return [
        (places[u], pairwise[e]) for e in inputs if groups[u := int(streams.source[e])] == groups[v]
    ]


def _near(i: int, number: int, senders: Sequence[int], is_pairwise: bool) -> Sequence[int]:
    """Bundles of the senders that subtask i, of some number of them, reads from."""
    if not is_pairwise:
        return senders
    begin, end = (k * len(senders) // number for k in (i, i + 1))
    return senders[begin : max(begin + 1, end)]


def balanced_bundles(graph: StreamGraph) -> list[Bundle]:
    """Bundles of a slot sharing group whose sizes differ by at most one, filled in turn."""
    groups, numbers = graph.operators.slot_sharing_group, [*_parallelism(graph).values()]
    size: dict[str, int] = {}
    for group, number in zip(groups, numbers, strict=True):
        size[group] = max(size.get(group, 0), number)
    bundles: dict[str, list[Bundle]] = {group: [[] for _ in range(n)] for group, n in size.items()}
    position = dict.fromkeys(size, 0)
    for v, (group, number) in enumerate(zip(groups, numbers, strict=True)):
        is_full = number == size[group]
        first = 0 if is_full else position[group]
        for i in range(number):
            bundles[group][(first + i) % size[group]].append((v, i))
        if not is_full:
            position[group] = (first + number) % size[group]
    return [bundle for own in bundles.values() for bundle in own]


def _layout(
    graph: StreamGraph,
    bundles: Sequence[Bundle],
    slots: Mapping[str, int],
    mode: Mode,
    random: np.random.Generator,
) -> Layout:
    order = [str(device) for device in random.permutation(list(slots))]
    taken = list(_slots(len(bundles), {device: slots[device] for device in order}, mode))
    rows = random.permutation(len(bundles)).tolist()
    if mode == "TASKS":
        pairs = _by_number_of_subtasks([bundles[b] for b in rows], taken)
    else:
        pairs = [(bundles[b], device) for b, device in zip(rows, taken, strict=True)]
    layout = {name: [""] * number for name, number in _parallelism(graph).items()}
    for bundle, device in pairs:
        for v, i in bundle:
            layout[graph.operators.name[v]][i] = device
    return Layout(layout)


def _slots(number: int, slots: Mapping[str, int], mode: Mode) -> Iterator[str]:
    """Devices of this number of slots, one for each slot."""
    left = dict(slots)
    for _ in range(number):
        free = [device for device, n in left.items() if n]
        if mode == "SLOTS":
            chosen = min(free, key=lambda device: 1 - left[device] / slots[device])
        else:
            chosen = free[0]
        left[chosen] -= 1
        yield chosen


def _by_number_of_subtasks(
    bundles: Sequence[Bundle], taken: Sequence[str]
) -> list[tuple[Bundle, str]]:
    """Assign bundles from the largest on, each to the device with the fewest subtasks."""
    load, left = dict.fromkeys(taken, 0), list(taken)
    pairs = []
    for bundle in sorted(bundles, key=len, reverse=True):
        device = min(left, key=lambda name: load[name])
        left.remove(device)
        load[device] += len(bundle)
        pairs.append((bundle, device))
    return pairs


def _parallelism(graph: StreamGraph) -> dict[str, int]:
    return dict(zip(graph.operators.name, graph.operators.parallelism.tolist(), strict=True))
