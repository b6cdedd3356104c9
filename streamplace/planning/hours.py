"""Hours of a trace: the plan that each hour alone would need, beside the plan for all hours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from streamplace.io.fields import plain
from streamplace.model.intervals import RateInterval
from streamplace.model.messages import counted
from streamplace.model.report import Detail, Part, Sheet
from streamplace.model.units import digits, floor_digits

HOUR = 3600
DAY = 24 * HOUR
MOST_ROWS = 6
"""Hours that a terminal shows without ``-v``."""
EARLIEST_DATE = 1e8
"""Seconds from which times are dates, since 1970."""


@dataclass(frozen=True, slots=True)
class PlanHour:
    """The plan that an hour of a trace would need alone.

    Attributes
    ----------
    start
        Seconds at which the hour begins.
    rate
        Tuples/s of all sources together, each at its largest rate of the hour.
    machines, cost, bound
        Machines, cost and bound of the plan for this hour alone; no machines, None and None if no
        such plan was found.
    interval
        What the plan for this hour alone carries, for a measured graph; None if it is unknown.
    carried
        Whether the plan for the trace carries the hour, with its confidence if it has one.
    """

    start: float
    rate: float
    machines: Mapping[str, int]
    cost: float | None
    bound: Fraction | None
    carried: bool
    interval: RateInterval | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the hour as a JSON document."""
        return {
            "start": plain(self.start),
            "rate": plain(self.rate),
            "machines": dict(self.machines),
            "cost": None if self.cost is None else plain(self.cost),
            "bound": None if self.bound is None else float(self.bound),
            "carried": self.carried,
            **({} if self.interval is None else {"interval": self.interval._asdict()}),
        }


def hour_parts(hours: Sequence[PlanHour], cost: float, priced: bool) -> list[Part]:
    """Table of the hours, and their total cost beside a plan of this cost for all hours."""
    is_measured = any(hour.interval is not None for hour in hours)
    rows = tuple(
        (
            clock(hour.start),
            f"{hour.rate:g}",
            "–" if hour.cost is None else f"{hour.cost:g}",
            "–" if hour.bound is None else floor_digits(hour.bound),
            _machines(hour),
            *((ends_in_words(hour.interval),) if is_measured else ()),
        )
        for hour in hours
    )
    alone_head = "cost alone" if priced else "machines alone"
    carries = ("carries, tuples/s",) if is_measured else ()
    head = ("hour", "tuples/s", alone_head, "bound", "machines", *carries)
    alone = sum(hour.cost for hour in hours if hour.cost is not None)
    unit = "costs" if priced else "takes machine hours:"
    words = (
        f"In {counted(len(hours), 'hour')}, the plan {unit} {cost * len(hours):g}. A plan for each "
        f"hour alone would make {alone:g}, without what changing costs."
    )
    unknown = sum(hour.cost is None for hour in hours)
    if unknown:
        words += f" That is without {counted(unknown, 'hour')} for which no plan was found."
    missed = sum(not hour.carried for hour in hours)
    if missed:
        words += f" The plan does not carry the largest rates of {counted(missed, 'hour')}."
    table = Sheet(head, rows)
    return [table if len(rows) <= MOST_ROWS else Detail(table), words]


def _machines(hour: PlanHour) -> str:
    if hour.cost is None:
        return "no plan was found"
    return machines_in_words(hour.machines) if hour.carried else "more than the plan carries"


def ends_in_words(interval: RateInterval | None) -> str:
    """Ends of an interval, in words; a dash if it is unknown."""
    return "–" if interval is None else f"{digits(interval.low)} to {digits(interval.high)}"


def machines_in_words(machines: Mapping[str, int]) -> str:
    """Number of machines of each type, in words.

    >>> machines_in_words({"small": 2, "large": 1})
    '2 small, 1 large'
    """
    return ", ".join(f"{count} {name}" for name, count in machines.items())


def clock(seconds: float) -> str:
    """Start of an hour in words: in the time of the trace, or as a date.

    >>> clock(7200), clock(90000), clock(1772323200)
    ('2 h', '1 d 1 h', '2026-03-01 00:00')
    """
    if seconds >= EARLIEST_DATE:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
    days, rest = divmod(int(seconds), DAY)
    return f"{days} d {rest // HOUR} h" if days else f"{rest // HOUR} h"


def moment(seconds: float) -> str:
    """Time in words, to the minute: in the time of the trace, or a date.

    >>> moment(5700), moment(90000), moment(1772323260)
    ('1:35', '1 d 1:00', '2026-03-01 00:01')
    """
    if seconds >= EARLIEST_DATE:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
    days, rest = divmod(int(seconds), DAY)
    text = f"{rest // HOUR}:{rest % HOUR // 60:02d}"
    return f"{days} d {text}" if days else text
