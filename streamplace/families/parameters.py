"""Parameters of a family: a frozen dataclass whose fields know their help text and range."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from types import UnionType
from typing import Any, Protocol, get_args, get_type_hints

from streamplace.errors import SettingError
from streamplace.model.message_text import quoted

_MEANING = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


class Parameters(Protocol):
    """Parameters of any family."""

    @property
    def n_graphs(self) -> int:
        """Number of graphs that they make."""
        ...


@dataclass(frozen=True, slots=True)
class Option:
    """One parameter, for a command line or a form."""

    name: str
    type: type  # int, float, str or bool
    default: int | float | str | bool | None  # None if the family computes the value
    help: str


def parameter(
    default: int | float | str | bool | None,
    help: str,
    *,
    least: float | None = None,
    most: float | None = None,
) -> Any:
    """Field of a parameter dataclass, with its help text and the range that `check` enforces."""
    return field(default=default, metadata={"help": help, "least": least, "most": most})


def options(parameters: type) -> tuple[Option, ...]:
    """Parameters of a family, in order.

    >>> from streamplace.families.registry import FAMILIES
    >>> [option.name for option in options(FAMILIES["branched"].parameters)][:3]
    ['branches', 'depth', 'devices']
    """
    hints = get_type_hints(parameters)
    return tuple(
        Option(f.name, _plain_type(hints[f.name]), f.default, f.metadata["help"])
        for f in fields(parameters)
        if f.default is not MISSING
    )


def check(parameters: Any) -> None:
    """Raise a SettingError for the first field of the wrong type or outside its range.

    Whole numbers are converted to floats; everything else must have the declared type.
    """
    hints = get_type_hints(type(parameters))
    for f in fields(parameters):
        value = getattr(parameters, f.name)
        if value is None and type(None) in get_args(hints[f.name]):
            continue
        kind = _plain_type(hints[f.name])
        if kind is float and type(value) is int:
            object.__setattr__(parameters, f.name, float(value))
        elif type(value) is not kind:
            raise SettingError(f"{f.name} is {quoted(value)}; it must be {_MEANING[kind]}")
        least, most = f.metadata.get("least"), f.metadata.get("most")
        if least is not None and most is not None and not least <= value <= most:
            raise SettingError(
                f"{f.name} is {quoted(value)}; it must be between {least:g} and {most:g}"
            )


def parameters_of(kind: type, values: Mapping[str, Any]) -> Any:
    """Parameters from values by name; missing ones have their defaults.

    >>> from streamplace.families.branched import Branched
    >>> parameters_of(Branched, {"branches": 2, "depth": 3, "devices": 2, "copies": 10}).n_graphs
    10
    """
    names = [f.name for f in fields(kind)]
    for name in values:
        if name not in names:
            raise SettingError(f"there is no parameter {quoted(name)}. Known: {', '.join(names)}")
    return kind(**values)


def _plain_type(hint: Any) -> type:
    """Type of a field without its ``| None``."""
    if isinstance(hint, UnionType):
        return next(kind for kind in get_args(hint) if kind is not type(None))  # type: ignore[no-any-return]
    return hint  # type: ignore[no-any-return]
