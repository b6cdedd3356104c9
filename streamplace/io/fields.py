"""Types of the fields of documents, shared by native and foreign formats."""

from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, FailFast, Field

STRICT = ConfigDict(extra="forbid", strict=True)
_T = TypeVar("_T")
ListOf = Annotated[list[_T], FailFast()]  # stops at the first of a million errors
TableOf = Annotated[dict[str, _T], FailFast()]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Quantity = Annotated[float, Field(ge=0, allow_inf_nan=False)] | str


def doc(text: str) -> Any:
    """Describe a field in the published schema."""
    return Field(description=text)


def plain(number: float) -> int | float:
    """Convert whole numbers to integers, which halves a file."""
    value = float(number)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
