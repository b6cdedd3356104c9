"""Common parts of immutable objects: cached values, equality, ``repr``, and display."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from streamplace.errors import SettingError
from streamplace.model.message_text import shown

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="Caching")
NOUNS = "streamplace.display.sheets"
TEXT, HTML = "streamplace.display.console", "streamplace.display.html"
PICTURES = "streamplace.drawing.graphs"
"""Modules that show and draw objects. They import this one, so they are loaded by name."""
MAX_WIDTH = 120
"""Most characters of a ``repr``."""


class Caching:
    """Base of immutable objects that cache values computed from them."""

    __slots__ = ("_compiled",)

    _compiled: dict[str, Any]

    def cached(self: S, name: str, make: Callable[[S], T]) -> T:
        """Return a value that depends only on this object, computed on first use.

        All callers share the value, so it must not change.
        """
        if not hasattr(self, "_compiled"):
            object.__setattr__(self, "_compiled", {})
        if name not in self._compiled:
            self._compiled[name] = make(self)
        value: T = self._compiled[name]
        return value


def kept(make: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Let a function compute its value once for each object and its arguments; see `Caching`."""
    name = f"{make.__module__}.{make.__qualname__}"

    @wraps(make)
    def value(item: S, /, *args: P.args, **options: P.kwargs) -> T:
        if not args and not options:
            return item.cached(name, make)
        return item.cached(f"{name}{args}{options}", lambda item: make(item, *args, **options))

    return value


class Displayed:
    """Base of objects with a report: ``print`` shows it, notebooks show a table and a picture."""

    __slots__ = ()

    def report(self) -> Any:
        """Sentences and tables for a reader; a `streamplace.display.report.Report`."""
        return importlib.import_module(NOUNS).report_of(self)

    def __str__(self) -> str:
        text: str = importlib.import_module(TEXT).as_text(self.report())
        return text

    def _repr_html_(self) -> str:
        picture = self._repr_svg_() if isinstance(self, Pictured) else None
        html: str = importlib.import_module(HTML).as_html(self.report(), picture)
        return html


class Pictured(Displayed):
    """Base of objects that can also be drawn."""

    __slots__ = ()

    def _repr_svg_(self) -> str | None:
        picture: str | None = importlib.import_module(PICTURES).svg_of(self)
        return picture


def call_of(row: Any) -> str:
    """The call that makes a dataclass, on one line, without fields at their default.

    >>> from streamplace.model import Device
    >>> Device("d0", cores=4)
    Device(name='d0', cores=4)
    """
    shown_fields = ((field, getattr(row, field.name)) for field in fields(row) if field.repr)
    texts = [
        f"{field.name}={value!r}"
        for field, value in shown_fields
        if value != field.default and value not in ((), {})
    ]
    return shown(f"{type(row).__name__}({', '.join(texts)})", MAX_WIDTH)


def verdict_of(item: Any) -> str:
    """Class and verdict of an explanation, on one line."""
    return shown(f"<{type(item).__name__}: {item.verdict}>", MAX_WIDTH)


def same_fields(a: object, b: object) -> bool:
    """Whether two dataclass values agree in every compared field, arrays by content, NaN equal."""
    if type(a) is not type(b):
        return False
    return all(
        _same(getattr(a, f.name), getattr(b, f.name))
        for f in fields(a)  # type: ignore[arg-type]
        if f.compare
    )


def _same(x: object, y: object) -> bool:
    import numpy as np  # the command line shows its help without it

    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        return np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        return False
    return bool(x == y)


def data_frame(columns: Mapping[str, Sequence[Any]]) -> "DataFrame":
    """Convert columns to a pandas DataFrame."""
    try:
        import pandas as pd
    except ImportError:
        raise SettingError("pandas is not installed; install it with: pip install pandas") from None
    return pd.DataFrame(dict(columns))
