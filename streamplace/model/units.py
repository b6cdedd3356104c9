"""Quantities as people write them (``"1000 Mbps"``, ``"12.5 kB"``), and back.

Inside streamplace every quantity is a float in its SI unit: bit/s, bytes, seconds, tuples/s. The
exception is device speed in MIPS, the usual unit.

A number without a unit is in tuples/s, seconds, bytes or MIPS. A text that states a bandwidth must
name the unit, since 1000 beside 2500 MIPS would be read as 1000 Mbps; a bandwidth that is a number,
in files and in Python, is in bit/s. Implausible numbers are refused, because another unit was
probably meant: hertz for 2.5e9 MIPS, Mbps for 1000 bit/s.
"""

import math
import re
from fractions import Fraction
from numbers import Real

from streamplace.errors import UnitError
from streamplace.model.message_text import quoted

Quantity = float | str

MAX_VALUE = 1e15
"""Largest quantity; a product of two is still an ordinary float."""
MAX_PLAIN_MIPS = 1e9
"""From this speed of a core on, a number is taken for hertz."""
MIN_PLAIN_BPS = 1e5
"""Below this bandwidth, a number is taken for Mbps."""
SLOW_MIPS = 100.0
"""Speed below which devices, and perhaps bandwidths, are in the units of a paper."""
UNLIMITED_BPS = MAX_VALUE
"""Bandwidth of a link without a limit, since matrices of bandwidths have no infinite cells."""

_NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([^\d\s].*?)?\s*", re.ASCII)
_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_PREFIXES = _DECIMAL | _BINARY
_UNITS_OF_SIZE = (("B", 1.0), ("bit", 1 / 8), ("b", 1 / 8))
"""Units and their bytes; in a size, the ambiguous "b" is refused."""
_BYTES = {f"{p}{unit}": f * size for p, f in _PREFIXES.items() for unit, size in _UNITS_OF_SIZE}
_BIT_RATES = {f"{p}bps": f for p, f in _DECIMAL.items()} | {
    f"{p}{unit}/s": 8 * f * size for p, f in _PREFIXES.items() for unit, size in _UNITS_OF_SIZE
}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_SECONDS |= {"µs": 1e-6, "\u03bcs": 1e-6}  # with the micro sign, and with the Greek letter
_SPEEDS = {"MIPS": 1.0, "GIPS": 1e3, "kIPS": 1e-3, "IPS": 1e-6}
_RATES = {f"{p}/s": f for p, f in _DECIMAL.items()} | {
    f"{p} tuples/s".strip(): f for p, f in _DECIMAL.items()
}
_COUNTS = {"k": 1e3, "M": 1e6, "G": 1e9}


class Stated(float):
    """A bandwidth or a speed with a stated unit, which is not checked for plausibility."""


def bandwidth_bps(text: Quantity) -> float:
    """Bandwidth in bit/s.

    >>> bandwidth_bps("1000 Mbps"), bandwidth_bps("125 MB/s")
    (1000000000.0, 1000000000.0)
    """
    return _parse(text, _BIT_RATES, "bandwidth", "'1000 Mbps' or '125 MB/s'")


def size_bytes(text: Quantity) -> float:
    """Size in bytes.

    >>> size_bytes("12.5 kB"), size_bytes("0.5 Mbit")
    (12500.0, 62500.0)
    """
    return _parse(text, _BYTES, "size", "'12.5 kB' or '0.5 Mbit'")


def seconds(text: Quantity) -> float:
    """Time in seconds.

    >>> seconds("10 ms"), seconds("100 µs")
    (0.01, 0.0001)
    """
    return _parse(text, _SECONDS, "time", "'10 ms' or '0.5 s'")


def check_bandwidth(what: str, number: float, mips: float) -> None:
    """Raise UnitError for a bandwidth without a unit that no machine of this speed has."""
    if not isinstance(number, Stated) and is_unusual_bandwidth(number, mips):
        raise UnitError(
            f"{what} {number:g} is {number:g} bit/s, as it has no unit; write "
            f"'{number:g} Mbps' or '{number:g} bps'"
        )


def is_unusual_bandwidth(bps: float, mips: float) -> bool:
    """Whether a bandwidth is too low beside this speed to be meant in bit/s."""
    return 0 < bps < MIN_PLAIN_BPS and mips >= SLOW_MIPS


def mips(text: Quantity) -> float:
    """Speed in million instructions per second.

    >>> mips("2.5 GIPS")
    2500.0
    """
    speed = _parse(text, _SPEEDS, "speed", "'2500 MIPS'")
    if speed >= MAX_PLAIN_MIPS and not isinstance(speed, Stated):
        raise UnitError(
            f"speed {speed:g} is {speed:g} million instructions per second, as it has no unit; "
            f"write '{speed / 1e6:g} MIPS' or '{speed:g} MIPS'"
        )
    return speed


def tuple_rate(text: Quantity) -> float:
    """Rate in tuples/s.

    >>> tuple_rate("10 k/s"), tuple_rate(10_000)
    (10000.0, 10000.0)
    """
    return _parse(text, _RATES | _COUNTS, "rate", "'10 k/s' or 10000")


