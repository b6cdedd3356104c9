import re
from math import copysign

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.model.report import duration, quantity

UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400}


@given(st.floats(1e-9, 8e7) | st.floats(-8e7, -1e-9))
def test_a_duration_reads_back_as_what_it_was(seconds: float) -> None:
    """To a hundredth, whatever the units; no number has more than four digits."""
    text = duration(seconds)
    parts = [(float(number), unit) for number, unit in re.findall(r"([\d.]+) (\w+)", text)]
    total = sum(number * UNITS[unit] for number, unit in parts)
    assert copysign(total, seconds) == pytest.approx(seconds, rel=1e-2)
    assert text.startswith("-") == (seconds < 0)
    assert all(0 < number <= 1000 for number, _ in parts)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (59.4, "59.4 s"),
        (59.7, "1 min"),
        (119.7, "2 min"),
        (3599.8, "1 h"),
        (86399.0, "1 d"),
        (0.999999, "1 s"),
    ],
)
def test_a_duration_is_rounded_before_its_units_are_chosen(seconds: float, text: str) -> None:
    """There is no 60 s, no 1 min 60 s, no 1000 ms."""
    assert duration(seconds) == text
    assert quantity(seconds, "s") == text
