"""Ranges of rates and of numbers, as people write them."""

import re
from math import inf

from streamplace.errors import SettingError
from streamplace.model.messages import quoted

POINTS = 9
"""Number of rates of a frontier."""
MOST_PROTECTED = 64
"""Most numbers in a range of --robust, besides the first."""


def protected_of(text: str) -> list[int]:
    """Parse numbers of protected operators: one, or a range.

    >>> protected_of("2"), protected_of("0..3")
    ([2], [0, 1, 2, 3])
    """
    first, dots, last = text.partition("..")
    ends = (first, last if dots else first)
    if not all(end.isascii() and end.isdigit() and len(end) < 5 for end in ends):
        raise SettingError(
            f"--robust is {quoted(text)}; it must be a number of operators, or a range such as 0..4"
        )
    low, high = map(int, ends)
    if dots and not low < high <= low + MOST_PROTECTED:
        raise SettingError(
            f"--robust is {quoted(text)}; a range must lead from a lower number to one that is "
            f"higher by {MOST_PROTECTED} at most"
        )
    return list(range(low, high + 1))


def _ends(text: str) -> tuple[str, str, str]:
    """Ends of a range, and what is between them; a rate alone has one end.

    >>> _ends("20000..80000"), _ends("20k-80k"), _ends("1e-5")
    (('20000', '..', '80000'), ('20k', '-', '80k'), ('1e-5', '', ''))
    """
    if ".." in text:
        return text.partition("..")
    parts = re.fullmatch(r"(\s*\d\S*?(?:\s*[A-Za-z/]+)?)\s*(?<![eE])([-–])\s*(\d.*)", text)
    return (parts[1], parts[2], parts[3]) if parts else (text, "", "")


def rates_of(text: str) -> list[float]:
    """Parse rates: one, nine of a range, or an infinite one for "max".

    >>> rates_of("50 k/s"), len(rates_of("20000..80000")), rates_of("max")
    ([50000.0], 9, [inf])
    >>> rates_of("20000-80000") == rates_of("20 k/s - 80 k/s") == rates_of("20k..80k")
    True
    """
    from streamplace.model.units import tuple_rate

    if text == "max":
        return [inf]
    first, dots, last = _ends(text)
    if dots and not (first and last):
        raise SettingError(f"--rate is {quoted(text)}; a range has two ends: 20000..80000")
    low = tuple_rate(first)
    high = tuple_rate(last) if dots else low
    if not 0 < low <= high or (dots and low == high):
        raise SettingError(
            f"--rate is {text}; it must be above 0, and a range must lead from a lower rate to a "
            "higher one"
        )
    if not dots:
        return [low]
    return [low + (high - low) * i / (POINTS - 1) for i in range(POINTS)]
