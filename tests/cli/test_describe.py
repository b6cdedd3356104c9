import json
import re
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
    """Sizes once for one graph, as distributions for several files; CPU and traffic for both."""
    out = run("describe", graph).out
    assert re.search(r"^ operators +10 *$", out, re.MULTILINE)
    assert "operators per graph" not in out
    several = run("describe", graph, graph).out
    assert f"{graph}, {graph}: 2 graphs" in several
    assert re.search(r"operators per graph( +10){6} *$", several, re.MULTILINE)
    assert all("traffic per stream (links)" in text for text in (out, several))


def test_cpu_is_measured_in_devices_of_the_cluster(
    run: Callable, graph: str, tmp_path: Path
) -> None:
    """Devices of twice the mean speed halve the number; the units are printed."""
    rows = '{name = "slow", mips = 4000}, {name = "fast", mips = 3000, cores = 2}'
    (tmp_path / "c.toml").write_text(f"devices = [{rows}]\nbandwidth = '500 Mbps'\n")
    usual = json.loads(run("describe", graph, "--json").out)
    own = json.loads(run("describe", graph, "--json", "--cluster", "c.toml").out)
    assert own["cpu"]["mean"] == pytest.approx(usual["cpu"]["mean"] / 2)
    assert own["saturation"]["max"] == pytest.approx(usual["saturation"]["max"] * 2)
    out = run("describe", graph, "--cluster", "c.toml").out
    assert "devices of 5000 MIPS, the mean of the 2 in c.toml" in out
    assert "links of 500 Mbps" in out
    assert "CPU in devices of 12000 MIPS" in run("describe", graph, "--mips", "12e3").out
    refused = run("describe", graph, "--cluster", "c.toml", "--mips", "100")
    assert (refused.status, refused.out) == (2, "")
    assert "--mips and --cluster exclude each other" in refused.err


def test_a_folder_of_graphs_is_a_data_set(run: Callable, graph: str, tmp_path: Path) -> None:
    """Every .json file of the folder counts."""
    (tmp_path / "set").mkdir()
    for name in ("a", "b"):
        (tmp_path / "set" / f"{name}.json").write_text((tmp_path / graph).read_text())
    assert json.loads(run("describe", "set", "--json").out)["graphs"] == 2
