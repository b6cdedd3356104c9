from collections.abc import Callable
from pathlib import Path

import pytest

from streamplace.engines.csv import read_csv
from streamplace.errors import FormatError


def test_data_frames_can_read_it(written: Callable[..., Path]) -> None:
    """Without any option."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(written("csv") / "placement.csv")
    assert frame.set_index("operator").device["join"] == "box1"


def test_a_table_from_elsewhere_needs_two_columns_only() -> None:
    """In any order, with or without byte order mark."""
    assert read_csv(b"\xef\xbb\xbfdevice,note,operator\r\nd0,x,src\r\n", "f") == {"src": "d0"}


@pytest.mark.parametrize("mark", [";", "\t"])
def test_what_spreadsheets_of_other_languages_write_is_read(mark: str) -> None:
    rows = [("operator", "device"), ("a, b", "d0"), ("sink", "d,1")]
    text = "".join(f"{mark.join(row)}\r\n" for row in rows)
    assert read_csv(text.encode(), "f") == {"a, b": "d0", "sink": "d,1"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"", "no columns operator and device"),
        (b"operator,device\n", "places no operator"),
        (b"operator,device\nsrc,d0\nsrc,d1\n", "'src' appears twice"),
        (b"operator,device\nsrc,\n", "'src' has no partner"),
        (b"operator,device\n\xff,d0\n", "not UTF-8"),
        (b'operator,device\n"src,d0\nsink,d1\n', "not valid CSV: unexpected end of data"),
    ],
)
def test_a_bad_table_is_refused_in_one_line(text: bytes, complaint: str) -> None:
    """With the file's name in front."""
    with pytest.raises(FormatError, match=f"^t.csv: .*{complaint}"):
        read_csv(text, "t.csv")
