"""Layouts: devices on which Flink's own scheduler would run the subtasks of a job.

Flink shares slots in two steps. First, the subtasks of a slot sharing group are collected into
bundles, one per slot, with at most one subtask of every operator. Then slots are chosen for them
from TaskManagers, and bundles are put into them. ``taskmanager.load-balance.mode`` decides how:

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

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Literal, get_args

import numpy as np

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.cluster import VARIANTS
from streamplace.model.graph import StreamGraph
from streamplace.model.streams import RESCALE, STRAIGHT

Mode = Literal["NONE", "SLOTS", "TASKS"]
MODES: tuple[Mode, ...] = get_args(Mode)
MODE_SETTING = "taskmanager.load-balance.mode"
Bundle = list[tuple[int, int]]
"""Subtasks that share a slot, as rows of their operators and their numbers."""


def layouts(graph: StreamGraph, slots: Mapping[str, int], mode: Mode) -> list[Layout]:
    """Return layouts that Flink may choose for a job; empty if there are too few slots.

    The graph is in topological order; ``slots`` has the free slots of each device.

    >>> from streamplace.model import Operator, Stream
    >>> ends = [Operator("src", rate=1), Operator("map", parallelism=2)]
    >>> graph = StreamGraph.of("job", ends, [Stream("src", "map")])
    >>> layouts(graph, {"a": 2}, "NONE")
    [Layout({'src': ['a'], 'map': ['a', 'a']})]
    >>> {tuple(one["map"]) for one in layouts(graph, {"a": 2, "b": 2}, "SLOTS")} <= {
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
    """Return the graph with all operators in one slot sharing group, as of most programs.

    The groups of a placement are its own, and those of the program are not known while it is
    placed.
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
    """Distribute subtasks so that every device has a share of them by its speed.

    One after the other goes to the device that has the fewest for its speed, of its operator first.

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
    opened: dict[str, list[int]] = {}  # slot sharing group → its bundles
    places: list[list[int]] = []  # for each operator, the bundle of each of its subtasks
    for v, number in enumerate(_parallelism(graph).values()):
        senders = _senders(graph, v, places)
        joined: dict[int, int] = {}  # bundle → the subtask that joins it
        others = []
        for i in range(number):
            near = chain.from_iterable(_near(i, number, *sender) for sender in senders)
            if (free := next((one for one in near if one not in joined), None)) is None:
                others.append(i)
            else:
                joined[free] = i
        own = opened.setdefault(groups[v], [])
        left = [one for one in own if one not in joined]
        new = range(len(bundles), len(bundles) + max(0, len(others) - len(left)))
        bundles += [[] for _ in new]
        own += new
        joined |= zip([*left, *new], others, strict=False)
        for bundle, i in joined.items():
            bundles[bundle].append((v, i))
        places.append(sorted(joined, key=joined.__getitem__))
    return bundles


def _senders(
    graph: StreamGraph, v: int, places: Sequence[Sequence[int]]
) -> list[tuple[Sequence[int], bool]]:
    """For each stream into an operator from its group: bundles of the senders, and if pairwise."""
    streams, groups = graph.streams, graph.operators.slot_sharing_group
    inputs = np.flatnonzero(streams.target == v).tolist()
    return [
        (places[u], _is_pairwise(graph, e))
        for e in inputs
        if groups[u := int(streams.source[e])] == groups[v]
    ]


def _near(i: int, number: int, senders: Sequence[int], is_pairwise: bool) -> Sequence[int]:
    """Bundles of the senders that subtask i, of some number of them, reads from."""
    if not is_pairwise:
        return senders
    begin, end = (k * len(senders) // number for k in (i, i + 1))
    return senders[begin : max(begin + 1, end)]


def _is_pairwise(graph: StreamGraph, e: int) -> bool:
    """Whether a stream joins each subtask only with its neighbours (`pointwise_pairs`)."""
    streams, number = graph.streams, graph.operators.parallelism
    kind, u, v = streams.partitioning[e], streams.source[e], streams.target[e]
    plain = not kind and graph.operators.max_parallelism[v] == 0
    return kind in (*STRAIGHT, RESCALE) or bool(plain and number[u] == number[v])


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
        device = min(left, key=lambda one: load[one])
        left.remove(device)
        load[device] += len(bundle)
        pairs.append((bundle, device))
    return pairs


def _parallelism(graph: StreamGraph) -> dict[str, int]:
    return dict(zip(graph.operators.name, graph.operators.parallelism.tolist(), strict=True))
