"""Types of settings, and what converts texts, numbers and objects to them.

Libraries are imported where a value is converted, since the help needs none.
"""

import sys
from numbers import Real
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Interval
from pydantic import AfterValidator, BeforeValidator, Field

from streamplace.errors import SettingError
from streamplace.model.message_text import quoted
from streamplace.model.paths import path_of, wrong

if TYPE_CHECKING:
    from streamplace.model.cluster import Cluster as Cluster
    from streamplace.model.constraints import Constraints as Constraints
    from streamplace.model.placement import Placement as Placement
    from streamplace.model.relocation import Relocation as Relocation
    from streamplace.objectives.registry import Objective as Objective
    from streamplace.placers.registry import Budget as Budget
    from streamplace.placers.registry import Placer as Placer
else:  # not imported for the help; what converts a value checks its type
    Budget = Cluster = Constraints = Objective = Placement = Placer = Relocation = Any

BudgetLike = Budget | float | str
"""A budget, seconds, or a text such as ``"50 ms"``."""


def _given(name: str) -> BeforeValidator:
    """Conversion by a function of `streamplace.io.given`, which is loaded when there is a value."""

    def converted(value: Any) -> Any:
        return value if value is None else resolve_name(f"streamplace.io.given:{name}")(value)

    return BeforeValidator(converted)


def budget_of(budget: BudgetLike | None) -> "Budget | None":
    """Convert a description to a budget; None for None.

    >>> budget_of("50 ms"), budget_of(2)
    (Budget(seconds=0.05), Budget(seconds=2.0))
    """
    from streamplace.placers.registry import Budget

    if budget is None or isinstance(budget, Budget):
        return budget
    if isinstance(budget, str | Real) and not isinstance(budget, bool):
        return Budget(_seconds(budget))
    raise wrong("budget", budget, "a number of seconds, a text such as '50 ms', or a Budget")


def checked_objective(objective: "str | Objective") -> "str | Objective":
    """Objective or its name; raise SettingError for anything else."""
    from streamplace.objectives.registry import Objective

    if isinstance(objective, str | Objective):
        return objective
    raise wrong("objective", objective, "a name, as in 'makespan:network=link', or Objective")


def checked_relocation(relocation: "Relocation | None") -> "Relocation | None":
    """Relocation or None; raise SettingError for anything else."""
    if relocation is None:
        return None
    from streamplace.model.relocation import Relocation

    if isinstance(relocation, Relocation):
        return relocation
    raise wrong("relocation", relocation, "a Relocation, as in Relocation(placement, 1000)")


def _placer(placer: "str | Placer") -> "str | Placer":
    """Placer or its name; raise SettingError for anything else."""
    from streamplace.placers.named import named_placer
    from streamplace.placers.registry import Placer

    if isinstance(placer, str):
        named_placer(placer)
    elif not isinstance(placer, Placer):
        raise wrong("placer", placer, "a name, as in 'metis:k=3', or a Placer")
    return placer


def share_of(value: Any) -> float:
    """Parse a share.

    >>> share_of("20%"), share_of(0.2)
    (0.2, 0.2)
    """
    try:
        text = str(value).strip()
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise SettingError(
            f"{quoted(value)} is not a share; write a number or a percentage: 0.2 or 20%"
        ) from None


def _number(value: Any) -> Any:
    """Refuse a truth value, which pydantic takes for 0 or 1."""
    if isinstance(value, bool):
        raise ValueError("it must be a number")
    return value


def in_tuple(value: Any) -> Any:
    """Several values, of which one may stand alone."""
    return (value,) if isinstance(value, str | Real) else value


def _seconds(value: Any) -> float:
    from streamplace.model.units import seconds

    return seconds(value)


def _rate(value: Any) -> float:
    from streamplace.model.units import total_rate

    return total_rate(value)


def _without_repeats(values: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(dict.fromkeys(values))


def _placers(names: tuple[str, ...]) -> tuple[str, ...]:
    from streamplace.placers.named import placer_names

    return placer_names(names[0].split(",") if len(names) == 1 else names)


def _placement(value: Any) -> "Placement":
    from streamplace.io.placements import read_placement

    return read_placement(path_of("placement", value))


Whole = Annotated[int, BeforeValidator(_number), Interval(ge=0)]
Count = Annotated[int, BeforeValidator(_number), Interval(ge=1, le=sys.maxsize)]
Positive = Annotated[float, BeforeValidator(_number), Interval(gt=0)]
QuantityText = Annotated[str, Field(coerce_numbers_to_str=True)]
"""Text as it would be typed, so that a number needs its unit in a file as well."""
Share = Annotated[float, BeforeValidator(share_of)]
Seconds = Annotated[float, BeforeValidator(_seconds)]
Rate = Annotated[float, BeforeValidator(_rate)]
Rates = Annotated[tuple[Rate, ...], BeforeValidator(in_tuple), AfterValidator(_without_repeats)]
Texts = Annotated[tuple[str, ...], BeforeValidator(in_tuple)]
ObjectiveName = Annotated[str | Objective, BeforeValidator(checked_objective)]
PlacerName = Annotated[str | Placer, BeforeValidator(_placer)]
PlacerNames = Annotated[Texts, AfterValidator(_placers)]
SearchBudget = Annotated[Budget | None, BeforeValidator(budget_of)]
ClusterFile = Annotated[Cluster | None, _given("cluster_of")]
ConstraintsFile = Annotated[Constraints | None, _given("constraints_of")]
PlacementFile = Annotated[Placement, BeforeValidator(_placement)]
Moved = Annotated[Relocation | None, BeforeValidator(checked_relocation)]