def number(text: Quantity) -> float:
    """Plain number, perhaps with a prefix.

    >>> number("100k"), number("2.5e6")
    (100000.0, 2500000.0)
    """
    return _parse(text, _COUNTS, "number", "'100k' or 100000")


def total_rate(text: Quantity) -> float:
    """Total rate of the sources in tuples/s, above 0.

    >>> total_rate("10 k/s")
    10000.0
    """
    rate = _number(text, _RATES | _COUNTS, "rate", "'10 k/s' or 10000")
    if 0 < rate <= MAX_VALUE:
        return rate
    raise UnitError(
        f"rate {quoted(text)} must be above 0 and at most {MAX_VALUE:g}, such as '10 k/s' or 10000"
    )


def format_bandwidth(bps: float) -> str:
    """Bandwidth for people.

    >>> format_bandwidth(1e9)
    '1 Gbps'
    """
    return _format(bps, "bps")


def format_speed(mips: float) -> str:
    """Speed for people.

    >>> format_speed(12345.6), format_speed(2.5)
    ('12350 MIPS', '2.5 MIPS')
    """
    return f"{digits(mips)} MIPS"


def digits(value: float, significant: int = 4) -> str:
    """Number of a few significant digits without an exponent, if it is 0.001 at least.

    >>> digits(5.2e8), digits(99585.14, 6), digits(0.25), digits(1e-7)
    ('520000000', '99585.1', '0.25', '1e-07')
    """
    rounded = float(f"{value:.{significant}g}")
    return f"{rounded:.0f}" if abs(rounded) >= 10**significant else f"{rounded:.{significant}g}"


def floor_digits(value: Fraction | float, significant: int = 6) -> str:
    """Number of a few significant digits, rounded down, for lower bounds.

    The last digits of a float count as rounding errors.

    >>> floor_digits(Fraction(2, 3), 4), floor_digits(0.1 + 0.2), floor_digits(Fraction(36))
    ('0.6666', '0.3', '36')
    """
    if value <= 0 or not math.isfinite(value):
        return f"{float(value):.{significant}g}"
    exact = Fraction(value)
    if isinstance(value, float):
        exact *= 1 + Fraction(1, 10**12)
    digits_after = significant - 1 - math.floor(math.log10(exact))
    scaled = math.floor(exact * Fraction(10) ** digits_after)
    return f"{float(scaled / Fraction(10) ** digits_after):.{significant}g}"


def exact_digits(value: float) -> str:
    """Number with six digits if they are exact, else with full precision.

    >>> exact_digits(10_000.0), exact_digits(10_000.25)
    ('10000', '10000.25')
    """
    text = f"{value:g}"
    return text if float(text) == value else repr(float(value))


def format_bytes(size: float) -> str:
    """Size for people.

    >>> format_bytes(62500)
    '62.5 kB'
    """
    return _format(size, "B")


def format_rate(rate: float) -> str:
    """Tuple rate for people.

    >>> format_rate(9700)
    '9.7 k/s'
    """
    return _format(rate, "/s")


def _parse(text: Quantity, units: dict[str, float], what: str, example: str) -> float:
    value = _number(text, units, what, example)
    if not math.isfinite(value) or not 0 <= value <= MAX_VALUE:
        raise UnitError(
            f"{what} {quoted(text)} must be between 0 and {MAX_VALUE:g}, such as {example}"
        )
    return value


def _number(text: Quantity, units: dict[str, float], what: str, example: str) -> float:
    """Read a quantity in its base unit."""
    if isinstance(text, Stated):
        return text
    if isinstance(text, bool) or not isinstance(text, Real | str):
        raise UnitError(f"{what} {quoted(text)} is neither a number nor a string; write {example}")
    if not isinstance(text, str):
        try:
            return float(text)
        except OverflowError:
            return math.inf
    match = _NUMBER.fullmatch(text) if len(text) <= 64 else None
    if match is None:
        raise UnitError(f"{what} {quoted(text)} is not a number with a unit; write {example}")
    number, unit = match.groups()
    if unit is None and what == "bandwidth":
        raise UnitError(
            f"bandwidth {quoted(text)} has no unit; write "
            f"{quoted(f'{number} Mbps')} or {quoted(f'{number} bps')}"
        )
    if unit is None:
        return float(number)
    if what == "size" and unit.removesuffix("b") in _PREFIXES and unit.endswith("b"):
        size = f"{number} {unit.removesuffix('b')}"
        raise UnitError(
            f"size {quoted(text)} may be bits or bytes; write {quoted(f'{size}bit')} or "
            f"{quoted(f'{size}B')}"
        )
    if unit not in units:
        raise UnitError(
            f"{what} {quoted(text)} has the unknown unit {quoted(unit)}; write {example}"
        )
    factor = units[unit]
    # 100 µs is 1e-4 s, but 100 * 1e-6 is not
    value = float(number) * factor if factor >= 1 else float(number) / round(1 / factor)
    return Stated(value) if what in ("bandwidth", "speed") else value


def _format(value: float, unit: str) -> str:
    for prefix, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= factor:
            return f"{value / factor:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"
