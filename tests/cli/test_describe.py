import json
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.parametrize(("suffix", "magic"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
def test_figure_4_is_drawn(
    run: Callable, graph: str, tmp_path: Path, suffix: str, magic: bytes
) -> None:
    """Histograms of operators, CPU and saturation in the format of the name."""
    assert run("describe", graph, "-o", f"figure{suffix}").status == 0
    assert (tmp_path / f"figure{suffix}").read_bytes().startswith(magic)


def test_an_unknown_figure_format_is_refused(run: Callable, graph: str) -> None:
    """The formats are listed."""
    answer = run("describe", graph, "-o", "figure.bmp")
    assert answer.status == 2
    assert ".png, .svg, .pdf" in answer.err


def test_people_read_a_table(run: Callable, graph: str) -> None:
    """Rows for sizes, CPU and traffic."""
    out = run("describe", graph).out
    assert "operators per graph" in out
    assert "traffic per stream (links)" in out


def test_a_folder_of_graphs_is_a_data_set(run: Callable, graph: str, tmp_path: Path) -> None:
    """Every .json file of the folder counts."""
    (tmp_path / "set").mkdir()
    for name in ("a", "b"):
        (tmp_path / "set" / f"{name}.json").write_text((tmp_path / graph).read_text())
    assert json.loads(run("describe", "set", "--json").out)["graphs"] == 2
