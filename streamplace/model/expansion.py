"""Expansion: the graph of subtasks, with p subtasks for every operator of parallelism p."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from streamplace.errors import GraphError, PlacementError, ProblemError
from streamplace.model.arrays import Floats, Ints, Longs
from streamplace.model.buffers import is_of_messages
from streamplace.model.columns import frozen
from streamplace.model.constraints import Constraints
from streamplace.model.graph import Attribute, StreamGraph
from streamplace.model.key_groups import joined_subtasks, received_shares, subtask_parts
from streamplace.model.message_text import counted, quoted, shown
from streamplace.model.mixins import MAX_WIDTH
from streamplace.model.operators import Operators
from streamplace.model.placement import Placement
from streamplace.model.problem import Moving, Problem
from streamplace.model.streams import FORWARD, HASHED, REBALANCED, RESCALED, Streams

PAIRWISE = (FORWARD, RESCALED)
MAX_EXPANDED = 10_000_000
MAX_STREAMS = 50_000_000
MAX_PAIRS = 1_000_000
MIN_SHARE = 1e-9
"""Share of a subtask that gets no tuples."""
SUM_ERROR = 1e-6
"""Maximum error of the sum of shares."""


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """A graph of subtasks, and the operator of each.

    A subtask has 1/p of its operator's rate and memory or, if the operator has key groups, its
    share of these (`streamplace.model.key_groups`). Constant loads are divided evenly. They
    contain the messages at the graph's rate (`streamplace.model.buffers`), so set the rate before
    the expansion. ``max_rate`` stays, since it is the limit of one subtask. A window keeps its size
    and advance; its base and limit are multiplied by the subtask's share of the arriving tuples, so
    that all subtasks together emit as much as the operator.

    Examples
    --------
    >>> from streamplace.model import Operator, Stream
    >>> graph = StreamGraph.of(
    ...     "pipe",
    ...     [Operator("src", rate=900), Operator("join", parallelism=3)],
    ...     [Stream("src", "join")],
    ... )
    >>> expansion = expand(graph)
    >>> expansion.graph.operators.name, expansion.graph.input_rate.tolist()
    (('src', 'join#0', 'join#1', 'join#2'), [900.0, 300.0, 300.0, 300.0])
    >>> placement = Placement(expansion.graph.operators.name, ("d0", "d1"), [0, 0, 1, 0])
    >>> expansion.fold(placement).tolist()
    [[1, 0], [2, 1]]
    >>> expansion.fold_names(placement)
    {'src': {'d0': 1}, 'join': {'d0': 2, 'd1': 1}}
    """

    # The subtasks, each an operator of parallelism 1; ``join`` becomes ``join#0``, ``join#1``, ….
    # An operator of parallelism 1 keeps its name.
    graph: StreamGraph
    original: StreamGraph  # the graph that was expanded
    operator: Ints  # [S] row of the operator that each subtask belongs to

    def __repr__(self) -> str:
        parts = counted(self.graph.n_operators, "subtask")
        return shown(f"<Expansion of {self.original.title}; {parts}>", MAX_WIDTH)

    def fold(self, placement: Placement) -> Longs:
        """Count the subtasks of each operator on each device, [N, D]."""
        n_devices = len(placement.devices)
        cells = self._cells(placement)
        counts = np.bincount(cells, minlength=self.original.n_operators * n_devices)
        return counts.reshape(-1, n_devices)

    def fold_names(self, placement: Placement) -> dict[str, dict[str, int]]:
        """Count like `fold`, by names; devices without subtasks of an operator are omitted."""
        names, devices = self.original.operators.name, placement.devices
        counts: dict[str, dict[str, int]] = {name: {} for name in names}
        cells, numbers = np.unique(self._cells(placement), return_counts=True)
        for cell, number in zip(cells.tolist(), numbers.tolist(), strict=True):
            counts[names[cell // len(devices)]][devices[cell % len(devices)]] = number
        return counts

    def problem(self, problem: Problem) -> Problem:
        """Return the problem of placing the subtasks, from a problem of the original graph."""
        seconds = None if problem.seconds is None else problem.seconds[self.operator]
        constraints, moving = self.constraints(problem.constraints), problem.moving
        if moving is not None:
            state = moving.state[self.operator] / _parts(self.original)
            moving = Moving(state, moving.startup[self.operator])
        return Problem(self.graph, problem.cluster, constraints, seconds, moving)

    def constraints(self, constraints: Constraints) -> Constraints:
        """Constraints of the original graph, carried over to its subtasks.

        ``pin`` and ``allowed`` hold for every subtask. Colocated operators of parallelism p and q
        are cut into g = gcd(p, q) shares, and subtask i of p joins share ⌊i·g/p⌋, so equal
        parallelisms pair subtask i with subtask i, as Flink's co-location groups do. Subtasks of
        exlocated operators are kept apart, except those of one operator.
        """
        return Constraints(
            pin={s: device for v, device in constraints.pin.items() for s in self.subtasks(v)},
            colocate=[share for group in constraints.colocate for share in self._shares(group)],
            exlocate=[pair for group in constraints.exlocate for pair in self._pairs(group)],
            allowed={
                s: where for v, where in constraints.allowed.items() for s in self.subtasks(v)
            },
            dropped=constraints.dropped,
        )

    def subtasks(self, operator: str) -> tuple[str, ...]:
        """Names of the subtasks of an operator."""
        row = self.original.operators.index(operator)
        first, end = np.searchsorted(self.operator, [row, row + 1])
        return self.graph.operators.name[first:end]

    def _cells(self, placement: Placement) -> Longs:
        if placement.operators != self.graph.operators.name:
            raise PlacementError("the placement is not one of this expansion's subtasks")
        return self.operator.astype(np.int64) * len(placement.devices) + placement.index

    def _shares(self, group: Iterable[str]) -> Iterator[frozenset[str]]:
        subtasks = [self.subtasks(name) for name in sorted(group)]
        size = gcd(*map(len, subtasks))
        for share in range(size):
            yield frozenset(
                name
                for names in subtasks
                for name in names[share * len(names) // size : (share + 1) * len(names) // size]
            )

    def _pairs(self, group: Iterable[str]) -> Iterator[frozenset[str]]:
        subtasks = [self.subtasks(name) for name in sorted(group)]
        total = sum(len(a) * len(b) for a, b in itertools.combinations(subtasks, 2))
        if total > MAX_PAIRS:
            raise ProblemError(
                f"exlocate of {quoted(min(group))} and others makes {total} pairs of subtasks; "
                f"lower their parallelism (at most {MAX_PAIRS} pairs)"
            )
        for a, b in itertools.combinations(subtasks, 2):
            yield from map(frozenset, itertools.product(a, b))


def expand(graph: StreamGraph, shares: Mapping[str, Sequence[float]] | None = None) -> Expansion:
    """Return the graph of subtasks of a graph; see `Expansion`.

    A "forward" or "chained" stream joins subtask i to subtask i, and "rescale" neighbours.
    "rebalance" and "hash" join every subtask to every subtask of the target, and divide the
    selectivity: evenly, or with "hash" by the key groups of the target. "" means hash where the
    target has key groups, else forward between equal parallelisms and rebalance otherwise.

    Parameters
    ----------
    shares
        Operator → share of its tuples for each of its subtasks; for operators with popular keys,
        and for sources. Forward and rescaled inputs keep their partitioning.

    Raises
    ------
    GraphError
        If a forward stream joins different parallelisms, the result would be too large, or shares
        do not match the subtasks of an operator.

    Examples
    --------
    >>> from streamplace.model import Operator, Stream
    >>> graph = StreamGraph.of(
    ...     "pipe",
    ...     [Operator("src", rate=100), Operator("sum", parallelism=2)],
    ...     [Stream("src", "sum", partitioning="hash")],
    ... )
    >>> expand(graph, {"sum": [0.7, 0.3]}).graph.input_rate.round(9).tolist()
    [100.0, 70.0, 30.0]
    """
    p = graph.operators.parallelism.astype(np.int64)
    if (p == 1).all():
        rows = np.arange(graph.n_operators, dtype=np.int32)
        return Expansion(_with_messages(graph), graph, frozen(rows))
    distribution = _distribution(graph, p, shares or ())
    sender, receiver = p[graph.streams.source], p[graph.streams.target]
    pairwise = np.isin(distribution, PAIRWISE)
    copies = np.where(pairwise, np.maximum(sender, receiver), sender * receiver)
    size, n_streams = int(p.sum()), float(copies.sum(dtype=np.float64))
    if size > MAX_EXPANDED or n_streams > MAX_STREAMS:
        raise GraphError(
            f"graph {quoted(graph.name)} expands to {size} subtasks and {n_streams:.0f} streams; "
            f"lower its parallelism (at most {MAX_EXPANDED} and {MAX_STREAMS})"
        )
    operator = np.repeat(np.arange(graph.n_operators, dtype=np.int32), p)
    parts = _parts(graph, shares)
    arriving = _arriving(graph, distribution, parts) if graph.operators.window else parts
    subtasks = _subtasks(graph, p, operator, parts, arriving)
    streams = _subtask_streams(graph, subtasks, p, distribution, copies, parts)
    expanded = StreamGraph(graph.name, subtasks, streams, _attributes(graph))
    return Expansion(expanded, graph, frozen(operator))


def _with_messages(graph: StreamGraph) -> StreamGraph:
    """Return a graph of single subtasks with its messages as constant loads."""
    attributes = _attributes(graph)
    if len(attributes) == len(graph.attributes):
        return graph
    operators = replace(graph.operators, constant=graph.charged_constant)
    streams = replace(graph.streams, operators=operators)
    return replace(graph, operators=operators, streams=streams, attributes=attributes)


def _attributes(graph: StreamGraph) -> dict[str, Attribute]:
    """Attributes without the cost of messages, which constant loads of subtasks contain."""
    return {name: value for name, value in graph.attributes.items() if not is_of_messages(name)}


def _distribution(graph: StreamGraph, p: Longs, with_shares: Iterable[str]) -> Longs:
    """How each stream distributes tuples; operators with shares count as hashed."""
    streams = graph.streams
    wrong = streams.straight() & (p[streams.source] != p[streams.target])
    if wrong.any():
        e = int(np.argmax(wrong))
        raise GraphError(
            f"stream {streams.label(e)} is partitioned '{streams.partitioning[e]}' from "
            f"{p[streams.source[e]]} to {p[streams.target[e]]} subtasks; "
            "use equal parallelisms or 'rebalance'"
        )
    distribution = streams.distribution()
    by_share = np.isin(streams.target, [graph.operators.index(name) for name in with_shares])
    distribution[by_share & (distribution == REBALANCED)] = HASHED
    return distribution


def _parts(graph: StreamGraph, shares: Mapping[str, Sequence[float]] | None = None) -> Floats:
    """Divisor of the operator's rate and memory for each subtask, [S]."""
    operators = graph.operators
    parts = subtask_parts(operators.max_parallelism, operators.parallelism)
    end = np.cumsum(operators.parallelism)
    for name, values in (shares or {}).items():
        row = operators.index(name)
        number, chosen = int(operators.parallelism[row]), np.asarray(values, np.float64)
        fine = len(chosen) == number and (chosen >= 0).all() and abs(chosen.sum() - 1) <= SUM_ERROR
        if not fine:
            raise GraphError(
                f"shares of operator {quoted(name)}: give one for each of its {number} subtasks, "
                "which add up to 1"
            )
        parts[end[row] - number : end[row]] = 1 / np.maximum(chosen, MIN_SHARE)
    return parts


