"""Figures without a display and without global state, written as PNG, SVG or PDF."""

import io
import logging
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from streamplace.errors import FormatError
from streamplace.io.files import spot, writing
from streamplace.model.messages import LONGEST, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#999999"


def new_figure(
    columns: int, *, rows: int = 1, width: float = 4.0, height: float = 3.0
) -> "tuple[Figure, list[Axes]]":
    """Create a figure with a grid of axes, row by row, without top and right frame lines."""
    figure = empty_figure(width * columns, height * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=9)
    return figure, axes


def empty_figure(width: float = 4.0, height: float = 3.0) -> "Figure":
    """Create a figure of a size in inches, which needs no display."""
    _load_quietly()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


@cache
def _load_quietly() -> None:
    """Import matplotlib without its warning about a missing folder."""
    log = logging.getLogger("matplotlib")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        import matplotlib.figure  # noqa: F401
    finally:
        log.setLevel(level)


def caption(name: str, longest: int = LONGEST) -> str:
    r"""Escape a name for matplotlib.

    Dollar signs would enclose a formula, and labels with a leading underscore have no legend.

    >>> print(caption("join"), caption("$x$"), caption("_a"), sep="|")
    join|\$x\$| _a
    """
    text = shown(name, longest).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def check_suffix(path: Path, *pages: str) -> None:
    """Raise FormatError unless a file's suffix is that of a picture, or of a page (``.html``)."""
    if path.suffix not in (*SUFFIXES, *pages):
        ends = ", ".join((*SUFFIXES, *pages))
        raise FormatError(f"{spot(path)}: a figure's name must end in {ends}")


def save(figure: "Figure", path: Path) -> None:
    """Write a figure in the format of its file's suffix; equal figures give equal bytes."""
    check_suffix(path)
    import matplotlib as mpl

    dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix, {})
    with writing(path) as file, mpl.rc_context({"svg.hashsalt": "streamplace"}):
        figure.savefig(file, format=path.suffix[1:], dpi=160, metadata=dated)


def svg_text(figure: "Figure") -> str:
    """Render a figure as SVG; equal figures give equal texts."""
    import matplotlib as mpl

    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "streamplace"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()
