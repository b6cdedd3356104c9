from collections.abc import Callable
from pathlib import Path

import pytest


def test_placements_are_drawn_side_by_side(run: Callable, graph: str, placement: str) -> None:
    assert run("draw", graph, placement, placement, "-o", "x.svg").status == 0
    assert Path("x.svg").read_text().count(">placement: ") == 2


def test_a_graph_can_be_drawn_alone_at_a_rate(run: Callable, graph: str) -> None:
    """Without a placement and without devices; CPU follows the rate."""
    assert run("draw", graph, "-o", "x.svg").status == 0
    assert "10 operators, 12 streams" in Path("x.svg").read_text()
    assert run("draw", graph, "--rate", "20 k/s", "-o", "x.svg").status == 0
    assert "CPU 2,000 MIPS" in Path("x.svg").read_text()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--devices", "3", "-o", "x.svg"], "add a placement"),
        (["--objective", "latency", "-o", "x.svg"], "add a placement"),
        (["placement.json"], "-o FILE.svg"),
    ],
)
def test_a_drawing_without_a_file_or_a_placement_that_it_needs_is_refused(
    refusal: Callable, graph: str, placement: str, words: list[str], complaint: str
) -> None:
    assert complaint in refusal("draw", graph, *words)
