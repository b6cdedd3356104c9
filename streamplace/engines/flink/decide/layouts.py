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

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from streamplace.engines.flink.layout import Layout
from streamplace.model.graph import StreamGraph
from streamplace.model.streams import RESCALE, STRAIGHT

Mode = Literal["NONE", "SLOTS", "TASKS"]
MODES: tuple[Mode, ...] = get_args(Mode)
MODE_SETTING = "taskmanager.load-balance.mode"
VARIANTS = 8
"""Number of sampled layouts that represent all possible layouts of a mode."""
Subtask = tuple[int, int]
"""Row of an operator, and the number of one of its subtasks."""
Bundle = list[Subtask]
"""Subtasks that share a slot."""


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
    return _variants(graph, bundles, slots, mode)


def _variants(
    graph: StreamGraph, bundles: Sequence[Bundle], slots: Mapping[str, int], mode: Mode
) -> list[Layout]:
    """Different layouts among some that Flink may choose for bundles."""
    if sum(slots.values()) < len(bundles):
        return []
    answer: list[Layout] = []
    for seed in range(VARIANTS):
        layout = _layout(graph, bundles, slots, mode, np.random.default_rng(seed))
        if layout not in answer:
            answer.append(layout)
    return answer


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
    for name, number in zip(graph.operators.name, _parallelism(graph), strict=True):
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
    held = dict.fromkeys(speeds, 0)
    for name, number in zip(graph.operators.name, _parallelism(graph), strict=True):
        own = dict.fromkeys(speeds, 0)
        for _ in range(number):
            device = min(
                speeds, key=lambda d: ((own[d] + 1) / speeds[d], (held[d] + 1) / speeds[d])
            )
            own[device] += 1
            held[device] += 1
        layout[name] = [device for device in speeds for _ in range(own[device])]
    return Layout(layout)


@dataclass(slots=True)
class _Senders:
    """Bundles that the subtasks of an operator may join."""

    bundles: Sequence[int]  # the bundles in the order in which they are tried
    # Number of subtasks that may each join only their own senders (`pointwise_pairs`); 0 if any.
    receivers: int = 0
    _begin: int = 0

    def first(self, i: int, taken: Set[int]) -> int | None:
        """First of them that is not taken; a bundle that is taken stays taken."""
        if self.receivers:
            begin, end = (k * len(self.bundles) // self.receivers for k in (i, i + 1))
            own = self.bundles[begin : max(begin + 1, end)]
            return next((bundle for bundle in own if bundle not in taken), None)
        while self._begin < len(self.bundles) and self.bundles[self._begin] in taken:
            self._begin += 1
        return self.bundles[self._begin] if self._begin < len(self.bundles) else None


def local_bundles(graph: StreamGraph) -> list[Bundle]:
    """Bundles in which a subtask joins one that it reads from, if the bundle lacks its operator."""
    bundles: list[Bundle] = []
    of_operator: list[list[int]] = []  # bundles of the subtasks of each operator
    group = _groups(graph)
    own: dict[int, list[int]] = {}  # slot sharing group → its bundles, in the order of creation
    for v, number in enumerate(_parallelism(graph)):
        senders = _senders(graph, group, v, of_operator)
        joined: dict[int, int] = {}
        taken: set[int] = set()
        for i in range(number):
            free = (one.first(i, taken) for one in senders)
            answer = next((bundle for bundle in free if bundle is not None), None)
            if answer is not None:
                joined[i] = answer
                taken.add(answer)
        opened = own.setdefault(group[v], [])
        others = _Senders(opened)
        for i in (i for i in range(number) if i not in joined):
            answer = others.first(i, taken)
            if answer is None:
                answer = len(bundles)
                bundles.append([])
                opened.append(answer)
            joined[i] = answer
            taken.add(answer)
        for i, bundle in joined.items():
            bundles[bundle].append((v, i))
        of_operator.append([joined[i] for i in range(number)])
    return bundles


def _senders(
    graph: StreamGraph, group: Sequence[int], v: int, of_operator: Sequence[Sequence[int]]
) -> list[_Senders]:
    """Bundles of the subtasks that operator v reads from, in its own group, by stream."""
    inputs = np.flatnonzero(graph.streams.target == v).tolist()
    sources = graph.streams.source.tolist()
    return [
        _Senders(of_operator[sources[e]], _pairwise_receivers(graph, e))
        for e in inputs
        if group[sources[e]] == group[v]
    ]


def _pairwise_receivers(graph: StreamGraph, e: int) -> int:
    """Number of receivers of a stream that connects only neighbours; 0 if it connects all."""
    streams, number = graph.streams, graph.operators.parallelism
    kind, v = streams.partitioning[e], streams.target[e]
    plain = not kind and graph.operators.max_parallelism[v] == 0
    is_pairwise = kind in (*STRAIGHT, RESCALE) or (plain and number[streams.source[e]] == number[v])
    return int(number[v]) if is_pairwise else 0


def balanced_bundles(graph: StreamGraph) -> list[Bundle]:
    """Bundles of a slot sharing group whose sizes differ by at most one, filled in turn."""
    group, number = _groups(graph), _parallelism(graph)
    size: dict[int, int] = {}
    for v, g in enumerate(group):
        size[g] = max(size.get(g, 0), number[v])
    bundles: dict[int, list[Bundle]] = {g: [[] for _ in range(n)] for g, n in size.items()}
    position = dict.fromkeys(size, 0)
    for v, g in enumerate(group):
        first = 0 if number[v] == size[g] else position[g]
        for i in range(number[v]):
            bundles[g][(first + i) % size[g]].append((v, i))
        if number[v] != size[g]:
            position[g] = (first + number[v]) % size[g]
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
    layout = {
        name: [""] * number
        for name, number in zip(graph.operators.name, _parallelism(graph), strict=True)
    }
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


def _parallelism(graph: StreamGraph) -> list[int]:
    numbers: list[int] = graph.operators.parallelism.tolist()
    return numbers


def _groups(graph: StreamGraph) -> list[int]:
    """Number of the slot sharing group of each operator."""
    names = graph.operators.slot_sharing_group
    return [sorted(set(names)).index(name) for name in names]
