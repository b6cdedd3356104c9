"""Colours, fonts and sizes that all drawings of graphs share."""

from dataclasses import dataclass

from streamplace.drawing.layout import Spacing

FONT = "'DejaVu Sans', Verdana, sans-serif"
DEVICES = ("#77aadd", "#ee8866", "#eedd88", "#44bb99", "#ffaabb", "#bbcc33",
           "#99ddff", "#aaaa00", "#dddddd")  # fmt: skip
"""Paul Tol's light scheme for colour-blind readers, on which black text is legible."""
SHADES = ("#f4f8fc", "#d5e4f3", "#b1cfe9", "#86b4dc", "#5a97cd")
"""Shades of graphs without a placement; lighter ones mean less CPU."""
INK, GREY, PAPER = "#202428", "#5f6770", "#ffffff"
OUTLINE, INSIDE, ACROSS, LIMIT = "#4a525a", "#9aa3ab", "#4a525a", "#b00020"
TITLE, SMALL = 15.0, 11.0
MARGIN = 16.0
HEAD = 7.0
"""Length of an arrowhead."""
THIN, WIDE = 1.2, 4.5
"""Widths of the streams with the least and with the most traffic."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes for a number of boxes."""

    # Sizes of names and of the texts below them; 0 omits these texts.
    font: float
    note: float
    widest: float  # width at which names are cut
    height: float
    spacing: Spacing


SCALES = (
    (60, Scale(12, 9.5, 150, 36, Spacing(34, 14, 12, 10))),
    (200, Scale(11, 0, 120, 22, Spacing(26, 10, 8, 8))),
    (500, Scale(8, 0, 80, 15, Spacing(18, 6, 5, 5))),
    (10**9, Scale(0, 0, 10, 8, Spacing(10, 3, 2, 2))),
)
"""Most boxes for a scale, and the scale."""


def scale_of(n_boxes: int) -> Scale:
    """Scale for a number of boxes."""
    return next(scale for most, scale in SCALES if n_boxes <= most)
