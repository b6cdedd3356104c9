"""Spaces before units, at which lines do not break."""

import re

JOINT = "\ue000"
"""Private character that stands for a space at which a line must not break."""
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|[kMGT]?(?:bps|B)|[mµn]?s|MIPS)(?!\w))")


def joined(text: str) -> str:
    """Replace the spaces between numbers and units by `JOINT`."""
    return _BEFORE_UNIT.sub(JOINT, text)