def _arriving(graph: StreamGraph, distribution: Longs, parts: Floats) -> Floats:
    """Divisor of the tuples that arrive at each subtask; partitioning may change ``parts``, [S]."""
    flow, p = graph.flow, graph.operators.parallelism
    key_shares = [1 / part for part in np.split(parts, np.cumsum(p)[:-1])]
    shares = received_shares(flow, p, key_shares, distribution[flow.stream_index])
    even = (np.full(n, 1 / n) for n in p.tolist())
    return 1 / np.concatenate([e if s is None else s for s, e in zip(shares, even, strict=True)])


def _subtasks(
    graph: StreamGraph, p: Longs, operator: Ints, parts: Floats, arriving: Floats
) -> Operators:
    operators = graph.operators
    share = 1 / parts
    rows = operator.tolist()
    windows = {}  # subtasks together emit as much as the operator
    for i, v in enumerate(rows if operators.window else ()):
        if (window := operators.window.get(v)) is not None:
            base, limit = window.base / arriving[i], window.limit / arriving[i]
            windows[i] = replace(window, base=float(base), limit=float(limit))
    return Operators(
        _names(operators.name, p.tolist()),
        ipt=operators.ipt[operator],
        payload=operators.payload[operator],
        rate=operators.rate[operator] * share,
        kind=[operators.kind[v] for v in rows],
        requires=[operators.requires[v] for v in rows],
        memory=operators.memory[operator] * share,
        window=windows,
        fires_all=operators.fires_all[operator],
        about=[operators.about[v] for v in rows],
        constant=(graph.charged_constant / p)[operator],
        max_rate=operators.max_rate[operator],
        cores=operators.cores[operator],
    )


