"""The problem of a controller: rates in slots of time, and the plans among which a job may move.

A trace is cut into slots of equal length. A plan is chosen for each slot, and changing it has a
price. `ControlDay` is the common input of all schedules, policies and bounds of one trace.

Bounds of controllers add up the tuples that arrive in a window of time. Without windows in the
graph, all loads are linear in the rates, so a plan that carries rates carries their mean as well.
The output of a window of the graph is concave: with several sources, a plan may carry each of two
rates and not their mean. `_graphs_of_means` yields the graphs that such a plan carries. The bound
of the cost of plans takes long, so it is computed for some rates; others have the bound of a lower
rate.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from streamplace.control.policy import PlanChoice
from streamplace.errors import GraphError, SettingError
from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.columns import frozen
from streamplace.model.graph import StreamGraph
from streamplace.planning.deployment import TOLERANCE
from streamplace.planning.result import HOUR, PlanResult
from streamplace.planning.traces import RateTrace, share_carried

PLANS, MAX_PARTS = 24, 768
"""Plans are made for multiples of a 24th of the peaks, or up to a 768th if rates vary little."""
MAX_SLOTS = 20_000
UNLIMITED = 1e9
"""Multiple of the peak that counts as carried by a plan that uses no resource."""
WINDOWS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48)
"""Lengths of the windows in which bounds add up arriving tuples, in slots."""
LEVELS_OF_ONE, LEVELS_OF_EACH = 1024, 8
"""Rate levels in the bounds: for a single source, and for each of several."""
MAX_BOUNDS = 128
"""Maximum number of levels of a single source with a bound of their own."""
ZERO_RATE = 1e-9
"""Substitute for a rate of 0, as a share of the peak; bounds allow as much for rounding."""


@dataclass(frozen=True, slots=True)
class MoveTerms:
    """Terms of moves from one plan to another: their price, their time, and the lag meanwhile."""

    # Seconds of running the mean of both plans that cost as much as a move. The price covers the
    # costs of a move besides machines: the interruption, the risk, the attention.
    price: float = 1800.0
    # Seconds from a decision until the machines of the new plan are ready; both plans cost.
    delay: float = 60.0
    interruption: float = 5.0  # seconds for which the job then stands still
    lag: float = 60.0  # seconds by which tuples may be late

    def __post_init__(self) -> None:
        for name in ("price", "delay", "interruption", "lag"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise SettingError(f"{name} is {value:g} s; it must be 0 or more")

    def choice(self, cost: Floats, seconds: float) -> PlanChoice:
        """Plans of these costs per hour [K], among which a policy chooses every few seconds."""
        price = self.price / HOUR * ((cost[:, None] + cost[None, :]) / 2)
        np.fill_diagonal(price, 0.0)
        cost, price = frozen(cost.copy()), frozen(price)
        return PlanChoice(cost, price, seconds, self.delay, self.interruption, self.lag)


@dataclass(frozen=True, slots=True, eq=False)
class TraceSlots:
    """A trace in slots of equal length."""

    start: float  # seconds at which the first slot begins
    seconds: float  # length of a slot
    peak: Floats  # [T, S] largest rate of each source in each slot
    mean: Floats  # [T, S] mean rate of each source in each slot, while the trace lasts
    last: float = 1.0  # part of the last slot in which the trace lasts

    def __len__(self) -> int:
        return len(self.peak)

    @classmethod
    def of(cls, trace: RateTrace, seconds: float) -> "TraceSlots":
        """Cut a trace into slots; rates hold until the next row, the last for the median step."""
        if not seconds > 0:
            raise SettingError(f"the slot is {seconds:g} s; it must be above 0")
        steps = np.diff(trace.time)
        last = float(np.median(steps)) if len(steps) else seconds
        ends = np.append(trace.time[1:], trace.time[-1] + last)
        start = float(trace.time[0])
        slots = (float(ends[-1]) - start) / seconds - 1e-9
        if slots > MAX_SLOTS:
            raise SettingError(
                f"the trace has {slots:.0f} slots of {seconds:g} s, and {MAX_SLOTS} is the "
                "maximum; give a longer slot"
            )
        number = max(1, math.ceil(slots))
        edges = np.asarray(start + seconds * np.arange(number + 1), np.float64)
        passed = np.concatenate(([0.0], np.cumsum(ends - trace.time)))
        amounts = trace.rates * (ends - trace.time)[:, None]
        emitted = np.concatenate((np.zeros((1, amounts.shape[1])), np.cumsum(amounts, axis=0)))
        at = np.clip(edges - start, 0.0, passed[-1])
        emitted_until = np.stack([np.interp(at, passed, column) for column in emitted.T], axis=1)
        held = np.maximum(np.diff(at), 1e-9)[:, None]
        part = float(held[-1, 0]) / seconds
        return cls(
            start,
            seconds,
            trace.peaks(edges),
            np.diff(emitted_until, axis=0) / held,
            part if part < 1 - 1e-9 else 1.0,
        )


@dataclass(frozen=True, eq=False)
class ControlDay:
    """A trace in slots, the plans to choose from, and the costs of plans and moves.

    ``least`` [T, W] is a lower bound of the cost per hour of any plan that runs in all slots of a
    window and processes all tuples that are due in it, if tuples may be late by the lag. Windows
    end with the slot. ``least_moved`` is the same for a plan that replaces another plan when the
    window begins: until its machines are ready, the other plan works.
    """

    slots: TraceSlots
    plans: tuple[PlanResult, ...]  # of rising cost and rising capacity
    offered: Floats  # [T] mean tuples/s of all sources in a slot
    peak_rate: Floats  # [T] maximum tuples/s of all sources in a slot
    carried: Floats  # [T, K] part of the largest rates of the slot that plans carry at full load
    least: Floats  # [T, W]
    least_moved: Floats  # [T, W]
    windows: tuple[int, ...]  # [W] slots in a window, rising from 1
    terms: MoveTerms

    @property
    def hours(self) -> float:
        """Length of a slot in hours."""
        return self.slots.seconds / HOUR

    @cached_property
    def cost(self) -> Floats:
        """[K] cost of each plan per hour."""
        return np.array([plan.cost for plan in self.plans], np.float64)

    @cached_property
    def capacity(self) -> Floats:
        """[T, K] tuples/s of the mix of sources of the slot that each plan carries at full load.

        If nothing arrives, the mix is that of the plan.
        """
        limit = UNLIMITED * self.peak_rate.max()
        by_plan = np.minimum([plan.carries for plan in self.plans], limit)
        peak = self.peak_rate[:, None]
        return np.where(peak > 0, self.carried * peak, by_plan)

    @cached_property
    def rated_capacity(self) -> Floats:
        """[T, K] tuples/s that each plan carries with its headroom; see `capacity`."""
        return np.asarray(self.capacity * self._usable)

    @cached_property
    def _usable(self) -> Floats:
        """[K] part of the capacity of each plan besides its headroom."""
        return 1 - np.array([plan.headroom for plan in self.plans], np.float64)

    @cached_property
    def choice(self) -> PlanChoice:
        """The plans, among which a policy chooses at each end of a slot."""
        return self.terms.choice(self.cost, self.slots.seconds)

    @property
    def price(self) -> Floats:
        """[K, K] price of a move from one plan to another, in money."""
        return self.choice.price

    @cached_property
    def carries(self) -> Bools:
        """[T, K] whether a plan carries a slot with its headroom; see `carries_in`."""
        return self.carries_in(1.0)

    def carries_in(self, part: float) -> Bools:
        """[T, K] whether a plan carries a slot, with its headroom, in this part of its time.

        If none carries it, the largest plan counts as carrying it.
        """
        fits = self.carried * self._usable * part >= 1 - TOLERANCE
        fits[:, -1] |= ~fits.any(axis=1)
        return np.asarray(fits)

    @property
    def static(self) -> int:
        """The cheapest plan that carries all slots."""
        return int(self.carries.all(axis=0).argmax())

    def total(self, levels: Ints) -> float:
        """Cost of running these plans in the slots, with the price of every move."""
        moves = self.price[levels[:-1], levels[1:]].sum()
        return float(self.cost[levels].sum() * self.hours + moves)


def control_day(
    graph: StreamGraph,
    trace: RateTrace,
    seconds: float,
    terms: MoveTerms,
    plan_each: Callable[[list[StreamGraph]], Iterable[PlanResult]],
    bound_of: Callable[[StreamGraph], float],
) -> ControlDay:
    """Plan for several rates between the lowest and the peaks, and bound the cost of every slot.

    ``plan_each`` returns plans for graphs, in their order; ``bound_of`` is a lower bound of the
    cost per hour of plans for a graph.
    """
    slots = TraceSlots.of(trace, seconds)
    starts = (slots.start + seconds * np.arange(len(slots))).tolist()
    offered, peak = (
        np.array(
            [
                trace.graph_at(at, graph, rates).source_rate
                for at, rates in zip(starts, slot_rates, strict=True)
            ]
        )
        for slot_rates in (slots.mean, slots.peak)
    )
    results = plan_each([trace.graph(graph, rates) for rates in planned_rates(slots)])
    plans = _useful(list(results))
    carried = _carried(graph, trace, slots, peak, plans)
    carried[np.isinf(carried)] = UNLIMITED
    windows = tuple(length for length in WINDOWS if length <= len(slots))
    rates = np.stack([due_rates(slots, windows, terms.lag, head) for head in (0.0, terms.delay)])
    flat, top = rates.reshape(-1, rates.shape[-1]), slots.peak.max(axis=0)

    def bound_at(rates: Floats) -> float:
        return max(map(bound_of, _graphs_of_means(graph, trace, rates)), default=0.0)

    bounds = _bounds_of_one if len(top) == 1 else _bounds_of_several
    least, moved = bounds(flat, top, bound_at).reshape(rates.shape[:-1])
    return ControlDay(slots, plans, offered, peak, carried, least, moved, windows, terms)


def planned_rates(slots: TraceSlots) -> list[Floats]:
    """Rates of the sources [S] for which there are plans: parts of the peaks, rising to them."""
    high = slots.peak.max(axis=0)
    low = high * _alike((slots.peak.min(axis=0) / high)[None, :], np.min)[0]
    lowest, parts = float((low / high).min()), PLANS
    while parts < MAX_PARTS and parts * (1 - lowest) < PLANS / 2:
        parts *= 2
    first = np.maximum(np.ceil(low / high * parts - 1e-9), 1.0)
    parts_of_peak = [
        high * (np.maximum(first, k) / parts) for k in range(int(first.min()), parts + 1)
    ]
    return list({rates.tobytes(): rates for rates in parts_of_peak}.values())


def due_rates(slots: TraceSlots, windows: Sequence[int], lag: float, head: float = 0.0) -> Floats:
    """[T, W, S] rates at which tuples must be processed in windows that end with each slot.

    Tuples of the last ``lag`` seconds of a window may be processed after it, and tuples of its
    first ``head`` seconds by the plan before; the rest is due in the window. Tuples before the last
    ``lag`` seconds are due within the lag. The larger rate counts. Windows that begin before the
    trace have the rate 0.
    """
    amounts = slots.mean.copy()
    amounts[-1] *= slots.last
    arrived = np.concatenate((np.zeros((1, amounts.shape[1])), np.cumsum(amounts, axis=0)))
    due = np.zeros((len(slots), len(windows), slots.mean.shape[1]))
    part = lag / slots.seconds
    for column, length in enumerate(windows):
        last = min(length, max(1, math.ceil(part)))
        tops = np.lib.stride_tricks.sliding_window_view(slots.peak, last, axis=0).max(axis=2)
        waits = part * tops[length - last :]
        early = _early(slots, length, head)
        due[length - 1 :, column] = (arrived[length:] - arrived[:-length] - waits - early) / length
        before = length - math.ceil(part)
        if before > 0:
            first = arrived[before : len(arrived) - length + before] - arrived[:-length]
            settled, in_window = (first - early) / (before + part), due[length - 1 :, column]
            is_more = settled.sum(axis=1) > in_window.sum(axis=1)
            in_window[is_more] = settled[is_more]
    return np.maximum(due, 0.0)


def _early(slots: TraceSlots, length: int, head: float) -> Floats:
    """[T - length + 1, S] maximum of tuples in the first ``head`` seconds of windows."""
    early = np.zeros((len(slots) - length + 1, slots.peak.shape[1]))
    for k in range(min(length, math.ceil(head / slots.seconds))):
        early += min(1.0, head / slots.seconds - k) * slots.peak[k : k + len(early)]
    return early


def _useful(plans: list[PlanResult]) -> tuple[PlanResult, ...]:
    """Plans that are cheaper than every plan for a higher rate."""
    kept: list[PlanResult] = []
    for plan in reversed(plans):
        if not kept or plan.cost < kept[-1].cost:
            kept.append(plan)
    return tuple(reversed(kept))


def _carried(
    graph: StreamGraph,
    trace: RateTrace,
    slots: TraceSlots,
    peak: Floats,
    plans: tuple[PlanResult, ...],
) -> Floats:
    """[T, K] part of the largest rates that plans carry; several sources are rounded up."""
    if slots.peak.shape[1] == 1:
        carried = np.array([plan.carries for plan in plans])
        with np.errstate(divide="ignore"):
            return np.asarray(carried[None, :] / peak[:, None])
    top = slots.peak.max(axis=0)
    grid, which = _rounded(np.ceil(_alike(slots.peak / top, np.max) * LEVELS_OF_EACH), top)
    parts = [[share_carried(plan, trace.graph(graph, rates)) for plan in plans] for rates in grid]
    return np.array(parts)[which]


def _graphs_of_means(graph: StreamGraph, trace: RateTrace, rates: Floats) -> Iterator[StreamGraph]:
    """Yield graphs that a plan carries if the mean of the rates that it carries is ``rates`` [S].

    With a single source that emits, that is the graph at the mean, because loads rise with the
    rate. Otherwise, windows have only the output that is proportional to their input. Moreover, a
    plan carries the mean of each source alone, because at some time it carries at least as much of
    it; only the windows that this source feeds then have their whole output. If the inputs of a
    join would have unequal rates, there is no graph.
    """
    alone = [rates * (np.arange(len(rates)) == s) for s in np.flatnonzero(rates > 0)]
    nowhere = np.zeros(graph.n_operators, np.bool_)
    cases = [(rates, nowhere)] if len(rates) > 1 or not alone else []
    if graph.operators.window or not cases:
        cases += [(part, _fed(graph, trace, part)) for part in alone]
    for part, fed in cases:
        with_output = _with_output(graph, trace, part, fed)
        if with_output is not None:
            yield with_output


def _fed(graph: StreamGraph, trace: RateTrace, rates: Floats) -> Bools:
    """Whether each operator is downstream of a source with a rate, [N]."""
    fed = graph.operators.rate > 0
    if len(rates) > 1:
        emitting = [name for name, rate in zip(trace.sources, rates, strict=True) if rate > 0]
        fed = np.isin(graph.operators.name, emitting)
    flow = graph.flow
    for u, v in zip(flow.source.tolist(), flow.target.tolist(), strict=True):
        fed[v] |= fed[u]
    return np.asarray(fed)


def _with_output(
    graph: StreamGraph, trace: RateTrace, rates: Floats, fed: Bools
) -> StreamGraph | None:
    """Return the graph at these rates; windows that are not ``fed`` have proportional output."""
    operators = graph.operators
    windows = dict(operators.window)
    for v, window in operators.window.items():
        if not fed[v]:
            factor = window.factor if window.limit == math.inf else 0.0
            windows[v] = replace(window, base=0.0, factor=factor, limit=math.inf)
    try:
        changed = graph.with_operators(replace(operators, window=windows)) if windows else graph
        return trace.graph(changed, rates, ZERO_RATE)
    except GraphError:
        return None


def _bounds_of_one(rates: Floats, top: Floats, bound_at: Callable[[Floats], float]) -> Floats:
    """Bound of the cost at each rate [_, 1] of the only source, rounded down to a bounded level.

    The next level is bounded where the most rates may gain the most: between two levels with the
    same bound, nothing can be gained.
    """
    level = np.floor(rates[:, 0] / top[0] * LEVELS_OF_ONE)
    ordered = np.sort(level)
    bound_of_level = {k: bound_at(top * (k / LEVELS_OF_ONE)) for k in (0, LEVELS_OF_ONE)}

    def gap(low: int, high: int) -> tuple[float, int, int]:
        inside = np.searchsorted(ordered, high) - np.searchsorted(ordered, low + 1)
        return (-(bound_of_level[high] - bound_of_level[low]) * float(inside), low, high)

    gaps = [gap(0, LEVELS_OF_ONE)]
    while gaps and gaps[0][0] < 0 and len(bound_of_level) < MAX_BOUNDS:
        _, low, high = heapq.heappop(gaps)
        middle = (low + high) // 2
        bound_of_level[middle] = bound_at(top * (middle / LEVELS_OF_ONE))
        for part in (gap(low, middle), gap(middle, high)):
            heapq.heappush(gaps, part)
    levels = np.array(sorted(bound_of_level), np.float64)
    raised = np.maximum.accumulate([bound_of_level[int(k)] for k in levels])
    return np.asarray(raised[np.searchsorted(levels, level, side="right") - 1])


def _bounds_of_several(rates: Floats, top: Floats, bound_at: Callable[[Floats], float]) -> Floats:
    """Bound of the cost at each row of rates [_, S], rounded down; it rises with the rates.

    Between two rows with the same bound, nothing can be gained. Rows are sorted by the sum of their
    parts of the peaks, and bounded in an order that halves the distances of bounded rows.
    """
    grid, which = _rounded(np.floor(_alike(rates / top, np.min) * LEVELS_OF_EACH), top)
    ranked, last = np.argsort((grid / top).sum(axis=1), kind="stable"), len(grid) - 1
    values, is_known = np.zeros(len(grid)), np.zeros(len(grid), np.bool_)
    for rank in sorted(range(len(grid)), key=lambda i: (0 < i < last, -(i & -i))):
        row = ranked[rank]
        low = values[is_known & (grid <= grid[row]).all(axis=1)].max(initial=0.0)
        high = values[is_known & (grid >= grid[row]).all(axis=1)].min(initial=np.inf)
        values[row] = low if low >= high else max(low, bound_at(grid[row]))
        is_known[row] = True
    below = (grid[None, :, :] <= grid[:, None, :]).all(axis=2)
    raised = np.where(below, values[None, :], 0.0).max(axis=1)
    return np.asarray(raised[which])


def _alike(parts: Floats, end: Callable[..., Floats]) -> Floats:
    """Parts of the peaks [_, S], in which parts that a join takes for equal get one value.

    Otherwise rounding could separate the rates of the inputs of a join.
    """
    from streamsim.flow import UNEQUAL

    is_near = np.abs(parts[:, :, None] - parts[:, None, :]) <= 2 * UNEQUAL
    return end(np.where(is_near, parts[:, None, :], parts[:, :, None]), axis=2)


def _rounded(levels: Floats, top: Floats) -> tuple[Floats, Ints]:
    """Distinct rows of rates on a grid below the top, and the number of the row of each input."""
    grid, which = np.unique(levels, axis=0, return_inverse=True)
    return grid / LEVELS_OF_EACH * top, which.reshape(-1).astype(np.int32)
