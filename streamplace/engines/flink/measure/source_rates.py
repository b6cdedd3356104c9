"""Rates that sources are offered, from their output, their backlog and back-pressure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamplace.engines.flink.measure.backlogs import is_blocked
from streamplace.engines.flink.measure.graph import LEAST_RATE
from streamplace.engines.flink.measure.profile import JobProfile
from streamplace.engines.flink.measure.sampling import Activity, pending_of, sent_by
from streamplace.engines.flink.rest.plan import FlinkTask
from streamplace.errors import SettingError
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import listed, quoted
from streamplace.model.units import LARGEST, Quantity, digits, tuple_rate

_FACTOR = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*[x×]\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class SourceRate:
    """Emitted and offered rate of a source."""

    name: str
    observed: float  # tuples/s that it emits
    # Tuples/s in the first half of the time and in the second; None if not measured.
    windows: tuple[float, float] | None
    # Records in its backlog at the end; None if its connector does not report them.
    pending: float | None = None
    growth: float = 0.0  # growth of the backlog, in records per second
    back_pressured: float = 0.0  # share of the time for which it was back-pressured
    # The same of its most back-pressured subtask, or less; 0 if unknown.
    most_back_pressured: float = 0.0
    behind: str | None = None  # why it may emit less than arrives, as `why_behind` says

    @property
    def is_held_back(self) -> bool:
        """Whether back-pressure reduces its output, or that of one of its subtasks."""
        return is_blocked(self.back_pressured, self.most_back_pressured)

    @property
    def offered(self) -> float | None:
        """Tuples/s that arrive for it; None if it is held back, and how many wait is unknown."""
        if self.pending is not None:
            return max(0.0, self.observed + self.growth)
        return None if self.is_held_back or self.behind is not None else self.observed


def emitted(source: FlinkTask, activity: Activity) -> tuple[float, float] | None:
    """Tuples/s that a source emits in both halves of the time."""
    metric = sent_by(source.operators[0])
    return activity.halves(metric if metric in activity.rates else "numRecordsOut")


def source_rates(seen: JobProfile) -> tuple[SourceRate, ...]:
    """Rates of all sources of a job."""
    return tuple(_source_rate(source, seen) for source in seen.sources)


def _source_rate(source: FlinkTask, seen: JobProfile) -> SourceRate:
    metric, activity = pending_of(source.operators[0]), seen.activity[source.id]
    return SourceRate(
        source.name,
        seen.tuples[source.id],
        emitted(source, activity),
        activity.totals.get(metric),
        activity.growth(metric) or 0.0,
        activity.back_pressured / source.parallelism,
        activity.most_back_pressured,
        seen.why_behind(source),
    )


def with_offered(graph: StreamGraph, sources: Sequence[SourceRate]) -> StreamGraph:
    """Return the graph with the offered rates of its sources, where known.

    A source that reads the rest of a backlog to which nothing is added counts as silent, unless
    nothing is offered to any source.
    """
    offered = {one.name: one.observed if one.offered is None else one.offered for one in sources}
    least = LEAST_RATE * sum(offered.values())
    if not least:
        return graph
    rates = [
        max(offered[name], least) if name in offered else rate
        for name, rate in zip(graph.operators.name, graph.operators.rate.tolist(), strict=True)
    ]
    return graph.with_operators(replace(graph.operators, rate=np.array(rates, np.float64)))


def offered_rate(rates: Sequence[SourceRate]) -> float | None:
    """Tuples/s that all sources together are offered; None if that is unknown for some."""
    offered = [source.offered for source in rates if source.offered is not None]
    return sum(offered) if len(offered) == len(rates) else None


def check_rate(rate: Quantity) -> None:
    """Raise SettingError or UnitError if a text is neither a rate nor a multiple of one."""
    if _factor(rate) is None and not 0 < tuple_rate(rate) <= LARGEST:
        raise SettingError(f"--rate is {rate}; it must be above 0, such as 50000 or 2x")


def asked_rate(rate: Quantity, sources: Sequence[SourceRate]) -> float:
    """Tuples/s of a text such as ``"2x"`` or ``"50 k/s"``.

    >>> asked_rate("2x", [SourceRate("a", 30.0, None)]), asked_rate("1 k/s", [])
    (60.0, 1000.0)
    """
    factor = _factor(rate)
    if factor is None:
        return tuple_rate(rate)
    offered = offered_rate(sources)
    if offered is None:
        held = [source.name for source in sources if source.offered is None]
        raise SettingError(
            f"{listed(held)} may be offered more than is emitted, because of back-pressure or "
            "missing CPU, and no pending records are reported, so the rate that "
            f"--rate {rate} multiplies is unknown; give --rate in tuples/s"
        )
    if not 0 < factor * offered <= LARGEST:
        raise SettingError(
            f"--rate {rate} is a multiple of {digits(offered)} tuples/s, which the sources are "
            f"offered now; the result must be above 0 and at most {LARGEST:g}"
        )
    return factor * offered


def _factor(rate: Quantity) -> float | None:
    """Number before an x; None if there is no x."""
    match = _FACTOR.fullmatch(rate) if isinstance(rate, str) else None
    if match is None:
        return None
    factor = float(match[1])
    if not 0 < factor <= LARGEST:
        raise SettingError(f"--rate is {quoted(rate)}; the factor must be above 0")
    return factor
