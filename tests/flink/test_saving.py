"""State that jobs have saved: what they continue from, and who does already."""

from contextlib import nullcontext
from typing import Any

import pytest
from fake_flink import (
    DELETED,
    KEPT,
    UNDER_WAY,
    FakeFlink,
    InTurn,
    checkpoints,
    failure,
    healthy,
    job,
    jobs,
    no_savepoint,
    savepoint_at,
    stopped,
)

from streamplace.flink.move.savepoints import (
    CopyRuns,
    EndedByOthers,
    free_ids,
    last_kept,
    refuse_copy,
    refuse_ended,
)
from streamplace.flink.rest.client import chain_of

OLD, OTHER = "0123456789abcdef" * 2, "f" * 32
SAVEPOINT = "file:/s/savepoint-012345-aaaaaaaaaaaa"
SAVED = checkpoints(3, completed={"id": 3, "external_path": "s3://b/chk-3"})
IN_MEMORY = checkpoints(3, completed="<checkpoint-not-externally-addressable>")
EARLIER, LATER = (SAVED["latest"] | {"savepoint": stopped("s3://b/sp", n)} for n in (2, 4))
BESIDE = SAVED["latest"] | {"savepoint": stopped("s3://b/sp", 4) | {"checkpoint_type": "SAVEPOINT"}}
"""A later savepoint that did not stop the job: Flink does not tell whether it still exists."""


def cluster(states, saved=None, policy=KEPT):
    """Answers on jobs of these states, and on what they have saved."""
    answers: dict[str, Any] = healthy("dev-0") | {"GET /jobs": jobs(states)}
    for one, state in states.items():
        answers[f"GET /jobs/{one}"] = job("shop", state, {"map": state})
        answers[f"GET /jobs/{one}/checkpoints"] = (saved or {}).get(one, checkpoints())
        answers[f"GET /jobs/{one}/checkpoints/config"] = policy
    return answers


@pytest.mark.parametrize(
    ("state", "saved", "policy", "last"),
    [
        ("RUNNING", SAVED, KEPT, "s3://b/chk-3"),
        ("CANCELED", SAVED, KEPT, "s3://b/chk-3"),
        ("CANCELED", SAVED, DELETED, None),
        ("CANCELED", IN_MEMORY, KEPT, None),
        ("CANCELED", checkpoints(), KEPT, None),
        ("CANCELED", failure("no checkpointing", status=404), KEPT, None),
        ("CANCELED", checkpoints(4, **EARLIER), KEPT, "s3://b/chk-3"),
        ("CANCELED", checkpoints(4, **EARLIER), DELETED, None),
        ("FINISHED", checkpoints(4, **LATER), KEPT, "s3://b/sp"),
        ("CANCELED", checkpoints(4, **BESIDE), KEPT, "s3://b/chk-3"),
        ("CANCELED", checkpoints(4, **BESIDE), DELETED, "s3://b/sp"),
    ],
)
def test_the_last_state_counts_if_it_is_in_a_file_and_outlives_its_job(state, saved, policy, last):
    flink = FakeFlink(cluster({OLD: state}, {OLD: saved}, policy))
    assert last_kept(flink.rest, OLD) == last


@pytest.fixture
def flink():
    """A cluster on which a job runs that has completed three checkpoints."""
    with FakeFlink(cluster({OLD: "RUNNING"}, {OLD: SAVED})).served() as answering:
        yield answering


@pytest.mark.parametrize(
    ("state", "message"),
    [("RUNNING", ("3 checkpoints", "--savepoint FOLDER")), ("FINISHED", ("has finished",))],
)
def test_cancel_drops_no_state_in_silence_and_ends_nothing_that_has_finished(
    refusal, flink, state, message
):
    flink.answers |= cluster({OLD: state}, {OLD: SAVED})
    refused = refusal("flink", "cancel", "--rest", flink.url, "--job", OLD)
    assert all(words in refused for words in message)
    assert flink.requests("PATCH") == flink.requests("POST") == []


def test_cancel_drops_state_when_told_to(run, flink):
    path = f"GET /jobs/{OLD}"
    flink.answers |= {path: InTurn(flink.answers[path], job(OLD, "CANCELED", {}))}
    flink.answers[f"PATCH /jobs/{OLD}"] = {}
    answer = run("flink", "cancel", "--rest", flink.url, "--drop-state")
    assert (answer.status, answer.out) == (0, f"{OLD}\n")
    assert flink.requests("PATCH") == [f"/jobs/{OLD}"]


@pytest.mark.parametrize("then", [job(OLD, "FINISHED", {}), failure("unknown", status=404)])
def test_cancel_with_a_savepoint_prints_its_path(run, flink, then):
    """Also if the answer to the request for it was lost, or an application ends with its job."""
    stop = f"POST /jobs/{OLD}/stop"
    flink.answers |= {
        f"GET /jobs/{OLD}": then,
        stop: InTurn(failure("a.B: busy", status=503), {"request-id": "t1"}),
        f"GET /jobs/{OLD}/savepoints/t1": InTurn(UNDER_WAY, savepoint_at(SAVEPOINT)),
    }
    answer = run("flink", "cancel", "--rest", flink.url, "--savepoint", "file:///s")
    assert (answer.status, answer.out) == (0, f"{SAVEPOINT}\n")
    asked = dict(flink.asked)[stop]
    assert (asked["targetDirectory"], asked["drain"]) == ("file:///s", False)


