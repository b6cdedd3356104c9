"""A measured job with its cluster as the input of placers, and its subtasks on devices.

Subtasks of an operator may read uneven shares of its tuples. Flink sends every tuple of a keyed
stream to the subtask that owns its key, so popular keys make some subtasks busier than others,
whatever the placement. So do partitioners of the program, and partitions of a topic that are not a
multiple of the subtasks of a source. The shares are counted by subtask; of a source that reports
its lag, what waits counts, too, because it is input as well. They belong to the numbers of
subtasks, and a placement that is pinned does not decide which of an operator's subtasks runs where:
`possible_orders` returns some of the ways.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from streamplace.engines.flink.cpu.threads import RunningSubtask
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.fit import Observation
from streamplace.engines.flink.measure.sources import SourceFlow
from streamplace.engines.flink.program.chains import operators_in
from streamplace.engines.flink.rest.client import FlinkError
from streamplace.engines.flink.rest.plan import Edge, FlinkTask
from streamplace.model.arrays import Floats, Ints
from streamplace.model.cluster import Cluster
from streamplace.model.expansion import Expansion, expand
from streamplace.model.graph import StreamGraph
from streamplace.model.key_groups import subtask_parts
from streamplace.model.messages import quoted
from streamplace.model.problem import Problem

NEGLIGIBLE = 1e-6
"""Share of the rate of all sources below which some count as silent."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measured job and its cluster, as input of placers.

    It is limited if a source was held back, so that the job may read more with another placement.
    ``shares`` has, for operators whose subtasks are uneven, the part of the tuples that each
    of them takes in.
    """

    graph: StreamGraph  # with measured rates, CPU and payloads
    cluster: Cluster  # the devices, with the resources that are available to this job
    is_limited: bool
    notes: tuple[str, ...] = ()  # sentences on missing measurements
    shares: Mapping[str, Sequence[float]] = field(default_factory=dict)
    held_back: frozenset[str] = frozenset()  # sources that were held back, if it is known which
    varies: bool = False  # whether the rate of a source varied during the measurement
    # Operator → rates and CPU of its subtasks, in this and in earlier layouts.
    observed: Mapping[str, Sequence[Observation]] = field(default_factory=dict)
    flow: SourceFlow | None = None  # what its sources did; None if that is unknown

    @property
    def kept_rate(self) -> float:
        """Tuples/s of the sources that keep up while others are held back; 0 if none or all do."""
        operators, total = self.graph.operators, self.graph.source_rate
        rates = zip(operators.name, operators.rate.tolist(), strict=True)
        held = sum(rate for name, rate in rates if name in self.held_back)
        return total - held if NEGLIGIBLE < held / total < 1 - NEGLIGIBLE else 0.0


Shares = Mapping[str, Sequence[float]]
"""Operator → part of its tuples that each of its subtasks reads, for those where it is uneven."""
LEAST_TUPLES = 1000.0
"""Minimum number of tuples of an operator from which its shares are known."""
SKEWED = 0.05
"""Minimum difference between a subtask's share and the expected one, relative to it."""
CLEAR = 4.0
"""Minimum difference in standard deviations of the number of tuples."""
WAITS = 0.2
"""Minimum part of the time in which a subtask of a source that emits all it is offered waits."""
ORDERS = 8
"""Number of sampled orders that represent all possible orders of a pinned placement."""


def key_shares(
    tasks: Sequence[FlinkTask],
    edges: Sequence[Edge],
    subtasks: Iterable[RunningSubtask],
    arrived: Mapping[str, Sequence[float]] = MappingProxyType({}),
) -> dict[str, tuple[float, ...]]:
    """Shares of the subtasks of every operator where they are clearly uneven.

    They are expected to be those of the key groups if all inputs are keyed, else equal. Operators
    with inputs that Flink deals out evenly are left out, because their counts mix both. So are
    sources of which a subtask that emits less than others may be held back, by back-pressure or by
    a slow device, unless what arrived for its subtasks is known.

    ``subtasks``: subtasks of the job with the number of tuples that each read and sent.
    ``arrived``: source → tuples that have arrived for each of its subtasks, where that is known.
    """
    known: dict[str, dict[int, RunningSubtask]] = {}
    for one in subtasks:
        known.setdefault(one.vertex, {})[one.number] = one
    answer = {}
    for task in tasks:
        own = [known.get(task.id, {}).get(i) for i in range(task.parallelism)]
        inputs = [edge for edge in edges if edge.target == task.id]
        is_dealt = any(edge.partitioning != "hash" and not edge.is_uneven for edge in inputs)
        if task.parallelism < 2 or None in own or is_dealt:
            continue
        there = [one for one in own if one is not None]
        read = np.array([one.read for one in there], np.float64)
        if not inputs and not read.sum() > 0:  # most versions of Flink do not count it
            read = np.array([one.wrote for one in there], np.float64)
        is_known = bool(inputs) or task.id in arrived
        read = np.array(arrived.get(task.id, read), np.float64)
        is_keyed = bool(inputs) and not any(edge.is_uneven for edge in inputs)
        groups = task.max_parallelism if is_keyed else 0
        surplus = _surplus(read, 1 / subtask_parts([groups], [task.parallelism]))
        less = [one for one, more in zip(there, surplus, strict=True) if more < 0]
        if surplus.any() and (is_known or all(map(_waits, less))):
            answer[task.name] = tuple((read / read.sum()).tolist())
    return answer


