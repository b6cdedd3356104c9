"""Every entry of datasets/library is accepted by the checker, and nothing that was altered is."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import check
import pytest

LIBRARY = Path(__file__).parents[2] / "datasets/library"
LINES = [json.loads(line) for line in (LIBRARY / "best.jsonl").read_text().splitlines()]


def files_of(line: dict[str, Any]) -> list[Path]:
    folder, objective = LIBRARY / line["instance"], line["objective"]
    kinds = ("solution", "certificate")
    return [folder / "instance.json", *(folder / f"{objective}.{kind}.json" for kind in kinds)]


def printed(paths: list[Path], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit status and the one line that the checker prints."""
    status = check.main([str(path) for path in paths])
    (line,) = capsys.readouterr().out.splitlines()
    return status, line


def assert_accepted(line: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    status, text = printed(files_of(line), capsys)
    assert status == 0, text
    verdict, objective, value = text.split()[:3]
    assert (verdict, objective) == ("accepted:", line["objective"])
    assert float(value) == pytest.approx(line["value"], rel=1e-10)
    assert ("gap 0.000%" in text) or not line["closed"]


@pytest.mark.parametrize("line", LINES[:: len(LINES) // 10], ids=lambda line: line["instance"])
def test_a_sample_is_accepted(line: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert_accepted(line, capsys)


@pytest.mark.slow
def test_every_entry_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    for line in LINES:
        assert_accepted(line, capsys)


def test_files_are_those_of_the_manifest() -> None:
    manifest = json.loads((LIBRARY / "manifest.json").read_text())
    for name, digest in manifest["sha256"].items():
        assert sha256((LIBRARY / name).read_bytes()).hexdigest() == digest, name
    assert {line["instance"] for line in LINES} == set(manifest["instances"])
    assert len(manifest["instances"]) >= 60
    assert sum(path.stat().st_size for path in LIBRARY.rglob("*.json*")) <= 5 * 2**20
