"""State that jobs have saved, with a cluster that answers what it is told to."""

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_lines import settings_file
from fake_flink import DELETED, KEPT, FakeFlink, InTurn, failure, healthy, job

from streamplace.engines.flink.move.saving import left_behind, saved_by
from streamplace.engines.flink.rest.client import Rest

SAVED = {"counts": {"completed": 3}, "latest": {"completed": {"external_path": "s3://b/chk-3"}}}
IN_MEMORY = {
    "counts": {"completed": 3},
    "latest": {"completed": {"external_path": "<checkpoint-not-externally-addressable>"}},
}


def jobs(**states: str) -> dict[str, Any]:
    """Answers of a cluster with these jobs of one operator, map, the oldest first."""
    rows = [
        {"jid": name, "id": name, "status": state, "state": state}
        | {"start-time": i, "end-time": -1, "duration": 1}
        for i, (name, state) in enumerate(states.items())
    ]
    listed = {"jobs": rows}
    return {
        **healthy("dev-0"),
        "GET /jobs": listed,
        "GET /jobs/overview": listed,
        **{f"GET /jobs/{name}": job(name, state, {"map": state}) for name, state in states.items()},
    }


@pytest.fixture
def flink() -> Iterator[FakeFlink]:
    """A cluster on which a job runs that has completed three checkpoints."""
    answers = jobs(old="RUNNING") | {
        "GET /jobs/old/checkpoints": SAVED,
        "GET /jobs/old/checkpoints/config": KEPT,
    }
    with FakeFlink(answers).served() as answering:
        yield answering


def test_a_job_without_checkpoints_has_saved_nothing(flink: FakeFlink) -> None:
    """Flink answers 404, or counts none."""
    del flink.answers["GET /jobs/old/checkpoints"]
    assert saved_by(Rest(flink.url), "old") is None
    flink.answers["GET /jobs/old/checkpoints"] = {"counts": {"completed": 0}, "latest": {}}
    assert saved_by(Rest(flink.url), "old") is None


def test_the_job_that_is_replaced_is_known_by_its_operators(flink: FakeFlink) -> None:
    """Those of the placement; another job on the cluster is none of its business."""
    left = left_behind(Rest(flink.url), ["map", "sink"])
    assert left is not None
    assert (left.job, left.checkpoints, left.last) == ("old", 3, "s3://b/chk-3")
    assert left_behind(Rest(flink.url), ["count", "sink"]) is None


def test_only_the_youngest_job_counts() -> None:
    """What it replaced has been taken over, or given up."""
    answers = jobs(older="CANCELED", old="CANCELED") | {"GET /jobs/older/checkpoints": SAVED}
    assert left_behind(FakeFlink(answers).rest, ["map"]) is None


@pytest.mark.parametrize(
    ("state", "saved", "policy", "told"),
    [
        (
            "RUNNING",
            SAVED,
            KEPT,
            "stop it by 'streamplace flink cancel --job old --savepoint FOLDER'",
        ),
        ("CANCELED", SAVED, KEPT, "--savepoint s3://b/chk-3"),
        ("CANCELED", SAVED, DELETED, "its state is gone"),
        ("CANCELED", IN_MEMORY, KEPT, "its state is gone"),
    ],
)
def test_what_can_be_done_about_it_is_told(
    state: str, saved: dict[str, Any], policy: dict[str, Any], told: str
) -> None:
    answers = {"GET /jobs/old/checkpoints": saved, "GET /jobs/old/checkpoints/config": policy}
    flink = FakeFlink(jobs(old=state) | answers)
    left = left_behind(flink.rest, ["map"])
    assert told in str(left)
    assert "3 checkpoints" in str(left)


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("RUNNING", ("has completed 3 checkpoints", "--savepoint FOLDER")),
        ("FINISHED", ("has finished because it has read all", "there is nothing to cancel")),
    ],
)
def test_cancel_drops_no_state_in_silence_and_ends_nothing_that_has_finished(
    refusal: Callable, flink: FakeFlink, state: str, told: tuple[str, str]
) -> None:
    flink.answers |= jobs(old=state)
    refused = refusal("flink", "cancel", "--rest", flink.url, "--job", "old")
    assert all(words in refused for words in told)
    assert flink.requests("PATCH") == flink.requests("POST") == []


def test_cancel_drops_state_when_told_to(run: Callable, flink: FakeFlink) -> None:
    ended = job("old", "CANCELED", {})
    flink.answers["GET /jobs/old"] = InTurn(flink.answers["GET /jobs/old"], ended)
    flink.answers["PATCH /jobs/old"] = {}
    answer = run("flink", "cancel", "--rest", flink.url, "--drop-state")
    assert (answer.status, answer.out) == (0, "old\n")
    assert flink.requests("PATCH") == ["/jobs/old"]


def test_cancel_with_a_savepoint_prints_its_path(run: Callable, flink: FakeFlink) -> None:
    """Also if the answer to the request for it was lost."""
    saved = {"status": {"id": "COMPLETED"}, "operation": {"location": "file:/s/savepoint-1"}}
    flink.answers |= {
        "GET /jobs/old": job("old", "FINISHED", {}),
        "POST /jobs/old/stop": InTurn(failure("a.B: busy", status=503), {"request-id": "t1"}),
        "GET /jobs/old/savepoints/t1": InTurn({"status": {"id": "IN_PROGRESS"}}, saved),
    }
    answer = run("flink", "cancel", "--rest", flink.url, "--savepoint", "file:///s")
    assert (answer.status, answer.out) == (0, "file:/s/savepoint-1\n")
    asked = dict(flink.asked)["POST /jobs/old/stop"]
    assert (asked["targetDirectory"], asked["drain"]) == ("file:///s", False)


def test_a_job_that_cannot_be_saved_goes_on(run: Callable, flink: FakeFlink) -> None:
    cause = {"stack-trace": "a.B: first\nCaused by: java.io.IOException: no such folder"}
    failed = {"status": {"id": "COMPLETED"}, "operation": {"failure-cause": cause}}
    flink.answers["POST /jobs/old/stop"] = {"request-id": "t1"}
    flink.answers["GET /jobs/old/savepoints/t1"] = failed
    answer = run("flink", "cancel", "--rest", flink.url, "--savepoint", "file:///s")
    assert answer.status == 2
    assert "job old cannot be saved: java.io.IOException: no such folder" in answer.err
    assert flink.requests("PATCH") == []


def test_apply_says_that_state_is_left_behind(
    run: Callable, flink: FakeFlink, tmp_path: Path
) -> None:
    """Before anything is sent; here the job's jar has no main class, so nothing is."""
    zipfile.ZipFile(tmp_path / "job.jar", "w").close()
    (tmp_path / "p.json").write_text('{"assignment": {"map": "dev-0"}}')
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "flink-dist-2.3.0.jar").touch()
    apply = ("flink", "apply", "job.jar", "--rest", flink.url, "--placement", "p.json")
    home = settings_file(tmp_path, flink_home=".")
    answer = run(*apply, *home)
    assert answer.err.startswith("note: the new job starts without state, but job old ('old', RUN")
    answer = run(*apply, *home, "--savepoint", "file:/s/savepoint-1")
    assert "note" not in answer.err
