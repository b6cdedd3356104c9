"""Kinds of values: what converts them, without libraries before a value is converted."""

from collections.abc import Callable, Iterable
from importlib import import_module
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamplace.errors import SettingError
from streamplace.model.messages import quoted
from streamplace.settings.base import FieldKind as FieldKind

if TYPE_CHECKING:
    from streamplace.model.cluster import Cluster as Cluster
    from streamplace.model.constraints import Constraints as Constraints
    from streamplace.model.placement import Placement as Placement
    from streamplace.model.relocation import Relocation as Relocation
    from streamplace.objectives.registry import Objective as Objective
    from streamplace.placers.registry import Budget as Budget
    from streamplace.placers.registry import Placer as Placer
else:  # annotations of fields, which are checked by their kinds
    Budget = Cluster = Constraints = Objective = Placement = Placer = Relocation = object


def whole(least: int = 0) -> FieldKind:
    """Whole numbers from a least one on."""

    def convert(value: Any) -> int:
        if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least:
            return int(value)
        if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
            return convert(int(value))
        raise ValueError(f"a whole number, {least} or more")

    return FieldKind(convert, "N")


def number(low: float, high: float, wanted: str, metavar: str = "NUMBER") -> FieldKind:
    """Numbers above a low one, up to a high one, also as texts."""

    def convert(value: Any) -> float:
        try:
            plain = float(value) if isinstance(value, str | Real) else low
        except ValueError:
            plain = low
        if low < plain <= high and not isinstance(value, bool):
            return plain
        raise ValueError(wanted)

    return FieldKind(convert, metavar)


def share(*, zero: bool, one: bool) -> FieldKind:
    """Shares of 1, as numbers or percentages, with or without 0 and 1."""

    def convert(value: Any) -> float:
        found = share_of(value)
        if (0 < found < 1) or (zero and found == 0) or (one and found == 1):
            return found
        ends = f"{'0 or more' if zero else 'above 0'} and {'at most 1' if one else 'below 1'}"
        raise ValueError(f"a share, {ends}")

    return FieldKind(convert, "SHARE")


def share_of(value: Any) -> float:
    """Parse a share.

    >>> share_of("20%"), share_of(0.2)
    (0.2, 0.2)
    """
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    text = str(value).strip()
    number = text.removesuffix("%").strip()
    try:
        return float(number) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise SettingError(
            f"{quoted(value)} is not a share; write a number or a percentage: 0.2 or 20%"
        ) from None


def text(metavar: str | Callable[[], str] = "TEXT") -> FieldKind:
    """Texts."""

    def convert(value: Any) -> str:
        if isinstance(value, str):
            return value
        raise ValueError("a text")

    return FieldKind(convert, metavar)


def names(registry: Callable[[], Iterable[str]]) -> Callable[[], str]:
    """Names of a registry in the help, which loads them."""
    return lambda: "|".join(registry())


def texts(metavar: str = "TEXT") -> FieldKind:
    """One text or several."""

    def convert(value: Any) -> tuple[str, ...]:
        several = (value,) if isinstance(value, str) else value
        column = tuple(several) if isinstance(several, Iterable) else (None,)
        if all(isinstance(one, str) for one in column):
            return column
        raise ValueError("a text or several texts")

    return FieldKind(convert, metavar, "several")


def _flag(value: Any) -> bool:
    if value in (True, False):
        return bool(value)
    raise ValueError("true or false")


def _path(value: Any) -> Path:
    if isinstance(value, str | PathLike):
        return Path(value)
    raise ValueError("a path")


def _quantity(value: Any) -> str:
    """Quantity as it would be typed, so that it needs its unit in a file as well."""
    if isinstance(value, str | Real) and not isinstance(value, bool):
        return str(value)
    raise ValueError("a number with a unit")


def imported(path: str) -> Callable[[Any], Any]:
    """Function of streamplace, by its module and name; loaded when a value is converted."""
    module, _, name = path.rpartition(".")
    return lambda value: getattr(import_module(f"streamplace.{module}"), name)(value)


_rate = imported("model.units.total_rate")


def _rates(value: Any) -> tuple[float, ...]:
    if isinstance(value, str | Real):
        return (_rate(value),)
    if isinstance(value, Iterable):
        return tuple(dict.fromkeys(map(_rate, value)))
    raise ValueError("a number of tuples/s, a text such as '10 k/s', or several")


def _placer(value: Any) -> "str | Placer":
    from streamplace.settings.convert import placer_of

    placer_of(value)
    return value  # type: ignore[no-any-return]


def _placers(value: Any) -> tuple[str, ...]:
    from streamplace.placers.named import placer_names

    names = TEXTS.convert(value)
    return placer_names(names[0].split(",") if len(names) == 1 else names)


def _placement(value: Any) -> "Placement":
    from streamplace.io.placements import read_placement

    return read_placement(_path(value))


def _objectives() -> Iterable[str]:
    from streamplace.objectives.registry import OBJECTIVES

    return OBJECTIVES


FLAG = FieldKind(_flag, "", "flag")
TEXT, TEXTS, COUNT = text(), texts(), whole(1)
PATH = FieldKind(_path, "FILE", "file")
RATE, RATES, TIME = (
    FieldKind(_rate, "RATE"),
    FieldKind(_rates, "RATE", "several"),
    FieldKind(imported("model.units.seconds"), "TIME"),
)
BUDGET = FieldKind(imported("settings.convert.budget_of"), "TIME")
CLUSTER = FieldKind(imported("settings.convert.cluster_of"), "FILE", "file")
CONSTRAINTS = FieldKind(imported("settings.convert.constraints_of"), "FILE", "file")
PRESENT = FieldKind(_placement, "FILE", "file")
QUANTITY = FieldKind(_quantity, "QUANTITY")
OBJECTIVE = FieldKind(imported("settings.convert.checked_objective"), names(_objectives))
PLACER = FieldKind(_placer, "NAME")
PLACERS = FieldKind(_placers, "NAMES")
RELOCATION = FieldKind(imported("settings.convert.checked_relocation"))
