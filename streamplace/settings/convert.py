"""Kinds of settings: what converts them, and how the help calls them.

Libraries are imported where a value is converted, since the help needs none.
"""

from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from streamplace.errors import SettingError
from streamplace.model.message_text import quoted
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

FilePath = str | PathLike[str]
ClusterLike = Cluster | int | Mapping[str, Any] | FilePath
"""A cluster, a number of equal devices, the tables of a cluster file, or its path."""
ConstraintsLike = Constraints | Mapping[str, Any] | FilePath
"""Constraints, the tables of a constraints file, or its path."""
BudgetLike = Budget | float | str
"""A budget, seconds, or a text such as ``"50 ms"``."""


def cluster_of(cluster: ClusterLike | None) -> "Cluster | None":
    """Convert a description to a cluster; None for None.

    >>> cluster_of({"devices": [{"name": "a"}, {"name": "gpu", "count": 2}]}).devices.name
    ('a', 'gpu0', 'gpu1')
    """
    from streamplace.io.clusters import cluster_from_tables, read_cluster
    from streamplace.io.files import located
    from streamplace.io.parsing import parse_tables
    from streamplace.model.cluster import Cluster

    if cluster is None or isinstance(cluster, Cluster):
        return cluster
    if isinstance(cluster, Integral) and not isinstance(cluster, bool):
        return Cluster.uniform(int(cluster))
    if isinstance(cluster, Mapping):
        tables = parse_tables("cluster", dict(cluster), "cluster")
        with located("cluster"):
            return cluster_from_tables(tables)
    if is_path(cluster):
        return read_cluster(Path(cluster))
    raise wrong(
        "cluster", cluster,
        "a Cluster, a number of equal devices, the tables of a cluster file, or its path",
    )  # fmt: skip


def constraints_of(constraints: ConstraintsLike | None) -> "Constraints | None":
    """Convert a description to constraints; None for None."""
    from streamplace.io.constraints import read_constraints
    from streamplace.io.parsing import parse_tables
    from streamplace.model.constraints import Constraints

    if constraints is None or isinstance(constraints, Constraints):
        return constraints
    if isinstance(constraints, Mapping):
        tables = {
            name: _plain_groups(table) if name in ("colocate", "exlocate", "allowed") else table
            for name, table in constraints.items()
        }
        return Constraints(**parse_tables("constraints", tables, "constraints"))
    if is_path(constraints):
        return read_constraints(Path(constraints))
    raise wrong(
        "constraints", constraints,
        "Constraints, a mapping with pin, colocate, exlocate or allowed, or the path of a file",
    )  # fmt: skip


def _plain_groups(table: Any) -> Any:
    """Convert sets and tuples of names to lists, as in a file."""
    if isinstance(table, Mapping):
        return {name: _plain_groups(group) for name, group in table.items()}
    if isinstance(table, set | frozenset):
        return sorted(table, key=str)
    return [_plain_groups(group) for group in table] if isinstance(table, list | tuple) else table


def budget_of(budget: BudgetLike | None) -> "Budget | None":
    """Convert a description to a budget; None for None.

    >>> budget_of("50 ms"), budget_of(2)
    (Budget(seconds=0.05), Budget(seconds=2.0))
    """
    from streamplace.placers.registry import Budget

    if budget is None or isinstance(budget, Budget):
        return budget
    if isinstance(budget, str):
        return Budget(_seconds(budget))
    if isinstance(budget, Real) and not isinstance(budget, bool):
        return Budget(float(budget))
    raise wrong("budget", budget, "a number of seconds, a text such as '50 ms', or a Budget")


def checked_objective(objective: "str | Objective") -> "str | Objective":
    """Objective or its name; raise SettingError for anything else."""
    from streamplace.objectives.registry import Objective

    if isinstance(objective, str | Objective):
        return objective
    raise wrong("objective", objective, "a name, as in 'makespan:network=link', or Objective")


def checked_relocation(relocation: "Relocation | None") -> "Relocation | None":
    """Relocation or None; raise SettingError for anything else."""
    from streamplace.model.relocation import Relocation

    if relocation is None or isinstance(relocation, Relocation):
        return relocation
    raise wrong("relocation", relocation, "a Relocation, as in Relocation(placement, 1000)")


def placer_of(placer: "str | Placer", weights: FilePath | None = None) -> "Placer":
    """Placer itself or by name, with weights if there are any."""
    from streamplace.placers.named import named_placer, with_weights
    from streamplace.placers.registry import Placer

    if isinstance(placer, str):
        chosen = named_placer(placer)
    elif isinstance(placer, Placer):
        chosen = placer
    else:
        raise wrong("placer", placer, "a name, as in 'metis:k=3', or a Placer")
    if weights is None:
        return chosen
    if not is_path(weights):
        raise wrong("weights", weights, "the path of a weights file")
    return with_weights(chosen, Path(weights))


def path_of(argument: str, path: FilePath) -> Path:
    """Path of a file or folder."""
    if is_path(path):
        return Path(path)
    raise wrong(argument, path, "a path")


def is_path(value: object) -> TypeGuard[FilePath]:
    """Whether a value is a path."""
    return isinstance(value, str | PathLike)


def wrong(argument: str, value: object, wanted: str) -> SettingError:
    """Build the error for an argument of a wrong type."""
    return SettingError(f"{argument} is {quoted(value)}; it must be {wanted}")


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
    """Any text; ``metavar`` is its name in the help."""

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
    if is_path(value):
        return Path(value)
    raise ValueError("a path")


def _quantity(value: Any) -> str:
    """Quantity as it would be typed, so that it needs its unit in a file as well."""
    if isinstance(value, str | Real) and not isinstance(value, bool):
        return str(value)
    raise ValueError("a number with a unit")


def _seconds(value: Any) -> float:
    from streamplace.model.units import seconds

    return seconds(value)


def _rate(value: Any) -> float:
    from streamplace.model.units import total_rate

    return total_rate(value)


def _rates(value: Any) -> tuple[float, ...]:
    if isinstance(value, str | Real):
        return (_rate(value),)
    if isinstance(value, Iterable):
        return tuple(dict.fromkeys(map(_rate, value)))
    raise ValueError("a number of tuples/s, a text such as '10 k/s', or several")


def _placer(value: Any) -> "str | Placer":
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
RATE, RATES = FieldKind(_rate, "RATE"), FieldKind(_rates, "RATE", "several")
TIME = FieldKind(_seconds, "TIME")
BUDGET = FieldKind(budget_of, "TIME")
CLUSTER = FieldKind(cluster_of, "FILE", "file")
CONSTRAINTS = FieldKind(constraints_of, "FILE", "file")
PRESENT = FieldKind(_placement, "FILE", "file")
QUANTITY = FieldKind(_quantity, "QUANTITY")
OBJECTIVE = FieldKind(checked_objective, names(_objectives))
PLACER = FieldKind(_placer, "NAME")
PLACERS = FieldKind(_placers, "NAMES")
RELOCATION = FieldKind(checked_relocation)
