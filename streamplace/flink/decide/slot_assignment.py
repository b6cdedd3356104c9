"""Slot assignment: the layouts in which Flink's own scheduler may run a job.

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

If Flink may use any order, there are several possible layouts: `layouts` returns some of them.
These are the rules of Flink 2.3; a test starts jobs in each mode and compares. In that version
TASKS fills one TaskManager after another, so it balances tasks only among as many TaskManagers as
the job needs.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np

from streamplace.flink.constants import VARIANTS
from streamplace.flink.layout import Layout
from streamplace.flink.rest.client import Rest
from streamplace.flink.versions import version_of
from streamplace.model import StreamGraph
from streamplace.model.streams import FORWARD, RESCALED

MODES = ("NONE", "SLOTS", "TASKS")
MODE_SETTING = "taskmanager.load-balance.mode"
SPREAD_SETTING = "cluster.evenly-spread-out-slots"
"""Setting of Flink 1 for SLOTS if no mode is set."""
Bundle = list[tuple[int, int]]
"""Subtasks that share a slot, as rows of their operators and their numbers."""


def known_modes(rest: Rest) -> tuple[str, ...]:
    """Return Flink's modes that a cluster supports: none before 1.19, and TASKS from 2.2 on."""
    version = version_of(rest)
    if (0, 0) < version < (1, 19):
        return ()
    return tuple(mode for mode in MODES if version >= (2, 2) or mode != "TASKS")


def mode_line(mode: str) -> str:
    """Line of Flink's configuration for a mode."""
    return f"{MODE_SETTING}: {mode}"


def present_mode(settings: Mapping[str, str], version: tuple[int, int]) -> str:
    """Mode by the settings of a cluster of a version.

    >>> present_mode({SPREAD_SETTING: "true"}, (1, 20)), present_mode({}, (1, 20))
    ('SLOTS', 'NONE')
    """
    is_spread = version < (2, 0) and settings.get(SPREAD_SETTING, "").lower() == "true"
    return settings.get(MODE_SETTING, "SLOTS" if is_spread else "NONE").upper()


def layouts(graph: StreamGraph, slots: Mapping[str, int], mode: str) -> list[Layout]:
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


def local_bundles(graph: StreamGraph) -> list[Bundle]:
    """Bundles in which a subtask joins one of its inputs, if the bundle lacks its operator."""
    bundles: list[Bundle] = []
    groups, streams = graph.operators.slot_sharing_group, graph.streams
    pairwise = np.isin(streams.distribution(), (FORWARD, RESCALED)).tolist()
    opened: dict[str, list[int]] = {}  # slot sharing group → its bundles
    places: list[list[int]] = []  # for each operator, the bundle of each of its subtasks
    for v, number in enumerate(parallelism(graph).values()):
        senders = [  # for each stream within the group: bundles of the senders, and if pairwise
            (places[u], pairwise[e])
            for e in np.flatnonzero(streams.target == v).tolist()
            if groups[u := int(streams.source[e])] == groups[v]
        ]
        joined: dict[int, int] = {}  # bundle → the subtask that joins it
        others = []
        for i in range(number):
            inputs_of_i = chain.from_iterable(_inputs(i, number, *sender) for sender in senders)
            bundle = next((bundle for bundle in inputs_of_i if bundle not in joined), None)
            if bundle is None:
                others.append(i)
            else:
                joined[bundle] = i
        of_group = opened.setdefault(groups[v], [])
        free = [bundle for bundle in of_group if bundle not in joined]
        new = range(len(bundles), len(bundles) + max(0, len(others) - len(free)))
        bundles += [[] for _ in new]
        of_group += new
        joined |= zip([*free, *new], others, strict=False)
        for bundle, i in joined.items():
            bundles[bundle].append((v, i))
        places.append(sorted(joined, key=joined.__getitem__))
    return bundles


def _inputs(i: int, number: int, senders: Sequence[int], is_pairwise: bool) -> Sequence[int]:
    """Bundles of the senders from which subtask i of an operator reads."""
    if not is_pairwise:
        return senders
    begin, end = (k * len(senders) // number for k in (i, i + 1))
    return senders[begin : max(begin + 1, end)]


def slots_by_group(groups: Sequence[str], numbers: Sequence[int]) -> dict[str, int]:
    """Slots of each slot sharing group, from the groups and subtasks of the operators.

    >>> slots_by_group(["a", "a", "b"], [4, 2, 3])
    {'a': 4, 'b': 3}
    """
    slots: dict[str, int] = {}
    for group, number in zip(groups, numbers, strict=True):
        slots[group] = max(slots.get(group, 0), number)
    return slots


def balanced_bundles(graph: StreamGraph) -> list[Bundle]:
    """Bundles of a slot sharing group whose sizes differ by at most one, filled in turn."""
    groups, numbers = graph.operators.slot_sharing_group, [*parallelism(graph).values()]
    size = slots_by_group(groups, numbers)
    bundles: dict[str, list[Bundle]] = {group: [[] for _ in range(n)] for group, n in size.items()}
    position = dict.fromkeys(size, 0)
    for v, (group, number) in enumerate(zip(groups, numbers, strict=True)):
        is_full = number == size[group]
        first = 0 if is_full else position[group]
        for i in range(number):
            bundles[group][(first + i) % size[group]].append((v, i))
        if not is_full:
            position[group] = (first + number) % size[group]
    return [bundle for of_group in bundles.values() for bundle in of_group]


def _layout(
    graph: StreamGraph,
    bundles: Sequence[Bundle],
    slots: Mapping[str, int],
    mode: str,
    random: np.random.Generator,
) -> Layout:
    order = [str(device) for device in random.permutation(list(slots))]
    chosen = list(_slots(len(bundles), {device: slots[device] for device in order}, mode))
    rows = random.permutation(len(bundles)).tolist()
    if mode == "TASKS":
        pairs = _by_number_of_subtasks([bundles[b] for b in rows], chosen)
    else:
        pairs = [(bundles[b], device) for b, device in zip(rows, chosen, strict=True)]
    layout = {name: [""] * number for name, number in parallelism(graph).items()}
    for bundle, device in pairs:
        for v, i in bundle:
            layout[graph.operators.name[v]][i] = device
    return Layout(layout)


def _slots(number: int, slots: Mapping[str, int], mode: str) -> Iterator[str]:
    """Choose slots; yield the device of each."""
    free = dict(slots)
    for _ in range(number):
        devices = [device for device, n in free.items() if n]
        if mode == "SLOTS":
            chosen = min(devices, key=lambda device: 1 - free[device] / slots[device])
        else:
            chosen = devices[0]
        free[chosen] -= 1
        yield chosen


def _by_number_of_subtasks(
    bundles: Sequence[Bundle], slots: Sequence[str]
) -> list[tuple[Bundle, str]]:
    """Assign bundles from the largest on, each to the device with the fewest subtasks."""
    load, free = dict.fromkeys(slots, 0), list(slots)
    pairs = []
    for bundle in sorted(bundles, key=len, reverse=True):
        device = min(free, key=lambda name: load[name])
        free.remove(device)
        load[device] += len(bundle)
        pairs.append((bundle, device))
    return pairs


def parallelism(graph: StreamGraph) -> dict[str, int]:
    """Number of subtasks of every operator."""
    return dict(zip(graph.operators.name, graph.operators.parallelism.tolist(), strict=True))
