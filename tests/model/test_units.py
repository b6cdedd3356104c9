"""Quantities as texts and back."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.errors import UnitError
from streamplace.model import units


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.bandwidth_bps, "1Gbit/s", 1e9),
        (units.bandwidth_bps, "1 Kibit/s", 1024),
        (units.bandwidth_bps, "10 Gb/s", 1e10),
        (units.bandwidth_bps, " 1e9 bps ", 1e9),
        (units.size_bytes, "2 GiB", 2 * 2**30),
        (units.size_bytes, "+.5kB", 500),
        (units.seconds, "1.5 h", 5400),
        (units.seconds, "3 µs", 3e-6),
        (units.seconds, "3 \u03bcs", 3e-6),
        (units.tuple_rate, "10 k tuples/s", 10_000),
        (units.tuple_rate, "100 tuples/s", 100),
        (units.tuple_rate, "2 M", 2e6),
        (units.tuple_rate, np.int64(7), 7),
    ],
)
def test_a_text_with_a_unit_is_its_si_value(parse, text, value):
    assert parse(text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        *("1000 Mbpz", "fast", "", "-1 Mbps", "nan", "inf Mbps", "1e400 bps", "1e16 bps"),
        *("9" * 65, "1 Mbps\n1", "١ Mbps", "1_000 Mbps", "0x10 bps", "1,5 Gbps", "\ud800", "\0"),
        "1 0 Mbps",
    ],
)
def test_a_text_that_is_no_bandwidth_is_refused_on_one_line(text):
    with pytest.raises(UnitError, match="'1000 Mbps'") as caught:
        units.bandwidth_bps(text)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("prefix", ["", "k", "M", "Ki"])
def test_a_size_that_may_be_bits_or_bytes_is_refused(prefix):
    """As many write kb for kilobytes; in a bandwidth, b is a bit."""
    with pytest.raises(UnitError, match=f"write '200 {prefix}bit' or '200 {prefix}B'"):
        units.size_bytes(f"200{prefix}b")


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, 10**400, True, None, b"1", []])
def test_a_value_that_is_no_quantity_is_refused(value):
    """Neither negative, endless and huge numbers nor other types pass."""
    with pytest.raises(UnitError):
        units.size_bytes(value)


@pytest.mark.parametrize(
    ("show", "parse"),
    [
        (units.format_bandwidth, units.bandwidth_bps),
        (units.format_bytes, units.size_bytes),
        (units.format_rate, units.tuple_rate),
    ],
)
@given(value=st.floats(0, 1e14))
def test_what_is_shown_can_be_read_back(show, parse, value):
    assert parse(show(value)) == pytest.approx(value, rel=5e-4, abs=1e-300)
