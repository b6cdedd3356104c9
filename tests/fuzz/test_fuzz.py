"""Every reader that the registries know reads valid files, and reads or refuses spoiled ones.

``make fuzz`` does the same with as many inputs as there is time for.
"""

import os
from contextlib import suppress

import pytest
from fuzz import trial
from fuzz.targets import Target, targets
from fuzz.trial import content_of, fault_of
from hypothesis import given
from hypothesis import strategies as st
from placer_cases import OF_PAPERS, SLOW
from problems import parse_graph

from streamplace.errors import FormatError, StreamplaceError, UnitError
from streamplace.io.graphs import graph_line
from streamplace.model import units

TARGETS = {target.name: target for target in targets()}
INPUTS = int(os.environ.get("FUZZ_INPUTS", "25"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=SLOW if name.rpartition(" ")[2] in OF_PAPERS else ())
        for name in TARGETS
    ],
)
def test_valid_files_are_read_and_spoiled_files_read_or_refused(name, tmp_path):
    """In one line, within the time that one may take; fewer where each starts a process.

    `content_of` makes the input of a number that is found again.
    """
    target = TARGETS[name]
    for content in target.seeds():
        target.read(content, tmp_path)
    numbers = range(INPUTS // target.share)
    faults = {number: fault_of(target, SEED, number, tmp_path) for number in numbers}
    assert {number: fault for number, fault in faults.items() if fault} == {}


def test_an_input_depends_on_its_number_alone():
    """So that whatever is found can be made again."""
    once, again = ([content_of(TARGETS["graph"], 3, i) for i in range(20)] for _ in range(2))
    assert once == again
    assert len(set(once)) > 15


@pytest.mark.parametrize(
    ("deed", "fault"),
    [
        ("raise KeyError('x')", "KeyError in <string>:1: 'x'"),
        ("raise FormatError('two\\nlines')", "message is not printable"),
        ("raise FormatError('x' * 2000)", "message of 2000 characters"),
        pytest.param("while True: pass", "took more than", marks=pytest.mark.slow),
        ("bytearray(2**33)", "MemoryError"),
    ],
)
def test_whatever_else_a_reader_does_is_found(deed, fault, monkeypatch, tmp_path):
    def read(content, folder):
        exec(deed, {"FormatError": FormatError})

    monkeypatch.setattr(trial, "SECONDS", 0.2)
    assert fault in fault_of(Target("bad", read, lambda: [b"x"]), 0, 0, tmp_path)


@given(number=st.integers(0, 10**9))
def test_what_was_read_can_be_written_and_read_again(number):
    with suppress(StreamplaceError):
        graph = parse_graph(content_of(TARGETS["graph"], 0, number), "here")
        assert parse_graph(graph_line(graph), "again") == graph


@given(
    st.text()
    | st.floats()
    | st.integers()
    | st.from_regex(r"\s*[-+]?\d{0,5}\.?\d{0,3}(e[-+]?\d{1,4})? ?[kKMGT]?i?(B|bps|bit|/s|s)?")
)
def test_quantities_are_read_in_range_or_refused(value):
    parsers = (units.bandwidth_bps, units.size_bytes, units.seconds, units.mips, units.tuple_rate)
    for parse in parsers:
        with suppress(UnitError):
            assert 0 <= parse(value) <= units.MAX_VALUE
