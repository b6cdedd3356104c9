"""Demand: the resources that a graph at full rate needs of the machines that run it.

A share is the largest or smallest part of an operator's tuples that n of its p subtasks receive.
Flink does not let a user choose which of an operator's subtasks run on a machine, so a machine with
n of them is charged for the n subtasks with the most key groups.

If operators share slots, as in Flink, a slot holds at most one subtask of each operator of a slot
sharing group, so a group needs as many slots as its largest operator has subtasks. Without sharing,
every operator is a group of its own.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np

from streamplace.errors import GraphError, ProblemError
from streamplace.model.arrays import Bools, Floats, Ints, Longs
from streamplace.model.buffers import MessageLoads
from streamplace.model.graph import StreamGraph
from streamplace.model.keep_apart import rival_columns
from streamplace.model.message_text import quoted, suggestion
from streamplace.model.streams import CHAINED, RESCALE
from streamplace.planning.offers import Catalogue
from streamplace.planning.rules import PlanRules, without_rules

FLINK_GROUP = "default"
"""Slot sharing group of operators that name none."""
ALL_TO_ALL, ONE_TO_ONE, EITHER = 0, 1, 2
"""How a stream connects subtasks; `EITHER` is one to one if both ends have equal parallelism."""


@dataclass(frozen=True, eq=False)
class Demand:
    """Resources that a graph of N operators and M streams needs, summed over subtasks."""

    graph: StreamGraph
    flowing: Floats  # [N] instructions per second that grow with the rate
    instructions: Floats  # [N] instructions per second, constant loads included
    # [N] instructions per second that operators use at any rate. A machine is charged for them in
    # proportion to the tuples of its subtasks, which is no less than their equal parts.
    constant: Floats
    # Instructions per second of messages between subtasks, which depend on the parallelism and are
    # part of no other field; None if they cost nothing.
    messages: MessageLoads | None
    # [N] subtasks that would read at their `max_rate` if tuples came in equal parts; 0 without one.
    at_max_rate: Floats
    memory: Floats  # [N] bytes
    requires: tuple[frozenset[str], ...]  # tags that a machine must have
    # Numbers of key groups by which the tuples of an operator may be distributed to its subtasks; 0
    # stands for equal parts. If there are several, each resource is charged for the worst.
    group_counts: tuple[frozenset[int], ...]
    parallelism_limit: Ints  # [N] largest parallelism; 0 where any is possible
    keeps: Bools  # [N] whether the largest parallelism of an operator is its only one
    tied: Ints  # [N] group numbers; operators of a group must have equal parallelism
    slot_group: Ints  # [N] group numbers; operators of a group may share slots
    # [M] ends of the streams.
    source: Ints
    target: Ints
    # [M] per second.
    tuples: Floats
    bits: Floats
    joined: Ints  # [M] `ALL_TO_ALL`, `ONE_TO_ONE` or `EITHER`
    # [M] whether the target's subtasks may receive other parts of a stream than of its other
    # inputs, or the source's subtasks may send other parts than they receive.
    uneven: Bools
    unit: Ints  # [N] group numbers; operators of a group are colocated
    apart: tuple[tuple[int, ...], ...]  # groups of operators of which no two share a machine
    unpinned: tuple[frozenset[str], ...]  # tags that a machine must have where pins do not count

    @property
    def n_operators(self) -> int:
        """Number of operators, N."""
        return len(self.instructions)

    @property
    def name(self) -> tuple[str, ...]:
        """Names of the operators."""
        return self.graph.operators.name

    @property
    def is_proportional(self) -> bool:
        """Whether all CPU grows in proportion to the rate."""
        return self.messages is None and not self.constant.any()

    def after_loss(self, share: float) -> "Demand":
        """Demand of a share of the rate, without pins and messages.

        As in the steady state, all flows scale with the rate, including the output of windows.
        """
        return replace(
            self,
            flowing=share * self.flowing,
            instructions=share * self.flowing + self.constant,
            messages=None,
            at_max_rate=share * self.at_max_rate,
            requires=self.unpinned,
            tuples=share * self.tuples,
            bits=share * self.bits,
        )

    def of_messages(self, parallelism: Ints, times: float = 1.0) -> Floats:
        """Instructions per second for messages at a multiple of the rate, [N]."""
        if self.messages is None:
            return np.zeros(self.n_operators)
        return self.messages.more(parallelism, times)

    def one_to_one(self, parallelism: Ints) -> Bools:
        """Whether each stream joins subtask i to subtask i at these parallelisms, [M]."""
        equal = parallelism[self.source] == parallelism[self.target]
        return np.asarray((self.joined == ONE_TO_ONE) | ((self.joined == EITHER) & equal))

    @cached_property
    def units(self) -> tuple[tuple[int, ...], ...]:
        """Groups of several colocated operators."""
        groups = (np.flatnonzero(self.unit == u).tolist() for u in np.unique(self.unit).tolist())
        alone = len(self.unit) == int(self.unit.max(initial=-1)) + 1
        return () if alone else tuple(tuple(group) for group in groups if len(group) > 1)

    def parts(self, parallelism: Ints) -> Ints:
        """Subtasks of each operator that share a machine, with parts of its unit, [N]."""
        part = np.ones_like(parallelism)
        for unit in self.units:
            rows = list(unit)
            part[rows] = parallelism[rows] // np.gcd.reduce(parallelism[rows])
        return part

    def together(self, group: Ints) -> Ints:
        """Groups of operators; groups with colocated operators are merged, [N]."""
        pairs = [(unit[0], v) for unit in self.units for v in unit[1:]]
        for u, v in pairs:
            group = np.where(group == group[v], group[u], group)
        return np.unique(group, return_inverse=True)[1].astype(np.int32) if pairs else group

    def rivals(self) -> tuple[Ints, Ints]:
        """First rival of each operator, [N + 1], and all rivals; both empty without rules."""
        if not self.apart:
            return np.empty(0, np.int32), np.empty(0, np.int32)
        pairs = np.array([pair for group in self.apart for pair in combinations(group, 2)])
        pairs = np.unique(np.sort(pairs.reshape(-1, 2), axis=1), axis=0).astype(np.int32)
        start, rival = rival_columns(pairs, self.n_operators)
        return start.astype(np.int32), rival.astype(np.int32)

    def part_range(self, v: int) -> tuple[float, float]:
        """Least and largest ratio of operator v's share of tuples to its share of subtasks."""
        low = high = 1.0
        limit, keeps = int(self.parallelism_limit[v]), bool(self.keeps[v])
        for groups in self.group_counts[v]:
            p = np.arange(1, min(groups, limit or groups) + 1)
            p = np.array([limit]) if keeps and limit <= groups else p
            if groups:
                low = min(low, float((groups // p * p / groups).min()))
                high = max(high, float((-(-groups // p) * p / groups).max()))
        return low, high

    @property
    def fixed(self) -> bool:
        """Whether every operator has only one possible parallelism."""
        return bool(self.keeps.all())

    @property
    def key_groups(self) -> Ints:
        """Key groups of each operator, by which its memory is divided; 0 for equal parts, [N]."""
        return self.graph.operators.max_parallelism

    def pieces(self, v: int) -> int:
        """Equal pieces of operator v's tuples that no subtask splits; 0 if there are none."""
        return self._pieces(v, min(self.group_counts[v])) if len(self.group_counts[v]) == 1 else 0

    def memory_pieces(self, v: int) -> int:
        """Equal pieces of operator v's memory that no subtask splits; 0 if there are none."""
        return self._pieces(v, int(self.key_groups[v]))

    def _pieces(self, v: int, groups: int) -> int:
        kept = int(self.parallelism_limit[v])
        return kept if self.keeps[v] and groups % kept == 0 else groups

    @property
    def least_instructions(self) -> Floats:
        """Least instructions per second of each operator, by its shares of tuples, [N].

        Constant loads are divided evenly, which may give less than a share of the tuples.
        """
        least = self.instructions.copy()
        for v in np.flatnonzero(self.constant).tolist():
            least[v] -= self.constant[v] * (1 - self._least_part(v, 0))
        return least

    @property
    def least_memory(self) -> Floats:
        """Least bytes of each operator, by its shares of tuples, [N]."""
        least = self.memory.copy()
        for v in np.flatnonzero(self.memory).tolist():
            if self.group_counts[v] != {int(self.key_groups[v])}:
                least[v] *= self._least_part(v, int(self.key_groups[v]))
        return least

    def _least_part(self, v: int, groups: int) -> float:
        """Least ratio of a share by key groups to the share of tuples of the same subtasks."""
        return _least_part(
            self.group_counts[v], groups, int(self.parallelism_limit[v]), bool(self.keeps[v])
        )


def demand_of(
    graph: StreamGraph, fixed: bool | Collection[str] = False, rules: PlanRules | None = None
) -> Demand:
    """Return the demand of a graph, at the rate of its sources.

    Operators named in ``fixed`` (all for True) or by an attribute keep the parallelism of the
    graph, and so do operators that forward streams connect to them.

    Examples
    --------
    >>> from streamplace.model import Operator, Stream
    >>> ends = [Operator("a", ipt=5, payload=10, rate=100), Operator("b", ipt=3)]
    >>> demand = demand_of(StreamGraph.of("pair", ends, [Stream("a", "b", 0.5)]))
    >>> demand.instructions.tolist(), demand.bits.tolist()
    ([500.0, 150.0], [4000.0])
    """
    graph = unchained(graph)
    rules = rules or without_rules(graph)
    operators, flow = graph.operators, graph.flow
    payload = graph.streams.bytes_per_tuple()[flow.stream_index]
    named = _fixed_operators(graph, fixed)
    joined = _joined(graph, named)[flow.stream_index]
    group_counts, uneven = _group_counts(graph, joined)
    forward = joined == ONE_TO_ONE
    tied = connected(graph.n_operators, flow.source[forward], flow.target[forward])
    keeps = np.isin(tied, tied[named])
    flowing, constant = flow.input_rate * graph.charged_ipt, 1e6 * operators.constant
    instructions = flowing + constant if constant.any() else flowing
    slot_groups = [name or FLINK_GROUP for name in operators.slot_sharing_group]
    return Demand(
        graph=graph,
        flowing=flowing,
        instructions=instructions,
        constant=constant,
        messages=graph.message_loads,
        at_max_rate=flow.input_rate / operators.largest_rates(),
        memory=np.array(operators.memory),
        requires=rules.requires,
        group_counts=group_counts,
        parallelism_limit=_limits(graph, tied, named),
        keeps=keeps,
        tied=tied,
        slot_group=np.unique(slot_groups, return_inverse=True)[1].astype(np.int32),
        source=flow.source,
        target=flow.target,
        tuples=flow.tuples,
        bits=8 * flow.tuples * payload,
        joined=joined,
        uneven=uneven,
        unit=rules.unit,
        apart=rules.apart,
        unpinned=rules.unpinned,
    )


def unchained(graph: StreamGraph) -> StreamGraph:
    """Return the graph with streams whose ends a plan may separate and scale.

    Chained streams become forward ones, and rescaled ones are rebalanced.
    """
    streams, other = graph.streams, {CHAINED: "forward", RESCALE: "rebalance"}
    if other.keys().isdisjoint(streams.partitioning):
        return graph
    kinds = [other.get(kind, kind) for kind in streams.partitioning]
    return replace(graph, streams=replace(streams, partitioning=tuple(kinds)))


def _fixed_operators(graph: StreamGraph, fixed: bool | Collection[str]) -> Bools:
    """Whether each operator is named in ``fixed`` or by an attribute, or all are, [N]."""
    names = graph.operators.name
    kept = {*graph.kept_parallelism}
    marked = np.array([name in kept for name in names])
    if isinstance(fixed, bool):
        return marked | fixed
    if unknown := set(fixed).difference(names):
        raise ProblemError(
            f"graph {quoted(graph.name)} has no operator {quoted(min(unknown))}, whose "
            f"parallelism is to be kept{suggestion(min(unknown), names)}"
        )
    return np.asarray(marked | np.isin(names, sorted(fixed)))


def _limits(graph: StreamGraph, tied: Ints, named: Bools) -> Ints:
    """Largest parallelism of each operator, the only one in groups with a named operator, [N]."""
    name, parallelism = graph.operators.name, graph.operators.parallelism
    largest, kept_rows = _parallelism_limits(graph, tied), np.flatnonzero(named)
    firsts = kept_rows[np.unique(tied[kept_rows], return_index=True)[1]]
    for first in firsts.tolist():
        group, kept = tied == tied[first], int(parallelism[first])
        different = group & named & (parallelism != kept)
        if different.any():
            other = int(np.argmax(different))
            raise GraphError(
                f"operators {quoted(name[first])} and {quoted(name[other])} are to keep their "
                f"parallelisms {kept} and {parallelism[other]}, but forward streams connect them; "
                "give them the same parallelism, or keep one"
            )
        limits = graph.operators.max_parallelism
        lower = group & (limits > 0) & (limits < kept)
        if lower.any():
            other = int(np.argmax(lower))
            raise GraphError(
                f"operator {quoted(name[first])} is to keep its parallelism {kept}, but forward "
                f"streams connect it to {quoted(name[other])} with max_parallelism "
                f"{limits[other]}; lower the one or raise the other"
            )
        largest[group] = kept
    return largest


def _joined(graph: StreamGraph, named: Bools) -> Ints:
    """How each stream connects subtasks, in the order of the graph's streams."""
    streams, parallelism = graph.streams, graph.operators.parallelism
    keyed = graph.operators.max_parallelism[streams.target] > 0
    kinds = {"forward": ONE_TO_ONE, "rebalance": ALL_TO_ALL, "hash": ALL_TO_ALL, "": EITHER}
    joined = np.array([kinds[kind] for kind in streams.partitioning], np.int32)
    joined[keyed & (joined == EITHER)] = ALL_TO_ALL  # hashed, at any parallelisms
    settled = (joined == EITHER) & named[streams.source] & named[streams.target]
    equal = parallelism[streams.source] == parallelism[streams.target]
    joined[settled] = np.where(equal, ONE_TO_ONE, ALL_TO_ALL)[settled]
    return joined


def connected(n: int, source: Ints, target: Ints) -> Ints:
    """Connected component of each operator, numbered, [N].

    >>> connected(4, np.array([0, 2]), np.array([2, 3])).tolist()
    [0, 1, 0, 0]
    """
    group = np.arange(n, dtype=np.int32)
    for u, v in zip(source.tolist(), target.tolist(), strict=True):
        group[group == group[v]] = group[u]
    return np.unique(group, return_inverse=True)[1].astype(np.int32)


def _parallelism_limits(graph: StreamGraph, tied: Ints) -> Ints:
    """Largest parallelism of each operator: the smallest limit of its tied group; 0 without one."""
    groups = graph.operators.max_parallelism
    limit = np.full(tied.max() + 1, np.iinfo(np.int32).max, np.int64)
    np.minimum.at(limit, tied[groups > 0], groups[groups > 0])
    lowest = limit[tied]
    return np.where(lowest == np.iinfo(np.int32).max, 0, lowest).astype(np.int32)


def _group_counts(graph: StreamGraph, joined: Ints) -> tuple[tuple[frozenset[int], ...], Bools]:
    """Numbers of key groups by which the tuples of operators may be distributed; uneven streams."""
    operators, flow = graph.operators, graph.flow
    groups, kinds = operators.max_parallelism.tolist(), graph.streams.partitioning
    inputs = np.bincount(flow.target, minlength=len(groups))
    group_counts: list[set[int]] = [
        set() if fed else {number} for fed, number in zip(inputs.tolist(), groups, strict=True)
    ]
    uneven = np.zeros(len(joined), np.bool_)
    for e, (u, v) in enumerate(zip(flow.source.tolist(), flow.target.tolist(), strict=True)):
        uneven[e] = u in operators.window and group_counts[u] != {groups[u]}
        if joined[e] != ALL_TO_ALL:
            group_counts[v] |= group_counts[u] | ({groups[u]} if uneven[e] else set())
        if joined[e] == EITHER:
            group_counts[v].add(0)
        if joined[e] == ALL_TO_ALL:
            group_counts[v].add(0 if kinds[flow.stream_index[e]] == "rebalance" else groups[v])
    mixed = np.array(
        [n > 1 and len(parts) > 1 for n, parts in zip(inputs, group_counts, strict=True)]
    )
    return tuple(map(frozenset, group_counts)), uneven | mixed[flow.target]


@lru_cache(4096)
def _least_part(group_counts: frozenset[int], groups: int, limit: int, keeps: bool) -> float:
    """`Demand._least_part` of an operator with these numbers of key groups."""
    finest = max(groups, *group_counts, 1)  # beyond it, all parts are equal
    p = np.array([limit]) if keeps else np.arange(1, min(finest, limit or finest) + 1)
    busiest = np.zeros(len(p))
    for number in group_counts:
        share = -(-number // p) / number if number else 1 / p
        busiest = np.maximum(busiest, np.where((p <= number) | (number == 0), share, 0.0))
    part = groups // p / groups if groups else 1 / p
    return float((part / busiest).min())


def shares_of(demand: Demand, parallelism: Ints) -> tuple[Floats, Floats, Floats]:
    """Largest and smallest share of tuples, and largest share of memory, of n subtasks.

    Each has the shape [N, P + 1], a row for each operator, with P the largest parallelism.

    >>> from streamplace.model import Operator, StreamGraph
    >>> graph = StreamGraph.of("one", [Operator("a", ipt=1, rate=8, max_parallelism=8)])
    >>> largest, least, _ = shares_of(demand_of(graph), np.array([3], np.int32))
    >>> largest[0].tolist(), least[0].tolist()
    ([0.0, 0.375, 0.75, 1.0], [0.0, 0.25, 0.625, 1.0])
    """
    count = np.arange(parallelism.max() + 1)
    largest = np.zeros((len(parallelism), len(count)))
    least, memory = np.ones_like(largest), np.zeros_like(largest)
    for v, counts in enumerate(demand.group_counts):
        p = int(parallelism[v])
        memory[v] = _extremes(int(demand.key_groups[v]), p, count)[0]
        for groups in _fitting_counts(counts, p):
            high, low = _extremes(groups, p, count)
            largest[v], least[v] = np.maximum(largest[v], high), np.minimum(least[v], low)
    return largest, least, memory


def subtask_speeds(demand: Demand, catalogue: Catalogue) -> Floats:
    """Instructions per second of a subtask of each operator on a machine of each type, [T, N]."""
    speed = np.array([offer.core_speed for offer in catalogue.offers])
    cores = np.array([offer.cores for offer in catalogue.offers], np.float64)
    return np.asarray(speed[:, None] * np.minimum(cores[:, None], demand.graph.operators.cores))


def busiest_share(demand: Demand, v: int, parallelism: int) -> float:
    """Share of the tuples of operator v that its busiest subtask receives."""
    return max(
        -(-groups // parallelism) / groups if groups else 1 / parallelism
        for groups in _fitting_counts(demand.group_counts[v], parallelism)
    )


def charged_need(demand: Demand, v: int, parallelism: int, speed: float) -> float:
    """Instructions per second of operator v's busiest subtask, as plans are charged for it.

    A subtask at its ``max_rate`` occupies its cores, which execute ``speed`` instructions/s.
    """
    waiting = speed * float(demand.at_max_rate[v])
    return busiest_share(demand, v, parallelism) * max(float(demand.instructions[v]), waiting)


def least_need(demand: Demand, v: int, parallelism: int, speed: float) -> float:
    """Least instructions per second that operator v's busiest subtask may need.

    Constant loads are divided evenly, and so may tuples be if the number of key groups is not
    unique. A subtask at its ``max_rate`` occupies its cores, which execute ``speed``
    instructions/s.
    """
    share, needed = least_share(demand, v, parallelism), float(demand.instructions[v])
    waiting = share * speed * float(demand.at_max_rate[v])
    constant = 0.0
    if demand.constant[v]:
        constant = needed * float(demand.constant[v] / demand.instructions[v])
    return max(share * (needed - constant) + 1 / parallelism * constant, waiting)


def least_share(demand: Demand, v: int, parallelism: int) -> float:
    """Least share of the tuples of operator v that its busiest subtask may receive."""
    several = len(demand.group_counts[v]) > 1
    return 1 / parallelism if several else busiest_share(demand, v, parallelism)


def _fitting_counts(group_counts: frozenset[int], p: int) -> list[int]:
    """Numbers of key groups for p subtasks; smaller numbers come from forward streams only."""
    return [groups for groups in group_counts if not groups or groups >= p]


def _extremes(groups: int, p: int, count: Ints) -> tuple[Floats, Floats]:
    """Largest and smallest share of ``count`` of p subtasks."""
    n = np.minimum(count, p)
    if not groups:
        return n / p, n / p
    groups_each, larger = divmod(groups, p)
    high = n * groups_each + np.minimum(n, larger)
    low = n * groups_each + np.maximum(0, n - (p - larger))
    return high / groups, low / groups


def slot_groups(demand: Demand, catalogue: Catalogue) -> Ints:
    """Group of operators that share slots, numbered, [N]."""
    if catalogue.slot_sharing:
        return demand.slot_group
    return np.arange(demand.n_operators, dtype=np.int32)


def slots_of(groups: Ints, counts: Ints | Longs) -> Longs:
    """Slots in use on each machine, [D], by ``counts`` subtasks of each operator, [D, N].

    >>> slots_of(np.array([0, 0, 1]), np.array([[2, 3, 4], [0, 1, 0]])).tolist()
    [7, 1]
    """
    return np.asarray(group_slots(groups, counts).sum(axis=1))


def group_slots(groups: Ints, counts: Ints | Longs) -> Longs:
    """Slots that each group uses on each machine, [D, G]: the subtasks of its largest operator.

    >>> group_slots(np.array([0, 0, 1]), np.array([[2, 3, 4], [0, 1, 0]])).tolist()
    [[3, 4], [1, 0]]
    """
    slots = np.zeros((len(counts), int(groups.max(initial=-1)) + 1), np.int64)
    for v, group in enumerate(groups.tolist()):
        slots[:, group] = np.maximum(slots[:, group], counts[:, v])
    return slots
