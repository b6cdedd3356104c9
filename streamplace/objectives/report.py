"""Reports: what a person is told, as texts and tables that know nothing of a terminal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

MOST_ROWS, MOST_NAMES = 12, 12


@dataclass(frozen=True, slots=True)
class Bar:
    """A load drawn as a bar; 1 is full."""

    load: float


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table."""

    head: tuple[str, ...]
    rows: tuple[tuple[str | Bar, ...], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Sentences and tables, in the order in which they are told.

    Attributes
    ----------
    title
        What is said first, beside the name of the graph.
    """

    parts: tuple[str | Sheet, ...]
    title: str = ""


def percent(share: float) -> str:
    """Share as a percentage.

    >>> percent(0.97312), percent(1.184)
    ('97.3 %', '118.4 %')
    """
    return f"{100 * share:.1f} %"


def quantity(value: float, unit: str) -> str:
    """Number with its unit, seconds in the unit that reads best.

    >>> quantity(0.0741, "s"), quantity(4200, "s"), quantity(3, "devices"), quantity(1e-7, "J")
    ('74.1 ms', '4200 s', '3 devices', '1e-07 J')
    """
    if unit == "s" and 0 < abs(value) < 1:
        factor, unit = (1e3, "ms") if abs(value) >= 1e-3 else (1e6, "µs")
        value *= factor
    return f"{value:.4g} {unit}"


def some(
    things: Sequence[T],
    tell: Callable[[T], str] = str,
    separator: str = " ",
    most: int = MOST_NAMES,
) -> str:
    """The first of many things, and how many more there are.

    >>> some(["a", "b", "c"], most=2)
    'a b and 1 more'
    """
    rest = len(things) - most
    text = separator.join(map(tell, things[:most]))
    return text + (f" and {rest} more" if rest > 0 else "")
