from io import StringIO

import pytest

from streamplace.model.console import DataConsole, print_parts
from streamplace.model.report import Heading, Report, Sheet

WORDS = "b2s1 25.6 %, b3s1 4 GB, b2s2 11.3 ms, source 1.565 Gbps, sink (75.0 % in use)"


@pytest.mark.parametrize("width", range(24, 80, 3))
@pytest.mark.parametrize(
    "part",
    [WORDS, Heading("shop", f" {WORDS}"), Sheet(("device", "operators"), (("d0", WORDS),))],
    ids=["sentence", "heading", "table"],
)
def test_no_line_breaks_between_a_number_and_its_unit(
    part: str | Heading | Sheet, width: int
) -> None:
    """In sentences, in headings and in cells; all words are printed as they are."""
    file = StringIO()
    print_parts(DataConsole(file=file, width=width, color_system=None), Report((part,), ""))
    lines = file.getvalue().splitlines()
    assert all(len(line.rstrip()) <= width for line in lines)
    assert not any(line.strip().startswith(("%", "GB", "ms", "Gbps")) for line in lines)
    printed = " ".join(" ".join(lines).split())
    assert all(word in printed for word in WORDS.split(", "))
