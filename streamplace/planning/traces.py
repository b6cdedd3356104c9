"""Traces: rates of sources over time, read from CSV files, and plans for them.

A plan for a trace is for the peak or a quantile of its rates; beside it stand plans for each hour
alone.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from streamsim import bottleneck, resource_loads

from streamplace.errors import FormatError, GraphError, SettingError, UnitError
from streamplace.io.files import located, read_bytes, spot
from streamplace.model.arrays import Floats
from streamplace.model.expansion import expand
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import listed, quoted
from streamplace.model.paths import is_path
from streamplace.model.problem import Problem
from streamplace.model.subtasks import with_parallelism
from streamplace.model.units import Quantity, tuple_rate
from streamplace.planning.demand import unchained
from streamplace.planning.deployment import TOLERANCE
from streamplace.planning.result import HOUR, PlanHour, PlanResult, moment

TIME, TOTAL = "time", "rate"
MAX_TRACE_BYTES = 64 * 2**20
COMPACT = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")
"""Dates without dashes, which are also numbers of seconds."""
MAX_TIME = 253_402_300_799.0
"""Seconds since 1970 at the end of the year 9999, the last that has a date."""
MAX_HOURS = 2000
"""Most hours that a trace may cover."""
MIN_RATE = 1e-6
"""Least rate of a source, as a share of its peak, because the rate of a graph cannot be 0."""
HIGHEST_RATE = "max"
"""Text that asks for the highest rate that the machines carry."""
POINTS = 9
"""Number of rates of a frontier."""


@dataclass(frozen=True, slots=True, eq=False)
class RateTrace:
    """Rates of sources over time."""

    time: Floats  # [R] seconds, ascending
    sources: tuple[str, ...]  # names of the sources; ("rate",) for all of them together
    rates: Floats  # [R, S] tuples/s from each time on

    def __post_init__(self) -> None:
        if not len(self.time):
            raise SettingError("the trace has no rows; add one for each time")
        is_time = np.abs(self.time) <= MAX_TIME
        if not is_time.all():
            row = int(is_time.argmin())
            raise SettingError(
                f"time[{row}] of the trace is {self.time[row]:g}; give seconds, not beyond the "
                "year 9999"
            )
        is_after = np.diff(self.time) > 0
        if not is_after.all():
            row = int(is_after.argmin()) + 1
            raise SettingError(
                f"time[{row}] of the trace is not after time[{row - 1}]; sort the rows, and keep "
                "one for each time"
            )
        is_rate = np.isfinite(self.rates) & (self.rates >= 0)
        if not is_rate.all():
            row, column = np.argwhere(~is_rate)[0].tolist()
            value = self.rates[row, column]
            raise SettingError(
                f"rates[{row}, {column}] of the trace is {value:g}; rates must be 0 or more"
            )
        if self.time[-1] - self.time[0] > MAX_HOURS * HOUR:
            raise SettingError(f"the trace covers more than {MAX_HOURS} hours; split it")
        peaks = zip(self.sources, self.rates.max(axis=0), strict=True)
        if idle := [name for name, peak in peaks if not peak]:
            raise SettingError(f"the trace has no rate above 0 for {listed(idle)}")

    def level(self, quantile: float) -> Floats:
        """Quantile of the rates of each source over the rows, [S]; 1 gives the peaks."""
        share = quantile * (1 - TOLERANCE)  # rounding must not make 56 of 0.55 · 100 rows
        return np.asarray(np.quantile(self.rates, share, axis=0, method="inverted_cdf"))

    def hours(self) -> Iterator[tuple[float, Floats]]:
        """Yield the start of each hour in seconds, and the largest rate of each source in it.

        An hour begins with the rate of the last row before it.
        """
        first, last = np.floor(self.time[[0, -1]] / HOUR)
        edges = HOUR * np.arange(first, last + 2)
        yield from zip(edges[:-1].tolist(), self.peaks(edges), strict=True)

    def peaks(self, edges: Floats) -> Floats:
        """Largest rate of each source between each two of these times, [len(edges) - 1, S]."""
        begins = np.maximum(np.searchsorted(self.time, edges[:-1], side="right") - 1, 0)
        ends = np.maximum(np.searchsorted(self.time, edges[1:]), begins + 1)
        return np.stack([self.rates[a:b].max(axis=0) for a, b in zip(begins, ends, strict=True)])

    def graph(self, graph: StreamGraph, rates: Floats, min_share: float = MIN_RATE) -> StreamGraph:
        """Return the graph with these rates, at least ``min_share`` of the peaks of its sources."""
        operators = graph.operators
        sources = [operators.name[v] for v in graph.sources]
        if self.sources == (TOTAL,) and TOTAL not in sources:
            return graph.at_rate(max(float(rates[0]), min_share * float(self.rates.max())))
        strange = sorted(set(self.sources) ^ set(sources))
        if strange:
            raise SettingError(
                f"the trace has rates of {listed(self.sources)}, and the sources of "
                f"{quoted(graph.name)} are {listed(sources)}; give a column for each source, or "
                f"one column {TOTAL!r} for all together"
            )
        least = min_share * self.rates.max(axis=0)
        by_source = dict(zip(self.sources, np.maximum(rates, least).tolist(), strict=True))
        column = [by_source.get(name, 0.0) for name in operators.name]
        return graph.with_operators(replace(operators, rate=np.array(column, np.float64)))

    def graph_at(self, time: float, graph: StreamGraph, rates: Floats) -> StreamGraph:
        """Return the graph with the rates from a moment on; errors name the moment."""
        try:
            return self.graph(graph, rates)
        except GraphError as error:
            raise GraphError(f"the trace has impossible rates at {moment(time)}: {error}") from None


def read_trace(path: Path) -> RateTrace:
    """Read a trace from a CSV file: times, and the rate of every source from each time on."""
    return parse_trace(read_bytes(path, MAX_TRACE_BYTES), spot(path))


def parse_trace(content: bytes, where: str) -> RateTrace:
    r"""Parse a trace from the text of a CSV file; errors mention ``where``.

    Times are seconds, or dates such as 2026-03-01T07:00; rates are tuples/s, or "10 k/s".

    >>> trace = parse_trace(b"time,rate\n0,100\n3600,1 k/s", "rates.csv")
    >>> trace.sources, trace.rates.tolist(), trace.level(0.5).tolist()
    (('rate',), [[100.0], [1000.0]], [100.0])
    """
    try:
        reader = csv.reader(io.StringIO(content.decode("utf-8-sig")), strict=True)
        lines = [(reader.line_num, cells) for cells in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise FormatError(f"{where}: is not a CSV file: {error}") from None
    head = [cell.strip() for cell in lines[0][1]] if lines else []
    if len(head) < 2 or head[0] != TIME or not all(head) or len(set(head)) < len(head):
        raise FormatError(
            f"{where}: the first line must be {TIME},{TOTAL} or {TIME} and the names of the sources"
        )
    rows = [
        _numbers(cells, len(head), f"{where}:{number}")
        for number, cells in lines[1:]
        if any(cell.strip() for cell in cells)
    ]
    values = np.array(rows, np.float64).reshape(len(rows), len(head))
    with located(where):
        return RateTrace(values[:, 0], tuple(head[1:]), values[:, 1:])


def trace_of_columns(columns: Mapping[str, Sequence[Quantity]]) -> RateTrace:
    """Trace from the columns of a file by name.

    >>> trace_of_columns({"time": [0, 3600], "rate": [100, "1 k/s"]}).rates.tolist()
    [[100.0], [1000.0]]
    """
    lengths = {len(column) for column in columns.values()}
    if next(iter(columns), "") != TIME or len(columns) < 2 or len(lengths) != 1:
        raise SettingError(
            f"the first column of a trace must be {TIME!r}, and others as long must have the rate "
            f"of each source, or one {TOTAL!r}"
        )
    rows = list(zip(*columns.values(), strict=True))
    times = np.array([_time(str(row[0])) for row in rows], np.float64)
    rates = [[tuple_rate(rate) for rate in row[1:]] for row in rows]
    return RateTrace(times, tuple(columns)[1:], np.array(rates, np.float64))


def _numbers(row: Sequence[str], cells: int, where: str) -> list[float]:
    if len(row) != cells:
        raise FormatError(f"{where}: has {len(row)} cells, and the first line {cells}")
    try:
        return [_time(row[0].strip()), *(tuple_rate(cell.strip()) for cell in row[1:])]
    except (ValueError, OverflowError, UnitError) as error:
        raise FormatError(f"{where}: {error}") from None


def _time(text: str) -> float:
    """Seconds; a date counts from 1970, in UTC unless it states a time zone."""
    if COMPACT.fullmatch(text):
        raise ValueError(
            f"time {quoted(text)} may be a date or a number of seconds; write a date as "
            f"{text[:4]}-{text[4:6]}-{text[6:]}, and seconds as {text}.0"
        )
    with suppress(ValueError):
        return float(text)
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"time {quoted(text)} is neither a number of seconds nor a date such as "
            "2026-03-01T07:00"
        ) from None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def planned_for_trace(
    graph: StreamGraph,
    trace: RateTrace,
    quantile: float,
    plan_one: Callable[[StreamGraph], PlanResult],
    plan_each: Callable[[list[StreamGraph]], Iterable[PlanResult | None]],
) -> PlanResult:
    """Return the plan for a quantile of the rates of each source, with the plan of every hour.

    ``plan_each`` returns the plan of each graph, in order, or None if there is none.

    Loads grow with the rate of every source, so the plan for the peaks carries the whole trace. An
    hour with higher rates may have no plan, and an hour with unequal inputs of a join has none.
    """
    hours, level = list(trace.hours()), trace.level(quantile)
    peak = trace.graph(graph, level)
    plan = plan_one(peak)
    graphs: dict[bytes, StreamGraph] = {}
    for _, rates in hours:
        with suppress(GraphError):
            graphs[rates.tobytes()] = trace.graph(graph, rates)
    graphs.pop(level.tobytes(), None)
    alone = dict(zip(graphs, plan_each(list(graphs.values())), strict=True))
    graphs[level.tobytes()], alone[level.tobytes()] = peak, plan

    def hour_of(start: float, rates: Floats) -> PlanHour:
        key, rate = rates.tobytes(), float(rates.sum())
        is_carried, alone_plan = key in graphs and _is_carried(plan, graphs[key]), alone.get(key)
        if alone_plan is None:
            return PlanHour(start, rate, {}, None, None, is_carried)
        return PlanHour(
            start,
            rate,
            alone_plan.machines,
            alone_plan.cost,
            alone_plan.bound,
            is_carried,
            alone_plan.interval,
        )

    return replace(plan, hours=tuple(hour_of(start, rates) for start, rates in hours))


def _is_carried(plan: PlanResult, graph: StreamGraph) -> bool:
    """Whether a plan carries the rates of a graph, with its confidence if it has one.

    Unequal inputs of a subtask are not carried.
    """
    # Windows and messages grow less than the rate, so compute loads at the rate that the model must
    # carry.
    least = 1.0 if plan.errors is None else plan.errors.least
    try:
        share = share_carried(plan, graph.at_rate(graph.source_rate / least))
    except GraphError:
        return False
    return share >= 1 - TOLERANCE


def share_carried(plan: PlanResult, graph: StreamGraph) -> float:
    """Part of the rates of a graph that the placement of a plan carries, without headroom.

    Plans are made for the graph without chains.
    """
    parallelism = np.array([plan.parallelism[name] for name in graph.operators.name], np.int32)
    subtasks = expand(with_parallelism(unchained(graph), parallelism)).graph
    instance = Problem(subtasks, plan.cluster, known=plan.placement).instance
    load = bottleneck(resource_loads(instance, plan.placement.index)).load
    return 1 / load if load > 0 else inf


def trace_of(value: object) -> RateTrace:
    """Trace itself, or that of a file."""
    if isinstance(value, RateTrace):
        return value
    if is_path(value):
        return read_trace(Path(value))
    if isinstance(value, Mapping):
        return trace_of_columns(value)
    raise ValueError("it must be a RateTrace, the columns of a CSV file with rates, or its path")


def rates_of(value: Any) -> tuple[float, ...]:
    """One rate, nine rates of a range, or an infinite rate for "max".

    >>> rates_of("50 k/s"), len(rates_of("20000..80000")), rates_of("max")
    ((50000.0,), 9, (inf,))
    """
    if value == HIGHEST_RATE:
        return (inf,)
    ends = value.split("..", 1) if isinstance(value, str) else [value]
    rates = [tuple_rate(end) for end in ends if end != ""]
    if len(rates) < len(ends) or rates[0] <= 0 or (len(rates) > 1 and rates[0] >= rates[1]):
        raise ValueError(
            "it must be above 0, or a range from a lower to a higher rate, as in 20000..80000"
        )
    if len(rates) == 1:
        return (rates[0],)
    low, high = rates
    return tuple(low + (high - low) * i / (POINTS - 1) for i in range(POINTS))