def even_splits(task: FlinkTask) -> int:
    """Number of splits with which the subtasks of a source have equal parts; 0 for any number.

    It is the largest one that the maximum parallelism allows. Flink does not report the splits of
    a source, and does not divide them by key groups; where the parts are not equal, `key_shares`
    tells.

    >>> even_splits(FlinkTask("v", "src", "src", 48, ("src",), max_parallelism=128))
    96
    """
    return task.max_parallelism - task.max_parallelism % task.parallelism


def _surplus(read: Floats, parts: Floats) -> Floats:
    """Tuples by which each subtask differs clearly from its expected part; else 0."""
    if not read.sum() >= LEAST_TUPLES:  # NaN is not, either
        return np.zeros(len(read))
    expected = read.sum() * parts
    limits = np.maximum(SKEWED * expected, CLEAR * np.sqrt(expected))
    return np.where(np.abs(read - expected) > limits, read - expected, 0.0)


def _waits(source: RunningSubtask) -> bool:
    """Whether a subtask of a source has time for more tuples than it is offered, or has ended."""
    if source.has_ended:
        return True
    return source.idle > 0 and source.idle >= WAITS * (source.idle + source.busy + source.blocked)


def possible_orders(layout: Layout, shares: Shares) -> list[Layout]:
    """Layouts that may result if a layout is pinned; only itself if its shares are even.

    Subtasks with the same number share a slot where their operators have the same devices, and
    slots go to devices in any order.

    >>> orders = possible_orders(Layout({"sum": "ab", "out": "ab"}), {"sum": [0.9, 0.1]})
    >>> sorted(tuple(order["sum"]) for order in orders)
    [('a', 'b'), ('b', 'a')]
    >>> all(order["sum"] == order["out"] for order in orders)
    True
    """
    if not any(len(set(layout.get(name, ()))) > 1 for name in shares):
        return [layout]
    every = dict.fromkeys(layout.values())
    answer = [layout]
    for seed in range(ORDERS):
        random = np.random.default_rng(seed)
        mixed = {devices: random.permutation(devices).tolist() for devices in every}
        order = Layout({name: mixed[devices] for name, devices in layout.items()})
        if order not in answer:
            answer.append(order)
    return answer


@dataclass(frozen=True, slots=True)
class PlacedSubtasks:
    """Subtasks of a job on devices."""

    expansion: Expansion
    problem: Problem  # the problem of placing its subtasks
    placement: Ints  # [S] device of each subtask


def placed(
    graph: StreamGraph,
    cluster: Cluster,
    devices: Mapping[str, Sequence[str]],
    shares: Shares | None = None,
) -> PlacedSubtasks:
    """Put the subtasks of a job on devices.

    Operators that Flink fused run on the device of the first of them.

    ``devices``: operator → device of each of its subtasks.
    ``shares``: shares of the subtasks in the tuples of operators where they are uneven.
    """
    expansion = expand(graph, shares)
    problem = Problem(expansion.graph, cluster)
    number = {name: i for i, name in enumerate(cluster.devices.name)}
    placement = np.empty(problem.n_operators, np.int32)
    for row, name in enumerate(graph.operators.name):
        subtasks = np.flatnonzero(expansion.operator == row)
        try:
            (first, *_) = (one for one in (name, *operators_in(name)) if one in devices)
            for subtask, device in zip(subtasks, devices[first], strict=True):
                placement[subtask] = number[device]
        except (KeyError, ValueError):
            raise FlinkError(
                f"the devices that {quoted(name)} runs on are not those of the cluster's "
                "description"
            ) from None
    return PlacedSubtasks(expansion, problem, placement)


def capacity(
    graph: StreamGraph,
    cluster: Cluster,
    devices: Mapping[str, Sequence[str]],
    shares: Shares | None = None,
) -> float:
    """Multiple of the source rates that a placement of subtasks carries; infinite without loads.

    Operators that Flink fused run on the device of the first of them.
    """
    from streamsim import bottleneck, resource_loads

    job = placed(graph, cluster, devices, shares)
    load = bottleneck(resource_loads(job.problem.instance, job.placement)).load
    return 1 / load if load else np.inf


def finite(rate: float | None) -> float | None:
    """Rate for a JSON document: None if it is unknown, or if nothing limits it."""
    return rate if rate is not None and np.isfinite(rate) else None
