"""``streamplace flink advise`` from a user's door."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_flink import FakeFlink
from flink_documents import ANSWERS
from lazy_flink import Clock

from streamplace.engines.flink.measure import cluster as clusters

OFFERS_TOML = '[[offers]]\nname = "dev"\nprice = 0.1\nmips = 2500\ncores = 2\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder with offers."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "offers.toml").write_text(OFFERS_TOML)
    return tmp_path


def test_commands_name_the_folder_that_the_plan_is_written_to(
    folder: Path, run: Callable[..., Any], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "processes_of", lambda rest: {})
    with FakeFlink(ANSWERS).served() as flink:
        given = ("--offers", "offers.toml", "--warm-up", "0")
        asked = ("flink", "advise", "--rest", flink.url, *given)
        printed = run(*asked, "--rate", "5e3", "--budget", "1", "-o", "my plans/one")
    assert "with the files that -o my plans/one/ writes" in " ".join(printed.out.split())
    assert "--cluster 'my plans/one/cluster.toml'" in printed.out
    assert "--placement 'my plans/one/placement.json'" in printed.out
    assert (folder / "my plans/one/cluster.toml").exists()


@pytest.mark.slow
def test_the_command_prints_advice_and_writes_the_plan(
    folder: Path, run: Callable[..., Any], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One JSON document; the placement is one for the planned cluster."""
    monkeypatch.setattr(clusters, "processes_of", lambda rest: {})
    with FakeFlink(ANSWERS).served() as flink:
        given = ("--offers", "offers.toml", "--warm-up", "0")
        asked = ("flink", "advise", "--rest", flink.url, *given)
        document = json.loads(run(*asked, "--rate", "2x", "-o", "plan", "--json").out)
        printed = run(*asked, "--rate", "1000")
    assert document["rate"] == pytest.approx(2 * document["offered"])
    assert document["current"]["machines"] == {"dev": 1}
    assert document["plan"] == json.loads((folder / "plan/plan.json").read_text())
    simulated = ("plan/graph.json", "plan/placement.json", "--cluster", "plan/cluster.toml")
    carried = json.loads(run("simulate", *simulated, "--json").out)
    assert carried["relative_throughput"] == pytest.approx(1.0)
    assert "Today: 1 machine that cost 0.1 per hour." in printed.out
    assert "note: " in printed.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rate", "0x", "--offers", "offers.toml"), "the factor must be above 0"),
        (("--rate", "fast", "--offers", "offers.toml"), "rate 'fast'"),
        (("--rate", "2x", "--offers", "offers.toml", "--cluster", "offers.toml"), "exclude"),
        (("--rate", "2x", "--offers", "no.toml"), "no.toml"),
        (("--rate", "2x", "--rest", "http://127.0.0.1:1"), "no Flink answers"),
    ],
)
def test_bad_input_is_one_line(
    folder: Path, run: Callable[..., Any], options: tuple[str, ...], message: str
) -> None:
    """And exit code 2."""
    outcome = run("flink", "advise", *options)
    assert outcome.status == 2
    assert message in outcome.err
