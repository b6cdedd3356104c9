"""The models of the page, in Node, against Python's values."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from report_vectors import GOLDEN, N_GOLDEN, as_line, vectors

import streamplace.report

HERE = Path(__file__).parent
PAGE = Path(streamplace.report.__file__).parent
needs_node = pytest.mark.skipif(which("node") is None, reason="needs Node")


def differences(file: Path) -> list[str]:
    """Problems of a file on which the page differs from Python."""
    command = ["node", str(HERE / "models.mjs"), str(PAGE / "page.js"), str(file)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    answer: list[str] = json.loads(result.stdout)
    return answer


def test_the_golden_problems_are_what_python_computes() -> None:
    golden = GOLDEN.read_text(encoding="utf-8").splitlines(keepends=True)
    assert len(golden) == N_GOLDEN
    assert [as_line(part) for part in vectors(5)] == golden[:5]


@needs_node
def test_the_models_of_the_page_agree_with_python_at_once_and_move_by_move() -> None:
    assert differences(GOLDEN) == []


def _throughput(placement: dict[str, Any]) -> None:
    placement["throughput"] *= 1 - 1e-8


def _load(placement: dict[str, Any]) -> None:
    placement["loads"]["devices"][0] += 1e-8


def _makespan(placement: dict[str, Any]) -> None:
    placement["one_pass"]["makespan"] += 1e-8


def _start(placement: dict[str, Any]) -> None:
    placement["one_pass"]["start"][-1] += 1e-8


@needs_node
@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (_throughput, "the throughput"),
        (_load, "the load of a device"),
        (_makespan, "the makespan"),
        (_start, "a start"),
    ],
)
def test_a_value_that_differs_is_noticed(
    tmp_path: Path, spoil: Callable[[dict[str, Any]], None], what: str
) -> None:
    problem = json.loads(GOLDEN.read_text(encoding="utf-8").splitlines()[0])
    spoil(problem["placements"][1])
    file = tmp_path / "spoiled.jsonl"
    file.write_text(json.dumps(problem), encoding="utf-8")
    assert differences(file) == [f"{problem['name']}: {what} of the placement p1"]


@needs_node
@pytest.mark.slow
def test_a_thousand_random_problems_agree(tmp_path: Path) -> None:
    file = tmp_path / "vectors.jsonl"
    file.write_text("".join(map(as_line, vectors(1000, seed=1))), encoding="utf-8")
    assert differences(file) == []


@needs_node
@pytest.mark.skipif(
    not (PAGE / "page" / "node_modules" / "esbuild").exists(), reason="needs `make page` once"
)
def test_the_committed_page_is_what_its_sources_give(tmp_path: Path) -> None:
    build = ["node", str(PAGE / "page" / "build.mjs"), str(tmp_path)]
    subprocess.run(build, check=True, timeout=120)
    for name in ("page.js", "page.css"):
        assert (tmp_path / name).read_bytes() == (PAGE / name).read_bytes(), name
