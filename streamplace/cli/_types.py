"""Types of options: times, shares, and names that the help lists."""

from collections.abc import Callable, Iterable

import click

from streamplace.model.messages import quoted


class Share(click.ParamType):  # type: ignore[type-arg]  # generic in some versions of click only
    """A share of 1, as a number or a percentage."""

    name = "share"

    def __init__(self, limits: click.FloatRange) -> None:
        self._limits = limits

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """A number or a percentage."""
        return "SHARE"

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse a share."""
        text = str(value).strip()
        number = text.removesuffix("%").strip()
        try:
            share = float(number) / (100 if text.endswith("%") else 1)
        except ValueError:
            self.fail(f"{quoted(value)} is not a share; write a number or a percentage: 0.2 or 20%")
        return float(self._limits.convert(share, param, ctx))


class Time(click.ParamType):  # type: ignore[type-arg]  # generic in some versions of click only
    """Seconds, as a number or with a unit."""

    name = "time"

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse a time to seconds."""
        return _seconds(value) if isinstance(value, str) else value


TIME = Time()


class OneOf(click.ParamType):  # type: ignore[type-arg]  # generic in some versions of click only
    """A name, with all names in the help; it is checked where it is used."""

    def __init__(self, name: str, names: Callable[[], Iterable[str]]) -> None:
        self.name = name
        self._names = names

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """All names, loaded when the help is shown."""
        return "|".join(self._names())


def _seconds(text: str) -> float:
    """Parse a time with or without a unit to seconds."""
    from streamplace.model.units import seconds

    try:
        return float(text)
    except ValueError:
        return seconds(text)
