from collections.abc import Callable
from pathlib import Path

import pytest


def test_placements_are_drawn_side_by_side(
    run: Callable, graph: str, placement: str, tmp_path: Path
) -> None:
    """One picture with a panel each."""
    assert run("draw", graph, placement, placement, "-o", "x.svg").status == 0
    assert (tmp_path / "x.svg").read_text().count(">placement: ") == 2


def test_a_graph_can_be_drawn_alone(run: Callable, graph: str, tmp_path: Path) -> None:
    """Without a placement and without devices."""
    assert run("draw", graph, "-o", "x.svg").status == 0
    assert "10 operators, 12 streams" in (tmp_path / "x.svg").read_text()


def test_a_graph_alone_has_a_rate(run: Callable, graph: str, tmp_path: Path) -> None:
    """CPU follows it."""
    assert run("draw", graph, "--rate", "20 k/s", "-o", "x.svg").status == 0
    assert "CPU 2,000 MIPS" in (tmp_path / "x.svg").read_text()


@pytest.mark.parametrize("words", [("--devices", "3"), ("--objective", "latency")])
def test_what_means_nothing_without_a_placement_is_refused(
    run: Callable, graph: str, words: tuple[str, ...]
) -> None:
    """One line says what to do."""
    answer = run("draw", graph, *words, "-o", "x.svg")
    assert answer.status == 2
    assert "add a placement" in answer.err


def test_a_drawing_needs_a_file(run: Callable, graph: str, placement: str) -> None:
    """Where it should go is asked for."""
    answer = run("draw", graph, placement)
    assert answer.status == 2
    assert "-o FILE.svg" in answer.err
