"""Figures without a display and without global state, written as PNG, SVG or PDF.

They share headings, and a legend below the axes that wraps long names. The colours are those of all
drawings.
"""

import io
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamplace.io.extras import extra
from streamplace.io.files import check_suffix, writing
from streamplace.io.suffixes import PICTURES
from streamplace.model.message_text import shown

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#882255", "#333333")
"""Okabe and Ito's colours for colour-blind readers, without their yellow."""
BLUE, ORANGE, GREY, PALE_BLUE, BAND = PALETTE[0], PALETTE[1], "#999999", "#8fbbd9", "#f2f2f2"
DEVICE_COLOURS = ("#77aadd", "#ee8866", "#eedd88", "#44bb99", "#ffaabb", "#bbcc33",
                  "#99ddff", "#aaaa00", "#dddddd")  # fmt: skip
"""Paul Tol's light scheme for colour-blind readers, on which black text is legible."""
SHADES = ("#f4f8fc", "#d5e4f3", "#b1cfe9", "#86b4dc", "#5a97cd")
"""Shades of graphs without a placement; lighter ones mean less CPU."""
INK, MUTED, PAPER = "#202428", "#5f6770", "#ffffff"
OUTLINE, INSIDE, ACROSS, LIMIT = "#4a525a", "#9aa3ab", "#4a525a", "#b00020"
LINES = ("-", "--", "-.", ":")
MARKERS = "os^Dv<>P"
LEGEND_LETTERS = 34
"""Characters in a line of a legend."""
HEADING, LEGEND = 10.5, 8.5
MAX_ENTRY_LETTERS = 400
"""Characters of a name in a legend."""
MAX_LEGEND_SHARE = 0.97
"""Share of a figure's width for a legend."""
MADE_BY = "streamplace"
MARK = {"Creator": MADE_BY, "Date": None}
"""Metadata of SVG; a file with this mark may be overwritten."""


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
    extra("matplotlib")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: "Figure", path: Path) -> None:
    """Write a figure in the format of its file's suffix; equal figures give equal bytes.

    A PDF has its fonts as outlines (type 42), as publishers demand.
    """
    check_suffix(path, "a figure", *PICTURES)
    import matplotlib as mpl

    facts = {".svg": MARK, ".pdf": {"Creator": MADE_BY, "CreationDate": None}}
    of_kind = facts.get(path.suffix, {"Software": MADE_BY})
    settings: Any = {"svg.hashsalt": "streamplace", "pdf.fonttype": 42}
    with writing(path) as file, mpl.rc_context(settings):
        figure.savefig(file, format=path.suffix[1:], dpi=160, metadata=of_kind)


def svg_text(figure: "Figure") -> str:
    """Render a figure as SVG; equal figures give equal texts."""
    import matplotlib as mpl

    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "streamplace"}):
        figure.savefig(text, format="svg", metadata=MARK)
    return text.getvalue()


def line_style(i: int) -> dict[str, Any]:
    """Colour and dashes of line i."""
    return {
        "color": PALETTE[i % len(PALETTE)],
        "linestyle": LINES[(i // len(PALETTE) + i) % len(LINES)],
    }


def bar_style(i: int) -> dict[str, Any]:
    """Colour of bar i, hatched after all colours are used."""
    hatches = ("", "///", "...", "xxx")
    return {
        "color": PALETTE[i % len(PALETTE)],
        "hatch": hatches[i // len(PALETTE) % len(hatches)],
        "edgecolor": "white",
        "linewidth": 0,
    }


def legend_text(name: str) -> str:
    r"""Escape a complete name for a legend of matplotlib.

    Dollar signs would enclose a formula, and labels with a leading underscore have no legend.

    >>> print(legend_text("join"), legend_text("$x$"), legend_text("_a"), sep="|")
    join|\$x\$| _a
    """
    text = shown(name, MAX_ENTRY_LETTERS).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def panels(headings: Iterable[str], rows: int = 1) -> "tuple[Figure, list[Axes]]":
    """Create a figure with a column of panels per heading; a single one has no heading."""
    texts = list(headings)
    width = 5.0 if len(texts) == 1 else 4.4
    figure, axes = new_figure(len(texts), rows=rows, width=width, height=3.4)
    if len(texts) > 1:
        for axis, text in zip(axes, texts, strict=False):
            axis.set_title(text, fontsize=HEADING)
    return figure, axes


def add_title(figure: "Figure", title: str) -> "Figure":
    """Write the title above all panels."""
    width = figure.get_figwidth()
    lines = [wrapped(legend_text(line), int(11.5 * width)) for line in title.split("\n")]
    figure.suptitle("\n".join(lines), fontsize=HEADING + 1, x=0.01, ha="left")
    return figure


def finish(figure: "Figure", title: str) -> "Figure":
    """Write the title above all panels, and one legend for all of them below."""
    add_title(figure, title)
    entries: dict[str, Artist] = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        _add_legend(figure, entries)
    return figure


def _add_legend(figure: "Figure", entries: "dict[str, Artist]") -> None:
    """Add a legend below, with as many columns as fit, and extend the figure by its height."""
    from matplotlib.legend import Legend

    labels = [wrapped(label, LEGEND_LETTERS) for label in entries]
    for columns in range(len(labels), 0, -1):
        legend: Legend = figure.legend(
            list(entries.values()),
            labels,
            fontsize=LEGEND,
            frameon=False,
            loc="outside lower center",
            ncols=columns,
        )
        box = legend.get_window_extent()
        if columns == 1 or box.width <= MAX_LEGEND_SHARE * figure.bbox.width:
            break
        legend.remove()
    figure.set_figheight(figure.get_figheight() + box.height / figure.dpi)


def wrapped(text: str, width: int) -> str:
    r"""Wrap a text to a width, also after colons, slashes, commas and equals signs.

    >>> wrapped("pilot:weights=runs/mine/best.safetensors", 24)
    'pilot:weights=runs/mine/\nbest.safetensors'
    """
    spaced = text
    for mark in ":/,=":
        spaced = spaced.replace(mark, f"{mark}\0")
    lines, line = [], ""
    for word in spaced.replace(" ", " \0").split("\0"):
        for part in textwrap.wrap(word, width, drop_whitespace=False) or [word]:
            if line and len(line) + len(part.rstrip()) > width:
                lines.append(line.rstrip())
                line = ""
            line += part
    return "\n".join([*lines, line.rstrip()])
