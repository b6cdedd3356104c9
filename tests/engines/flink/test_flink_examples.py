"""The examples that run on a Flink of their own, with short measuring times."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from streamplace.engines.flink.dist import Flink
from streamplace.engines.flink.limited import why_unlimited

pytestmark = pytest.mark.xdist_group("flink")


def example(name: str) -> ModuleType:
    """An example as a module."""
    path = Path(__file__).parents[3] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_appendix_a_ranks_placements_as_the_paper_does(flink: Flink) -> None:
    """Spread what computes, keep together what talks; measured, with margin.

    Where neither counts nothing is gained or lost, up to what else the machine does meanwhile.
    """
    if reason := why_unlimited():
        pytest.skip(reason)
    appendix = example("flink_appendix_a")
    measured = {
        (cell.cpu, cell.payload, cell.placement): cell.measured
        for cell in appendix.measured_cells(flink, seconds=5)
    }
    gain = {
        (cpu, size): measured[cpu, size, "P2"] / measured[cpu, size, "P1"]
        for cpu in ("HIGH", "LOW")
        for size in ("BIG", "SMALL")
    }
    assert gain["HIGH", "BIG"] > 1.1
    assert gain["HIGH", "SMALL"] > 1.8
    assert gain["LOW", "BIG"] < 0.5
    assert 0.8 < gain["LOW", "SMALL"] < 1.25


def test_the_loop_ends_verified_where_devices_cannot_be_limited(
    flink: Flink, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says that nothing is gained then, and carries the offered rate."""
    loop = example("flink_loop")
    monkeypatch.setattr(loop, "why_unlimited", lambda: "devices have no limits")
    loop.run(flink, seconds=2)
    told = capsys.readouterr().out
    assert "devices have no limits" in told
    assert "verified: every subtask runs where it was placed" in told
    assert "| streamplace |" in told
