"""Display of objects: as text when printed, with pictures in notebooks."""

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamplace.errors import SettingError

if TYPE_CHECKING:
    from pandas import DataFrame

TEXT, HTML = "streamplace.model.console", "streamplace.model.html"
PICTURES = "streamplace.drawing.notebook"
"""Modules that show reports and draw. They import this one, so they are loaded by name."""


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
