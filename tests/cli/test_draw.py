from collections.abc import Callable
from pathlib import Path


def test_placements_are_drawn_side_by_side(
    run: Callable, graph: str, placement: str, tmp_path: Path
) -> None:
    """One picture with a panel each."""
    assert run("draw", graph, placement, placement, "-o", "x.svg").status == 0
    assert (tmp_path / "x.svg").stat().st_size > 5000


def test_a_drawing_needs_a_file(run: Callable, graph: str, placement: str) -> None:
    """Where it should go is asked for."""
    answer = run("draw", graph, placement)
    assert answer.status == 2
    assert "-o FILE.png" in answer.err
