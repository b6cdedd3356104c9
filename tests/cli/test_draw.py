from collections.abc import Callable
from pathlib import Path


def test_a_graph_can_be_drawn_alone_at_a_rate(run: Callable, graph: str) -> None:
    """Without a placement and without devices; CPU follows the rate."""
    assert run("draw", graph, "-o", "x.svg").status == 0
    assert "10 operators, 12 streams" in Path("x.svg").read_text()
    assert run("draw", graph, "--rate", "20 k/s", "-o", "x.svg").status == 0
    assert "CPU 2,000 MIPS" in Path("x.svg").read_text()
