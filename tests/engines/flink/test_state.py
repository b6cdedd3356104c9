"""State that jobs have saved, with a cluster that answers what it is told to."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_flink import DELETED, KEPT, FakeFlink, InTurn, failure, healthy, job, jobs

from streamplace.engines.flink.move.savepoints import last_kept

SAVED = {"counts": {"completed": 3}, "latest": {"completed": {"external_path": "s3://b/chk-3"}}}
NOTHING = {"counts": {"completed": 0}, "latest": {"completed": None}}
IN_MEMORY = {
    "counts": {"completed": 3},
    "latest": {"completed": {"external_path": "<checkpoint-not-externally-addressable>"}},
}


def with_savepoint(number: int, kind: str) -> dict[str, Any]:
    """Checkpoints of a job that has completed its third one, and a savepoint of this number."""
    completed = {"id": 3, "external_path": "s3://b/chk-3"}
    savepoint = {"id": number, "external_path": "s3://b/sp", "checkpoint_type": kind}
    return {"counts": {"completed": 4}, "latest": {"completed": completed, "savepoint": savepoint}}


def cluster(state: str) -> dict[str, Any]:
    """Answers of a cluster whose job "old" is in a state."""
    return {
        **healthy("dev-0"),
        "GET /jobs": jobs({"old": state}),
        "GET /jobs/old": job("old", state, {"map": state}),
    }


@pytest.fixture
def flink() -> Iterator[FakeFlink]:
    """A cluster on which a job runs that has completed three checkpoints."""
    answers = cluster("RUNNING") | {
        "GET /jobs/old/checkpoints": SAVED,
        "GET /jobs/old/checkpoints/config": KEPT,
    }
    with FakeFlink(answers).served() as answering:
        yield answering


@pytest.mark.parametrize(
    ("state", "saved", "policy", "last"),
    [
        ("RUNNING", SAVED, KEPT, "s3://b/chk-3"),
        ("CANCELED", SAVED, KEPT, "s3://b/chk-3"),
        ("CANCELED", SAVED, DELETED, None),
        ("CANCELED", IN_MEMORY, KEPT, None),
        ("CANCELED", NOTHING, KEPT, None),
        ("CANCELED", failure("no checkpointing", status=404), KEPT, None),
        ("RUNNING", with_savepoint(2, "SYNC_SAVEPOINT"), KEPT, "s3://b/chk-3"),
        ("FINISHED", with_savepoint(4, "SYNC_SAVEPOINT"), KEPT, "s3://b/sp"),
        ("RUNNING", with_savepoint(4, "SAVEPOINT"), KEPT, "s3://b/chk-3"),
        ("RUNNING", with_savepoint(4, "SAVEPOINT"), DELETED, "s3://b/sp"),
        ("RUNNING", with_savepoint(2, "SAVEPOINT"), DELETED, None),
    ],
)
def test_the_last_state_counts_if_it_is_in_a_file_and_outlives_its_job(
    state: str, saved: Any, policy: dict[str, Any], last: str | None
) -> None:
    """Of a savepoint that did not stop the job, Flink does not tell whether it still exists."""
    answers = {"GET /jobs/old/checkpoints": saved, "GET /jobs/old/checkpoints/config": policy}
    assert last_kept(FakeFlink(cluster(state) | answers).rest, "old") == last


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
    flink.answers |= cluster(state)
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
