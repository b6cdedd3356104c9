"""Types of settings, and conversions of texts, numbers and objects to them.

Libraries are imported by the conversions, as the help needs none.
"""

import sys
from numbers import Real
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Interval
from pydantic import AfterValidator, BeforeValidator, Field

from streamplace.errors import SettingError
from streamplace.model.message_text import quoted
from streamplace.model.paths import wrong

if TYPE_CHECKING:
    from streamplace.model.cluster import Cluster as Cluster
    from streamplace.model.constraints import Constraints as Constraints
    from streamplace.model.placement import Placement as Placement
    from streamplace.model.relocation import Relocation as Relocation
    from streamplace.objectives.registry import Objective as Objective
    from streamplace.placers.registry import Budget as Budget
    from streamplace.placers.registry import Placer as Placer
else:  # not imported for the help; conversions check the types
    Budget = Cluster = Constraints = Objective = Placement = Placer = Relocation = Any

BudgetLike = Budget | float | str
"""A budget, seconds, or a text such as ``"50 ms"``."""


def converted_by(function: str, *, is_optional: bool = True) -> BeforeValidator:
    """Conversion by a function ``module:name``, which is loaded when it is needed."""

    def converted(value: Any) -> Any:
        return value if is_optional and value is None else resolve_name(function)(value)

    return BeforeValidator(converted)


def checked_objective(objective: "str | Objective") -> "str | Objective":
    """Objective or its name; raise SettingError for anything else."""
    from streamplace.objectives.registry import Objective

    if isinstance(objective, str | Objective):
        return objective
    raise wrong("objective", objective, "a name, as in 'makespan:network=link', or Objective")


def checked_relocation(relocation: "Relocation | None") -> "Relocation | None":
    """Relocation or None; raise SettingError for anything else."""
    if relocation is not None:
        from streamplace.model.relocation import Relocation

        if not isinstance(relocation, Relocation):
            raise wrong("relocation", relocation, "a Relocation, as in Relocation(placement, 1000)")
    return relocation


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
    """Refuse a truth value, which pydantic would convert to 0 or 1."""
    if isinstance(value, bool):
        raise ValueError("it must be a number")
    return value


def in_tuple(value: Any) -> Any:
    """Put a single text or number into a tuple."""
    return (value,) if isinstance(value, str | Real) else value


def _without_repeats(values: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(dict.fromkeys(values))


def _several_placers(names: tuple[str, ...]) -> tuple[str, ...]:
    from streamplace.placers.named import placer_names

    return placer_names(names[0].split(",") if len(names) == 1 else names)


Whole = Annotated[int, BeforeValidator(_number), Interval(ge=0)]
Count = Annotated[int, BeforeValidator(_number), Interval(ge=1, le=sys.maxsize)]
Positive = Annotated[float, BeforeValidator(_number), Interval(gt=0)]
QuantityText = Annotated[str, Field(coerce_numbers_to_str=True)]
"""Text as on a command line: a number in a file needs the same unit."""
Share = Annotated[float, BeforeValidator(share_of)]
Seconds = Annotated[float, converted_by("streamplace.model.units:seconds", is_optional=False)]
Rate = Annotated[float, converted_by("streamplace.model.units:total_rate", is_optional=False)]
Rates = Annotated[tuple[Rate, ...], BeforeValidator(in_tuple), AfterValidator(_without_repeats)]
Texts = Annotated[tuple[str, ...], BeforeValidator(in_tuple)]
ObjectiveName = Annotated[str | Objective, BeforeValidator(checked_objective)]
PlacerName = Annotated[str | Placer, converted_by("streamplace.placers.named:placer_of")]
PlacerNames = Annotated[Texts, AfterValidator(_several_placers)]
SearchBudget = Annotated[Budget | None, converted_by("streamplace.placers.registry:budget_of")]
ClusterFile = Annotated[Cluster | None, converted_by("streamplace.io.given:cluster_of")]
ConstraintsFile = Annotated[Constraints | None, converted_by("streamplace.io.given:constraints_of")]
PlacementFile = Annotated[Placement, converted_by("streamplace.io.placements:read_placement")]
Moved = Annotated[Relocation | None, BeforeValidator(checked_relocation)]
