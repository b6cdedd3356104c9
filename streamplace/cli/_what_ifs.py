"""``--scale`` and ``--set``: what-ifs without an edited file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from streamplace.cli._options import with_options
from streamplace.errors import SettingError
from streamplace.model.messages import quoted

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The changes of a graph that the options describe, as they were typed."""

    scale: tuple[str, ...] = ()
    change: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.scale or self.change)

    @property
    def options(self) -> Mapping[str, tuple[str, ...]]:
        """The options by name."""
        return {"scale": self.scale, "set": self.change}

    def arguments(self) -> dict[str, Any]:
        """Arguments of `streamplace.model.what_if.what_if`."""
        factors = {}
        for name, text in _pairs("--scale", self.scale, "enrich=2").items():
            try:
                factors[name] = float(text)
            except ValueError:
                raise SettingError(
                    f"--scale {name}={text}: {quoted(text)} is not a number; write {name}=2"
                ) from None
        return {"scale": factors, "change": _pairs("--set", self.change, "kafka.rate=100k")}


def _pairs(option: str, texts: tuple[str, ...], example: str) -> dict[str, str]:
    """Values by name; a name may contain an equals sign."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not (name and equals and value):
            raise SettingError(f"{option} is {quoted(text)}; write it as in {option} {example}")
        if name in pairs:
            raise SettingError(f"{option} is given twice for {quoted(name)}; drop one")
        pairs[name] = value
    return pairs


def what_ifs(function: F) -> F:
    """``--scale`` and ``--set``, passed on as one `WhatIf`."""

    def wrapper(*args: Any, scale: tuple[str, ...], change: tuple[str, ...], **rest: Any) -> Any:
        return function(*args, what_if=WhatIf(scale, change), **rest)

    return with_options(
        wrapper,
        function,
        click.option(
            "--set",
            "change",
            multiple=True,
            metavar="OPERATOR.FIELD=VALUE",
            help="What if: set a number of the graph, as in kafka.rate=100k, join.parallelism=4 or "
            "'parse->sink.selectivity=0.5'. May be repeated.",
        ),
        click.option(
            "--scale",
            multiple=True,
            metavar="OPERATOR=FACTOR",
            help="What if: multiply the CPU per tuple of an operator, as in enrich=2. May be "
            "repeated.",
        ),
    )
