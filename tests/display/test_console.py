"""Parts of reports fit into the width of the terminal, or go on below; they keep every value."""

import re
from io import StringIO
from math import copysign

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamplace.display.console import MAX_WORD, TextTable, lines_of, tables_of
from streamplace.display.report import MAX_SHORT_CELL, Bar, Sheet, duration, quantity


def printed(sheet, width):
    """Lines of a table on a terminal."""
    return list(lines_of((sheet,), width))


def test_a_wide_table_goes_on_below_with_the_names_of_its_rows():
    """Every line has the name; texts wrap at spaces before columns go below."""
    words = "a sentence that is as long as a line of the terminal and must wrap"
    sheet = Sheet(("name", "words", *"abcd"), (("row", words, *(f"{c} {9:08}" for c in "abcd")),))
    lines = printed(sheet, 60)
    assert max(map(len, lines)) <= 60
    assert [line.split()[0] for line in lines if line.split()[0] in ("name", "row")] == [
        "name", "row", "name", "row",
    ]  # fmt: skip
    assert sum("00000009" in line for line in lines) == 2
    assert len(printed(sheet, 200)) == 2


def test_a_long_table_that_is_split_keeps_the_parts_of_a_row_close():
    sheet = Sheet(("name", "a", "b"), tuple((str(i), f"a{i:030}", f"b{i:030}") for i in range(30)))
    lines = printed(sheet, 50)
    at = {word: i for i, line in enumerate(lines) for word in line.split()}
    assert all(0 < at[f"b{i:030}"] - at[f"a{i:030}"] <= 21 for i in range(30))


CELLS = st.lists(st.integers(10**5, 10**9).map(str), max_size=4).map(" ".join)


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(st.tuples(*[CELLS] * n), min_size=1, max_size=4).map(
            lambda rows: Sheet(rows[0], tuple(rows[1:]))
        )
    ),
    st.integers(30, 90),
)
def test_no_word_breaks_and_no_short_cell(sheet, width):
    """Unless a name and one cell beside it are wider than the line."""
    if width < 2 * (max(30, MAX_SHORT_CELL) + 2):
        width += 40
    lines = printed(sheet, width)
    assert all(len(line.rstrip()) <= width for line in lines)
    text = "\n".join(lines)
    for row in sheet.rows:
        for cell in row:
            words = [str(cell)] if len(str(cell)) <= MAX_SHORT_CELL else str(cell).split()
            assert all(word in text for word in words)


def test_words_longer_than_a_line_break_and_lose_nothing():
    name = "pilot:weights=" + "x" * (3 * MAX_WORD)
    lines = printed(Sheet(("placer", "load", "value"), ((name, Bar(0.5), "71.6 %"),)), 60)
    assert max(map(len, lines)) <= 60
    assert name in "".join(line.split()[0] for line in lines[1:] if "x" in line or "pilot" in line)
    assert any("71.6 %" in line for line in lines)


TEXTS = st.text("ab c界é→", max_size=60)


@given(TEXTS, TEXTS, st.integers(5, 40))
def test_lines_break_where_those_of_rich_break(text, head, width):
    """In sentences and in cells, wide characters among them; rich draws bars and spinners."""
    file = StringIO()
    console = Console(file=file, width=width + 2, color_system=None, highlight=False)
    table = Table(box=None, show_header=bool(head))
    table.add_column(Text(head), width=width, overflow="fold")
    table.add_row(Text(text))
    console.print(Text(text))
    console.print(table)
    shown = TextTable([head] if head else (), [[text]], [width])
    lines = [*lines_of((text,), width + 2), *shown.lines(str)]
    assert lines == file.getvalue().splitlines()


@pytest.mark.parametrize("width", [50, 80])
def test_bars_are_drawn_shorter_where_the_line_is_short(width):
    sheet = Sheet(
        ("device", "CPU", "", "operators"), (("d0", "50.0 %", Bar(0.5), "parse enrich join"),)
    )
    (line,) = printed(sheet, width)[1:]
    assert line.count("█") == (5 if width == 50 else 10)
    assert len(list(tables_of(sheet, width))) == 1


UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400}


@given(st.floats(1e-9, 8e7) | st.floats(-8e7, -1e-9))
def test_a_duration_reads_back_as_what_it_was(seconds):
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
def test_a_duration_is_rounded_before_its_units_are_chosen(seconds, text):
    """There is no 60 s, no 1 min 60 s, no 1000 ms."""
    assert duration(seconds) == text
    assert quantity(seconds, "s") == text
