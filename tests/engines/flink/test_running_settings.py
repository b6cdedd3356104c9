"""What a job is submitted with goes with it when it is moved, on a real cluster."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from fake_flink import FakeFlink
from flink_clusters import awaited, mover, submitted

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move.move import FlinkMove
from streamplace.engines.flink.move.running_settings import UNTOLD, lost, running_settings
from streamplace.engines.flink.move.savepoints import checkpoint_totals
from streamplace.engines.flink.move.settling import MoveSettings
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import Rest

pytestmark = pytest.mark.xdist_group("flink")
APART = {
    "numbers": ["dev-0"],
    "count": ["dev-1", "dev-2"],
    "total": ["dev-2", "dev-3"],
    "nowhere": ["dev-2", "dev-3"],
}
TOGETHER = APART | {name: ["dev-1", "dev-2"] for name in ("count", "total", "nowhere")}


def asked(rest: Rest, path: str) -> Any:
    """What Flink answers, whole."""
    with urllib.request.urlopen(f"{rest.url}{path}", timeout=30) as answer:
        return json.load(answer)


@pytest.mark.slow
def test_settings_and_maximum_parallelisms_are_kept(
    rest: Rest, flink: Flink, jobs: Path, tmp_path: Path
) -> None:
    """RocksDB stays RocksDB; in a chain the head's maximum holds for all, and is kept apart."""
    settings = {
        "state.backend.type": "rocksdb",
        "execution.checkpointing.interval": "2 s",
        "execution.checkpointing.timeout": "1 min",
        "execution.checkpointing.dir": (tmp_path / "checkpoints").as_uri(),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "execution.checkpointing.tolerable-failed-checkpoints": "3",
        "restart-strategy.type": "failure-rate",
        "restart-strategy.failure-rate.delay": "2 s",
        "restart-strategy.failure-rate.max-failures-per-interval": "4",
    }
    job = submitted(rest, jobs, "MixedJob", "200", settings=settings)
    before = [asked(rest, f"/jobs/{job}/{path}") for path in ("config", "checkpoints/config")]
    assert [v["maxParallelism"] for v in asked(rest, f"/jobs/{job}")["vertices"]] == [128, 12]
    program = Program(jobs, "MixedJob", ("200",))
    awaited(lambda: checkpoint_totals(rest, job).completed)
    steps: list[str] = []
    saved = (tmp_path / "saved").as_uri()
    move = FlinkMove(
        rest, flink, program, steps.append, MoveSettings(saved, settle=5.0, least_rate=0.0)
    )
    for places in (APART, TOGETHER):
        job = move.run(move.plan(job, Layout(places))).job
        after = [asked(rest, f"/jobs/{job}/{path}") for path in ("config", "checkpoints/config")]
        for document in (before[0], after[0]):
            document.pop("jid", None)
        assert after == before
        most = {
            vertex["name"].partition(" -> ")[0]: vertex["maxParallelism"]
            for vertex in asked(rest, f"/jobs/{job}")["vertices"]
        }
        assert most["count"] == 12
        assert most.get("total", 12) == 12
    assert "  state.backend.type: rocksdb, as in the running job" in steps


@pytest.mark.slow
def test_what_is_asked_for_counts_more_than_what_was(
    rest: Rest, flink: Flink, jobs: Path, tmp_path: Path
) -> None:
    """And is named before the job is stopped."""
    settings = {"state.backend.type": "rocksdb"}
    job = submitted(rest, jobs, "MixedJob", "200", settings=settings)
    program = Program(jobs, "MixedJob", ("200",), settings={"state.backend.type": "hashmap"})
    steps: list[str] = []
    plan = mover(rest, flink, program, tmp_path, steps.append).plan(job, Layout(APART))
    assert "state.backend.type" not in plan.settings
    assert "note: state.backend.type is rocksdb and becomes hashmap, as -D says" in steps


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["none", "fixed-delay", "failure-rate", "exponential-delay"])
def test_every_restart_strategy_is_read(rest: Rest, jobs: Path, kind: str) -> None:
    """As what it was submitted with."""
    settings = {"restart-strategy.type": kind}
    job = submitted(rest, jobs, "MixedJob", "200", settings=settings)
    assert running_settings(rest, job)["restart-strategy.type"] == kind
    rest.cancel(job)


EXPONENTIAL = (
    "Restart with exponential delay: starting at PT1S, increasing by 1.500000, with maximum PT1M. "
    "Delay resets after PT1H with jitter 0.100000"
)
FAILURE_RATE = (
    "Failure rate restart with maximum of 4 failures within interval PT1M and fixed delay PT2S."
)


@pytest.mark.parametrize(
    ("text", "kind", "more"),
    [
        ("Restart deactivated.", "none", {}),
        (
            "Restart with fixed delay (PT2S). #4 restart attempts.",
            "fixed-delay",
            {"delay": "2000 ms", "attempts": "4"},
        ),
        (
            FAILURE_RATE,
            "failure-rate",
            {
                "max-failures-per-interval": "4",
                "failure-rate-interval": "60000 ms",
                "delay": "2000 ms",
            },
        ),
        (
            EXPONENTIAL,
            "exponential-delay",
            {
                "initial-backoff": "1000 ms",
                "backoff-multiplier": "1.5",
                "max-backoff": "60000 ms",
                "reset-backoff-threshold": "3600000 ms",
                "jitter-factor": "0.1",
            },
        ),
    ],
)
def test_a_restart_strategy_is_read_from_what_flink_says_of_it(
    text: str, kind: str, more: dict[str, str]
) -> None:
    flink = FakeFlink({"GET /jobs/job/config": {"execution-config": {"restart-strategy": text}}})
    expected = {f"restart-strategy.{kind}.{key}": value for key, value in more.items()}
    expected |= {"restart-strategy.type": kind, "pipeline.object-reuse": "false"}
    assert running_settings(flink.rest, "job") == expected


def test_settings_that_flink_would_take_anyway_are_not_lost() -> None:
    """A checkpoint folder that it does not tell is missed only where none is given."""
    running = {"execution.checkpointing.mode": "exactly_once", "state.backend.type": "rocksdb"}
    assert lost(running, {}) == {"state.backend.type": ("rocksdb", "hashmap")}
    assert lost(running, {"state.backend.type": "rocksdb"}) == {}
    key = "execution.checkpointing.dir"
    assert lost({key: UNTOLD}, {}) == {key: (UNTOLD, "")}
    assert lost({key: UNTOLD}, {key: "s3://b"}) == {}
