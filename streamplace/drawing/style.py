"""Fonts and sizes that all drawings of graphs share, and widths of texts without a font.

Texts that are too wide are shortened.
"""

import unicodedata
from dataclasses import dataclass

from streamplace.drawing.layout import Spacing

FONT = "'DejaVu Sans', Verdana, sans-serif"
TITLE, SMALL = 15.0, 11.0
MARGIN = 16.0
HEAD = 7.0
"""Length of an arrowhead."""
THIN, WIDE = 1.2, 4.5
"""Widths of the streams with the least and with the most traffic."""
WIDTHS = (
    651, 821, 942, 1716, 1303, 1946, 1597, 563, 799, 799, 1024, 1716, 651, 739, 651, 690, 1303,
    1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 690, 690, 1716, 1716, 1716, 1087, 2048,
    1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604, 604, 1343, 1141, 1767, 1532, 1612, 1235,
    1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799, 690, 799, 1716, 1024, 1024,
    1255, 1300, 1126, 1300, 1260, 721, 1300, 1298, 569, 569, 1186, 569, 1995, 1298, 1253, 1300,
    1300, 842, 1067, 803, 1298, 1212, 1675, 1212, 1212, 1075, 1303, 690, 1303, 1716,
)  # fmt: skip
"""Widths of the printable characters of ASCII in DejaVu Sans, which is as wide as Verdana and wider
than other sans-serif fonts, in 1/2048 of the size."""
UNITS = 2048
LOWER, OTHER = 0.98, 1.25
"""Widths of lower-case letters beyond ASCII, and of all other characters."""
BOLDER, WIDER = 1.06, 0.09
"""Width of bold characters: factor, and addition relative to the size."""
KNOWN = {"·": 0.318, "…": 1.0, "→": 0.838, "%": 0.95, "×": 0.838, "–": 0.5, "µ": 0.636}


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes for a number of boxes."""

    # Sizes of names and of the texts below them; 0 omits these texts.
    font: float
    note: float
    max_width: float  # width of names; longer names are cut
    height: float
    spacing: Spacing


SCALES = (
    (60, Scale(12, 9.5, 150, 36, Spacing(34, 14, 12, 10))),
    (200, Scale(11, 0, 120, 22, Spacing(26, 10, 8, 8))),
    (500, Scale(8, 0, 80, 15, Spacing(18, 6, 5, 5))),
    (10**9, Scale(0, 0, 10, 8, Spacing(10, 3, 2, 2))),
)
"""Maximum number of boxes for a scale, and the scale."""


def scale_of(n_boxes: int) -> Scale:
    """Scale for a number of boxes."""
    return next(scale for most, scale in SCALES if n_boxes <= most)


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Width of a text in a font of this size, at least that in any common font.

    >>> round(text_width("source", 12), 1)
    40.1
    """
    width = sum(map(_width, text))
    return size * (BOLDER * width + WIDER * len(text) if bold else width)


def cut_to(text: str, size: float, widest: float, bold: bool = False) -> str:
    """Cut a text in the middle, where names differ least, to a width.

    >>> cut_to("blastall_00000002", 12, 80)
    'blast…00002'
    """
    if text_width(text, size, bold) <= widest:
        return text
    for length in range(len(text) - 1, 1, -1):
        head, tail = (length + 1) // 2, length // 2
        shorter = f"{text[:head]}…{text[-tail:]}"
        if text_width(shorter, size, bold) <= widest:
            return shorter
    return text[:1]


def _width(character: str) -> float:
    if " " <= character <= "~":
        return WIDTHS[ord(character) - 32] / UNITS
    if character in KNOWN:
        return KNOWN[character]
    return LOWER if unicodedata.category(character) == "Ll" else OTHER
