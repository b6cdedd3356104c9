import json
from collections.abc import Callable
from pathlib import Path

import pytest


def test_figure_4_is_drawn_in_the_format_of_its_name(
    run: Callable, refusal: Callable, graph: str
) -> None:
    """Histograms of operators, CPU and saturation."""
    assert run("describe", graph, "-o", "figure.png").status == 0
    assert Path("figure.png").read_bytes().startswith(b"\x89PNG")
    assert ".png, .svg, .pdf" in refusal("describe", graph, "-o", "figure.bmp")


def test_cpu_is_measured_in_devices_of_the_cluster(
    run: Callable, refusal: Callable, graph: str
) -> None:
    """Devices of twice the mean speed halve the number; the units are printed."""
    rows = '{name = "slow", mips = 4000}, {name = "fast", mips = 3000, cores = 2}'
    Path("c.toml").write_text(f"devices = [{rows}]\nbandwidth = '500 Mbps'\n")
    usual = json.loads(run("describe", graph, "--json").out)
    own = json.loads(run("describe", graph, "--json", "--cluster", "c.toml").out)
    assert own["cpu"]["mean"] == pytest.approx(usual["cpu"]["mean"] / 2)
    assert own["saturation"]["max"] == pytest.approx(usual["saturation"]["max"] * 2)
    out = run("describe", graph, "--cluster", "c.toml").out
    assert "CPU in devices of 5000 MIPS, traffic in links of 500 Mbps" in " ".join(out.split())
    Path("one.toml").write_text("devices = [{name = 'alone'}]\n")
    alone = run("describe", graph, "--cluster", "one.toml").out
    assert "traffic in links without a limit" in " ".join(alone.split())
    assert "CPU in devices of 12000 MIPS" in run("describe", graph, "--mips", "12e3").out
    refused = refusal("describe", graph, "--cluster", "c.toml", "--mips", "100")
    assert "a cluster has its own units; drop mips and bandwidth" in refused
