"""Every reader that the registries know reads valid files, and reads or refuses spoiled ones.

``make fuzz`` does the same with as many inputs as there is time for.
"""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fuzz import trial
from fuzz.targets import Target, targets
from fuzz.trial import campaign, content_of, tried
from hypothesis import given
from hypothesis import strategies as st
from problems import parse_graph

from streamplace.errors import FormatError, StreamplaceError, UnitError
from streamplace.io.graphs import graph_line
from streamplace.model import units

TARGETS = {target.name: target for target in targets()}
INPUTS = 25


@pytest.mark.parametrize("name", TARGETS)
def test_valid_files_are_read_and_spoiled_files_read_or_refused(name: str, tmp_path: Path) -> None:
    """In one line, within the time that one may take; fewer where each starts a process."""
    for content in TARGETS[name].seeds():
        TARGETS[name].read(content, tmp_path)
    for number in range(INPUTS * 5 // max(TARGETS[name].cost, 5)):
        assert tried(TARGETS[name], 0, number, tmp_path) is None


def test_an_input_depends_on_its_number_alone() -> None:
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
def test_whatever_else_a_reader_does_is_found(
    deed: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for each input, and the campaign goes on."""

    def read(content: bytes, folder: Path) -> Any:
        exec(deed, {"os": os, "time": time, "FormatError": FormatError})

    monkeypatch.setattr(trial, "SECONDS", 0.2)
    good = Target("good", lambda content, folder: None, lambda: [b"x"])
    *_, tally = campaign([Target("bad", read, lambda: [b"x"]), good], 4, seed=0, jobs=2)
    assert tally.done == {"bad": 2, "good": 2}
    assert sorted(finding.number for finding in tally.findings) == [0, 1]
    assert [finding.fault for finding in tally.findings if fault not in finding.fault] == []


@pytest.mark.slow
def test_the_command_says_what_it_did(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "fuzz", "--inputs", "30", "--only", "schema", "--jobs", "1"]
    tests = Path(__file__).parents[1]
    paths = (str(tests), str(tests / "support"), os.environ.get("PYTHONPATH"))
    path = os.pathsep.join(filter(None, paths))
    answer = subprocess.run(
        words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert answer.returncode == 0
    assert "over 6 readers (seed 0)" in answer.stderr
    assert "0 findings" in answer.stderr
    assert not any(tmp_path.iterdir())


@given(number=st.integers(0, 10**9))
def test_what_was_read_can_be_written_and_read_again(number: int) -> None:
    """A graph that survives its spoiling is a good graph."""
    with suppress(StreamplaceError):
        graph = parse_graph(content_of(TARGETS["graph"], 0, number), "here")
        assert parse_graph(graph_line(graph), "again") == graph


@given(
    st.text()
    | st.floats()
    | st.integers()
    | st.from_regex(r"\s*[-+]?\d{0,5}\.?\d{0,3}(e[-+]?\d{1,4})? ?[kKMGT]?i?(B|bps|bit|/s|s)?")
)
def test_quantities_are_read_in_range_or_refused(value: str | float) -> None:
    parsers = (units.bandwidth_bps, units.size_bytes, units.seconds, units.mips, units.tuple_rate)
    for parse in parsers:
        with suppress(UnitError):
            assert 0 <= parse(value) <= units.LARGEST
