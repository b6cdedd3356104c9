"""Display of objects: as text when printed, with pictures in notebooks."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from streamplace.errors import SettingError
from streamplace.model.messages import shown

if TYPE_CHECKING:
    from pandas import DataFrame

TEXT, HTML = "streamplace.model.console", "streamplace.model.html"
PICTURES = "streamplace.drawing.graphs"
"""Modules that show reports and draw. They import this one, so they are loaded by name."""

WIDEST = 120
"""Most characters of a ``repr``."""


def call_of(row: Any) -> str:
    """The call that makes a dataclass, on one line and without what has its default.

    >>> from streamplace.model import Device
    >>> Device("d0", cores=4)
    Device(name='d0', cores=4)
    """
    given = ((one, getattr(row, one.name)) for one in fields(row) if one.repr)
    texts = [
        f"{one.name}={value!r}"
        for one, value in given
        if value != one.default and value not in ((), {})
    ]
    return shown(f"{type(row).__name__}({', '.join(texts)})", WIDEST)


class Displayed:
    """Base of objects with a report: ``print`` shows it, notebooks show a table and a picture."""

    __slots__ = ()

    def report(self) -> Any:
        """Sentences and tables for a reader; a `streamplace.model.report.Report`."""
        raise NotImplementedError

    def __str__(self) -> str:
        text: str = importlib.import_module(TEXT).as_text(self.report())
        return text

    def _repr_html_(self) -> str:
        html: str = importlib.import_module(HTML).as_html(self.report(), picture_of(self))
        return html


class Pictured(Displayed):
    """Base of objects that can also be drawn."""

    __slots__ = ()

    def _repr_svg_(self) -> str | None:
        return picture_of(self)


def picture_of(item: object) -> str | None:
    """SVG of an object that can be drawn, None for any other."""
    if not isinstance(item, Pictured):
        return None
    picture: str | None = importlib.import_module(PICTURES).svg_of(item)
    return picture


def data_frame(columns: Mapping[str, Sequence[Any]]) -> "DataFrame":
    """Convert columns to a pandas DataFrame."""
    try:
        import pandas as pd
    except ImportError:
        raise SettingError("pandas is not installed; install it with: pip install pandas") from None
    return pd.DataFrame(dict(columns))
