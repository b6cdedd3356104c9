"""Formats of other tools: what is wrong in a file, packages and options that they lack."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from formats import read_as
from fuzz.targets import SEEDS
from refusals import refusal_of

from streamplace.errors import SettingError
from streamplace.io.extras import extra
from streamplace.io.registry import FORMATS

NEEDY = [name for name in FORMATS if FORMATS[name].package]
Document = dict[str, Any]


@pytest.mark.parametrize(
    ("name", "spoil", "complaint"),
    [
        ("dream", lambda d: d.pop("event_rate"), "event_rate is missing; add it"),
        (
            "dream",
            lambda d: d["connections"][0].pop("from_vertex"),
            "[0].from_vertex is missing; add it",
        ),
        ("dream", lambda d: d.update(event_rate=0), "event_rate is 0; it should be greater than 0"),
        ("dream", lambda d: d["operators"][1].update(idx=3), "two operators have the idx 3"),
        (
            "dream",
            lambda d: d["operators"][1].update(idx=10**30),
            "from_vertex is 1, but no operator",
        ),
        ("dream", lambda d: d["operators"][1].pop("payload"), "operator 1 has no payload; add it"),
        (
            "dream",
            lambda d: d["connections"][2].update(to_vertex=9),
            "connections[2].to_vertex is 9, but no",
        ),
        (
            "saga",
            lambda d: d["network"]["edges"].clear(),
            "'x' and 'y' have no link, or one of speed 0",
        ),
        (
            "saga",
            lambda d: d["network"]["nodes"].pop(),
            "ends at 'x', which is not a node; add the node",
        ),
        ("saga", lambda d: d.pop("network"), "network is missing; add it"),
        ("saga", lambda d: d["network"]["nodes"][0].update(speed=0), "device 'y' has mips 0"),
        (
            "wfcommons",
            lambda d: d["workflow"]["execution"]["tasks"].pop(),
            "'merge_4' has no runtimeInSeconds; add it",
        ),
        (
            "wfcommons",
            lambda d: d["workflow"]["execution"]["machines"].pop(),
            "'work_2' ran on 'node2', which is no",
        ),
        (
            "wfcommons",
            lambda d: d["workflow"].pop("specification"),
            "the graph has no operators",
        ),
        (
            "wfcommons",
            lambda d: d["workflow"]["specification"]["files"][0].pop("id"),
            "files[0].id is missing; add it",
        ),
    ],
)
def test_what_is_wrong_in_a_document_is_told_in_one_line(
    tmp_path: Path, name: str, spoil: Callable[[Document], object], complaint: str
) -> None:
    """With its file in front."""
    document = json.loads((SEEDS / f"{name}.json").read_text())
    spoil(document)
    path = tmp_path / "g.json"
    assert complaint in refusal_of(path, read_as, name, path.name, tmp_path, document)


@pytest.mark.parametrize("name", NEEDY)
def test_a_missing_package_is_told_with_its_extra(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line that can be pasted."""
    package = FORMATS[name].package
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SettingError, match=rf"^{package} is not .* pip install 'streamplace\["):
        list(FORMATS[name].read(tmp_path / "model"))


def test_a_package_that_is_broken_is_not_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that it needs may be missing, or another package."""
    (tmp_path / "broken.py").write_text("raise ImportError('libsome.so: cannot open file')")
    (tmp_path / "lacking.py").write_text("import what_nobody_has")
    monkeypatch.syspath_prepend(tmp_path)
    reasons = {"broken": "libsome.so: cannot open file", "lacking": "No module named 'what_nobody_"}
    for package, reason in reasons.items():
        with pytest.raises(SettingError, match=f"^{package} is installed, but .*: {reason}"):
            extra(package)


@pytest.mark.parametrize("option", ["measure", "blocks"])
def test_an_option_of_another_format_is_refused(option: str) -> None:
    """Which has it, is told."""
    with pytest.raises(SettingError, match=f"dream cannot {option}; drop --{option}, .* torch"):
        FORMATS["dream"].with_options([option])