def test_a_job_that_cannot_be_saved_goes_on(refusal, flink):
    flink.answers |= {
        f"POST /jobs/{OLD}/stop": {"request-id": "t1"},
        f"GET /jobs/{OLD}/savepoints/t1": no_savepoint(
            "a.B: first\nCaused by: java.io.IOException: no such folder"
        ),
    }
    line = refusal("flink", "cancel", "--rest", flink.url, "--savepoint", "file:///s")
    assert f"job {OLD} cannot be saved: java.io.IOException: no such folder" in line
    assert flink.requests("PATCH") == []


CONTINUES = rf"^job {OTHER} \(RUNNING\) continues from .* already"


@pytest.mark.parametrize(
    ("states", "restored", "given", "message"),
    [
        ({OTHER: "RUNNING"}, SAVEPOINT, "file:///s/savepoint-012345-aaaaaaaaaaaa/", CONTINUES),
        ({OTHER: "RUNNING"}, "hdfs://n:8020/s/savepoint-1", "hdfs:///s/savepoint-1", CONTINUES),
        ({OTHER: "RUNNING"}, "hdfs://n:8020/s/savepoint-1", "/s/savepoint-1", CONTINUES),
        ({OLD: "RUNNING"}, "", f"s3://b/{OLD}/chk-7", rf"^job {OLD} .* has taken the checkpoint"),
        ({OLD: "SUSPENDED"}, "", f"s3://b/{OLD}/chk-7", rf"^job {OLD} .* has taken the checkpoint"),
        ({OTHER: "CANCELED"}, SAVEPOINT, SAVEPOINT, ""),
        ({}, SAVEPOINT, SAVEPOINT, ""),
    ],
)
def test_state_from_which_a_job_runs_starts_no_second(states, restored, given, message):
    """However the path is written; the job is named. When that has ended, it may be used again.

    One that is suspended goes on once a JobManager leads again.
    """
    flink = FakeFlink(cluster(states, {OTHER: checkpoints(1, restored=restored)}))
    with pytest.raises(CopyRuns, match=message) if message else nullcontext():
        refuse_copy(flink.rest, given)


def test_two_commands_at_once_start_one_job_from_a_savepoint():
    """By the same id, which Flink takes once; the next one has another when that has ended."""
    flink = FakeFlink(cluster({}))
    rest = flink.rest
    first = next(free_ids(rest, SAVEPOINT))
    assert next(free_ids(rest, "/s/savepoint-012345-aaaaaaaaaaaa")) == first
    flink.answers = cluster({first: "RUNNING"})
    assert next(free_ids(rest, SAVEPOINT)) == first
    flink.answers = cluster({first: "FAILED"})
    assert next(free_ids(rest, SAVEPOINT)) not in (
        first,
        next(free_ids(rest, "s3://b/savepoint-012345-a")),
    )


@pytest.mark.parametrize(
    ("restored", "name", "is_copy"),
    [
        (SAVEPOINT, "other", True),
        (f"file:/c/{OLD}/chk-9", "other", True),
        (f"file:/c/{OTHER}/chk-9", "shop", True),
        (f"file:/c/{OTHER}/chk-9", "other", False),
        ("file:/s/savepoint-999999-aaaaaaaaaaaa", "shop", False),
    ],
)
def test_a_job_that_others_have_started_from_the_state_of_a_moved_one_is_its_copy(
    restored, name, *, is_copy
):
    """From the savepoint; from a checkpoint, or of its name, if it began after the other ended."""
    saved = {OTHER: checkpoints(1, restored=restored)}
    flink = FakeFlink(cluster({OLD: "FINISHED", OTHER: "RUNNING"}, saved))
    flink.answers[f"GET /jobs/{OLD}"] |= {"timestamps": {"FINISHED": 2000}}
    flink.answers[f"GET /jobs/{OTHER}"] |= {"timestamps": {"CREATED": 3000}}
    asked = (flink.rest, SAVEPOINT, chain_of(OLD), name)
    refused = pytest.raises(CopyRuns, match=f"job {OTHER}.*othing was started")
    with refused if is_copy else nullcontext():
        refuse_copy(*asked)
    flink.answers[f"GET /jobs/{OTHER}"] |= {"timestamps": {"CREATED": 1000}}
    if restored != SAVEPOINT:  # started while the moved job ran, such as for a trial of its state
        refuse_copy(*asked)


def test_where_a_job_is_forgotten_one_of_its_name_is_taken_for_a_copy():
    """Somebody has submitted it to the JobManager that was restarted."""
    with pytest.raises(CopyRuns, match=f"job {OTHER} .*has the same name 'shop'"):
        refuse_copy(FakeFlink(cluster({OTHER: "RUNNING"})).rest, SAVEPOINT, chain_of(OLD), "shop")


@pytest.mark.parametrize("kind", ["SYNC_SAVEPOINT", "SAVEPOINT"])
def test_a_stop_is_told_from_a_savepoint_of_a_job_that_finished(kind):
    """Only the first is somebody's doing."""
    saved = checkpoints(4, savepoint=stopped(SAVEPOINT) | {"checkpoint_type": kind})
    rest = FakeFlink(cluster({OLD: "FINISHED"}, {OLD: saved})).rest
    refused = pytest.raises(EndedByOthers, match=f"was stopped by another user.*{SAVEPOINT}")
    with refused if kind == "SYNC_SAVEPOINT" else nullcontext():
        refuse_ended(rest, OLD)