def _names(names: tuple[str, ...], p: list[int]) -> list[str]:
    """Name the subtasks; "#" is doubled until all names differ."""
    unchanged = {name for name, copies in zip(names, p, strict=True) if copies == 1 and "#" in name}
    sign = "#"
    while True:
        made = [
            name if copies == 1 else f"{name}{sign}{i}"
            for name, copies in zip(names, p, strict=True)
            for i in range(copies)
        ]
        if not unchanged or len(set(made)) == len(made):
            return made
        sign *= 2


def _subtask_streams(
    graph: StreamGraph,
    subtasks: Operators,
    p: Longs,
    distribution: Longs,
    copies: Longs,
    parts: Floats,
) -> Streams:
    streams = graph.streams
    first = np.cumsum(p) - p
    stream = np.repeat(np.arange(graph.n_streams), copies)
    copy = np.arange(len(stream)) - np.repeat(np.cumsum(copies) - copies, copies)
    receivers = p[streams.target][stream]
    sender, receiver = np.divmod(copy, receivers)
    number = receivers.copy()  # of the sender
    if (paired := np.isin(distribution, PAIRWISE)[stream]).any():
        senders = p[streams.source][stream[paired]]
        ends = joined_subtasks(copy[paired], senders, receivers[paired])
        sender[paired], receiver[paired], number[paired] = ends
    to = first[streams.target][stream] + receiver
    divisor = np.where((distribution == HASHED)[stream], parts[to], number)
    # several receivers of one sender get different tuples, not one message
    payload = np.where(number == 1, streams.payload[stream], streams.bytes_per_tuple()[stream])
    return Streams(
        subtasks,
        first[streams.source][stream] + sender,
        to,
        selectivity=streams.selectivity[stream] / divisor,
        payload=payload,
        partitioning=np.repeat(np.array(streams.partitioning, object), copies).tolist(),
        input=_inputs(graph, copies),
        ipt=streams.ipt[stream],
    )


def _inputs(graph: StreamGraph, copies: Longs) -> list[str] | None:
    """Name the inputs of the subtasks' streams; copies of one stream are one input of a join."""
    streams = graph.streams
    joined = graph.operators.fires_all[streams.target]
    if not joined.any():
        return None
    sign = "#"
    while any(name.startswith(sign) for name in streams.input):
        sign += "#"
    names = [
        (name or f"{sign}{e}") if joins else ""
        for e, (name, joins) in enumerate(zip(streams.input, joined.tolist(), strict=True))
    ]
    return np.repeat(np.array(names, object), copies).tolist()
