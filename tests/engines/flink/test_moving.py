"""Moving, with a Flink that answers what it is told to: whatever fails, the job runs again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from fake_flink import InTurn, failure
from flink_documents import DELETED, KEPT, failed_by, job, jobs
from lazy_flink import Clock
from moving_cases import (
    AGAIN,
    BACK,
    FAILED,
    FINISHED,
    NEW,
    OLD,
    RETAINED,
    RUNNING,
    SAVED,
    STOP,
    UNDER_WAY,
    UNKNOWN,
    MoveCase,
    Started,
)

from streamplace.engines.flink.move import saving, settling, transaction
from streamplace.engines.flink.move.outcomes import NotSaved, Undecided
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.pin.apply import wait_started
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.rest.job_ids import return_trigger

RESTORING = job("shop", "RUNNING", {"source": "RUNNING", "map": "INITIALIZING"})


@pytest.fixture
def slower(monkeypatch: pytest.MonkeyPatch) -> MoveSettings:
    """Settings of a move after which the job is slower."""

    def settle(*_: object) -> None:
        raise FlinkError("slower")

    monkeypatch.setattr(transaction, "settle", settle)
    return MoveSettings(seconds=5.0, settle=0.1)


def test_a_job_is_started_from_its_savepoint_where_it_is_placed(case: MoveCase) -> None:
    """The request to stop it bears an id, and so does the job that follows."""
    moved = case.move().begin()
    assert case.started == [(NEW, "there", "file:/s/savepoint-1")]
    assert (moved.job, moved.savepoint) == (NEW, "file:/s/savepoint-1")
    asked = dict(case.flink.asked)[f"POST /jobs/{OLD}/stop"]
    assert (asked["triggerId"], asked["targetDirectory"]) == ("t1", case.folder.as_uri())


@pytest.mark.parametrize(
    ("failure", "error", "told"),
    [
        (
            FlinkError("no slots"),
            FlinkError,
            rf"^no slots; the job runs on its previous devices again, as job {BACK}",
        ),
        (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
    ],
    ids=["it fails", "it is interrupted"],
)
def test_a_job_that_does_not_start_goes_back(
    case: MoveCase, failure: BaseException, error: type[BaseException], told: str
) -> None:
    """Once, from the same savepoint; the id that it should have had is used up before."""
    with pytest.raises(error, match=told):
        case.move(failure).begin()
    assert case.started == [
        (NEW, "there", "file:/s/savepoint-1"),
        (BACK, "here", "file:/s/savepoint-1"),
    ]
    assert case.spent == [NEW]


def test_where_going_back_fails_the_savepoint_is_told(case: MoveCase) -> None:
    told = "no slots; the return.* failed, too: no disk.*in file:/s/savepoint-1.*: move --resume$"
    with pytest.raises(FlinkError, match=told):
        case.move(FlinkError("no slots"), FlinkError("no disk")).begin()


def test_a_move_waits_for_a_job_that_restores_its_state_and_is_finished_when_it_runs(
    case: MoveCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither cancelled nor started elsewhere, however short the timeout."""
    moving = replace(case.move(), settings=MoveSettings(seconds=0.2, settle=0.0))
    monkeypatch.setattr(transaction, "wait_started", wait_started)
    case.flink.answers[f"GET /jobs/{NEW}"] = RESTORING
    with pytest.raises(
        Undecided, match=rf"^job {NEW} is still starting after 0\.2 s: 'map' is.*: move --resume$"
    ):
        moving.begin()
    assert case.spent == []
    case.flink.answers |= {
        f"GET /jobs/{NEW}": job(NEW, "RUNNING", {"map": "RUNNING"}),
        "GET /jobs": jobs({OLD: "FINISHED", NEW: "RUNNING"}),
    }
    assert moving.conclude().job == NEW
    assert (len(case.started), case.flink.requests("PATCH")) == (1, [])


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("RUNNING", rf"job {BACK} is still starting after 0\.2 s: 'map' is INITIALIZING.*resume$"),
        ("RESTARTING", rf"c\.D: lost\. Job {BACK} has not ended, so do not start another.*resume$"),
    ],
)
def test_a_live_job_on_its_previous_devices_is_never_said_to_be_down(
    case: MoveCase, monkeypatch: pytest.MonkeyPatch, state: str, told: str
) -> None:
    """Whoever started it again from the savepoint would have two copies; nobody cancels it."""
    moving = replace(
        case.move(FlinkError("no slots")),
        settings=MoveSettings(seconds=0.2, settle=0.0),
    )
    monkeypatch.setattr(transaction, "wait_started", wait_started)
    case.flink.answers |= {
        f"GET /jobs/{BACK}": RESTORING | {"state": state},
        f"GET /jobs/{BACK}/exceptions": failed_by("c.D: lost"),
    }
    with pytest.raises(Undecided, match=told) as error:
        moving.begin()
    assert "not running" not in str(error.value)
    assert [name for name, _, _ in case.started] == [NEW, BACK]
    assert case.flink.requests("PATCH") == []


def test_a_job_that_is_being_stopped_goes_back_when_interrupted(
    case: MoveCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flink stops it all the same."""
    case.flink.answers[STOP] = InTurn(UNDER_WAY, UNDER_WAY, SAVED)
    sleep, calls = saving.time.sleep, []

    def interrupted(seconds: float) -> None:
        calls.append(seconds)
        if len(calls) == 1:
            raise KeyboardInterrupt
        sleep(seconds)

    moving = case.move()
    monkeypatch.setattr(saving.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        moving.begin()
    assert case.started == [(BACK, "here", "file:/s/savepoint-1")]


def test_a_job_that_cannot_be_saved_goes_on(case: MoveCase) -> None:
    case.flink.answers |= {
        STOP: FAILED,
        f"GET /jobs/{OLD}": RUNNING,
        f"GET /jobs/{OLD}/checkpoints": RETAINED,
    }
    for go in (case.move().begin, case.move().conclude):
        with pytest.raises(NotSaved, match=rf"^job {OLD} cannot be saved: no disk$"):
            go()
    assert case.started == []


ON_TRIAL = {"id": 4, "external_path": "file:/s/savepoint-4", "checkpoint_type": "SAVEPOINT"}
LATEST = {"completed": {"id": 3, "external_path": "s3://b/chk-3"}, "savepoint": ON_TRIAL}
"""Flink still tells the path of a savepoint that was removed before the job was stopped."""
BEGUN = {"restored": {"external_path": "file:/s/savepoint-0"}}


@pytest.mark.parametrize(
    ("checkpoints", "path"),
    [
        (RETAINED, "s3://b/chk-3"),
        ({"counts": {"completed": 4}, "latest": LATEST}, "s3://b/chk-3"),
        ({"counts": {"completed": 0}, "latest": BEGUN}, "file:/s/savepoint-0"),
        ({"counts": {"completed": 0}, "latest": {"restored": None}}, None),
    ],
    ids=["a checkpoint", "not a savepoint on trial", "what it began from", "nothing"],
)
def test_a_job_that_fails_while_it_is_stopped_goes_back_to_its_last_state(
    case: MoveCase, checkpoints: dict[str, Any], path: str | None
) -> None:
    """One without any is not started anew: it would have lost all of its state."""
    case.flink.answers |= {
        STOP: FAILED,
        f"GET /jobs/{OLD}": InTurn(RUNNING, job(OLD, "FAILED", {})),
        f"GET /jobs/{OLD}/checkpoints": checkpoints,
        f"GET /jobs/{OLD}/checkpoints/config": DELETED,
    }
    told = "none of its state outlives it" if path is None else "on its previous devices again"
    with pytest.raises(FlinkError, match=f"no disk.* {told}"):
        case.move().begin()
    assert case.started == ([] if path is None else [(BACK, "here", path)])


@pytest.mark.parametrize("saved", [RETAINED, {"counts": {"completed": 0}}])
def test_a_job_that_comes_to_its_end_meanwhile_is_not_started_again(
    case: MoveCase, saved: dict[str, Any]
) -> None:
    """From its last checkpoint it would tell twice what it had told since."""
    case.flink.answers |= {STOP: FAILED, f"GET /jobs/{OLD}/checkpoints": saved}
    with pytest.raises(FlinkError, match=rf"^job {OLD} finished before it could be saved; "):
        case.move().begin()
    assert case.started == []


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (failure("a.B: out of memory", status=500), r"500: a\.B: out of memory"),
        (UNDER_WAY, r"not complete after 0\.2 s"),
    ],
)
def test_a_savepoint_of_which_flink_does_not_tell_is_left_to_be_resumed(
    case: MoveCase, answer: Any, told: str
) -> None:
    """The job still runs, and ends with it: Flink cannot be told to give it up."""
    running = {f"GET /jobs/{OLD}": RUNNING, "GET /jobs": jobs({OLD: "RUNNING"})}
    case.flink.answers |= {STOP: answer} | running
    moves = MoveSettings(seconds=5.0, savepoint_seconds=0.2)
    with pytest.raises(Undecided, match=rf"{told}.*move --resume"):
        replace(case.move(), settings=moves).begin()
    assert case.started == []


@pytest.mark.parametrize(
    ("states", "outcome", "starts"),
    [
        ({OLD: "RUNNING"}, "moved", [(NEW, "there", "file:/s/savepoint-1")]),
        ({OLD: "FINISHED"}, "moved", [(NEW, "there", "file:/s/savepoint-1")]),
        ({OLD: "FINISHED", NEW: "RUNNING"}, "moved", []),
        ({OLD: "FINISHED", NEW: "FINISHED"}, "moved", []),
        (
            {OLD: "FINISHED", NEW: "FAILED"},
            "runs on its previous devices again",
            [(BACK, "here", "file:/s/savepoint-1")],
        ),
        (
            {OLD: "FINISHED", NEW: "CANCELED", BACK: "RUNNING"},
            "failed; the job runs on its previous devices",
            [],
        ),
        (
            {OLD: "FINISHED", NEW: "CANCELED", BACK: "FAILED"},
            f"runs on its previous devices again, as job {AGAIN}",
            [(AGAIN, "here", "file:/s/savepoint-1")],
        ),
        ({NEW: "RUNNING"}, "moved", []),
    ],
)
def test_a_move_is_resumed_from_whatever_is_the_case(
    case: MoveCase, states: dict[str, str], outcome: str, starts: Started
) -> None:
    """One copy runs afterwards, or the command that starts it is told."""
    case.flink.answers["GET /jobs"] = jobs(states)
    for name in (OLD, NEW, BACK, AGAIN):
        document = job(name, states[name], {}) if name in states else UNKNOWN
        case.flink.answers[f"GET /jobs/{name}"] = document
        case.flink.answers[f"GET /jobs/{name}/exceptions"] = {}
    case.flink.answers[STOP] = SAVED
    if states.get(OLD) == "RUNNING":  # it had not been asked to stop
        case.flink.answers[STOP] = InTurn(failure("no operation"), SAVED)
        case.flink.answers[f"GET /jobs/{OLD}"] = InTurn(RUNNING, RUNNING, FINISHED)
    begun = {"asked": NEW, "savepoint": "file:/s/savepoint-1"} if NEW in states else {}
    moving = case.move(**begun)
    if outcome == "moved":
        moved = moving.conclude()
        assert (moved.job, moved.savepoint) == (NEW, "file:/s/savepoint-1")
    else:
        with pytest.raises(FlinkError, match=outcome):
            moving.conclude()
    assert case.started == starts


@pytest.mark.parametrize("native", [True, False])
def test_a_job_that_goes_back_is_saved_in_the_same_format(
    case: MoveCase, slower: MoveSettings, native: bool
) -> None:
    stop, trigger = f"POST /jobs/{NEW}/stop", return_trigger(NEW)
    saved = {"status": {"id": "COMPLETED"}, "operation": {"location": "file:/s/savepoint-2"}}

    def asked(before: object, after: object) -> Callable[[], object]:
        return lambda: after if stop in dict(case.flink.asked) else before

    case.flink.answers |= {
        stop: {"request-id": trigger},
        f"GET /jobs/{NEW}": asked(RUNNING, FINISHED),
        f"GET /jobs/{NEW}/savepoints/{trigger}": asked(failure("no operation"), saved),
    }
    moving = replace(case.move(), settings=replace(slower, native=native))
    with pytest.raises(FlinkError, match=r"^slower; the job runs on its previous devices again"):
        moving.begin()
    assert case.started[-1] == (BACK, "here", "file:/s/savepoint-2")
    formats = [
        sent["formatType"] for request, sent in case.flink.asked if request.endswith("/stop")
    ]
    assert formats == (["NATIVE"] * 2 if native else ["CANONICAL"] * 2)


@pytest.mark.parametrize("is_refused", [True, False])
def test_a_moved_job_that_finishes_before_it_is_saved_for_its_return_is_not_started_again(
    case: MoveCase, slower: MoveSettings, is_refused: bool
) -> None:
    """It has told everything; Flink refuses to stop it, or has begun to and cannot save it."""
    trigger = return_trigger(NEW)
    stopped = failure("not running", status=409) if is_refused else {"request-id": trigger}
    case.flink.answers |= {
        f"GET /jobs/{NEW}": InTurn(RUNNING, RUNNING, FINISHED),
        f"POST /jobs/{NEW}/stop": stopped,
        f"GET /jobs/{NEW}/savepoints/{trigger}": InTurn(failure("no operation"), FAILED),
        f"GET /jobs/{NEW}/checkpoints": RETAINED,
        f"GET /jobs/{NEW}/checkpoints/config": KEPT,
    }
    with pytest.raises(FlinkError, match=f"^slower; job {NEW} has finished by itself$"):
        replace(case.move(), settings=slower).begin()
    assert [name for name, _, _ in case.started] == [NEW]


def test_what_may_be_written_twice_is_told(case: MoveCase) -> None:
    """The moved job fails, and goes back to its last checkpoint."""
    told: list[str] = []
    case.flink.answers |= {
        f"GET /jobs/{NEW}": job(NEW, "FAILED", {}),
        f"GET /jobs/{NEW}/checkpoints": RETAINED,
        f"GET /jobs/{NEW}/checkpoints/config": KEPT,
    }
    with pytest.raises(FlinkError, match="previous devices again"):
        replace(case.move(FlinkError("no slots")), tell=told.append).begin()
    assert case.started[-1] == (BACK, "here", "s3://b/chk-3")
    written = "what it wrote since then may be written twice"
    assert f"note: job {NEW} continues from s3://b/chk-3; {written}" in told


def test_nothing_is_started_where_flink_does_not_answer(case: MoveCase) -> None:
    """The command that goes on is told."""
    case.flink.answers[f"GET /jobs/{OLD}"] = RUNNING
    moving = replace(case.move(), rest=Rest("http://127.0.0.1:9"))
    with pytest.raises(FlinkError, match="no Flink answers"):
        moving.begin()
    assert case.started == []


@pytest.mark.parametrize(
    ("milliseconds", "counts", "fails"),
    [
        (46_000, [{"completed": 0}], ""),  # of a job with full queues: none was due yet
        (46_000, [{"completed": 0, "failed": 2}], ""),  # they had failed before all of it ran
        (46_000, [{"completed": 0, "failed": n} for n in (2, 3)], r" \(1 failed\)"),
        (46_000, [{"completed": n, "failed": n} for n in (0, 1)], ""),
        (2_000, [{"completed": 0}], ", though one was due every 10 s and takes 2 s"),
        (0, [{"completed": 0}], ", though one was due every 10 s"),
        (2_000, [{"completed": n} for n in (0, 1)], ""),
    ],
)
def test_a_moved_job_has_to_complete_the_checkpoints_that_are_due(
    case: MoveCase,
    monkeypatch: pytest.MonkeyPatch,
    milliseconds: int,
    counts: Sequence[Mapping[str, int]],
    fails: str,
) -> None:
    """Full queues delay them; how long they took before the move is known."""
    taken = {"completed": {"end_to_end_duration": milliseconds}}
    case.flink.answers |= {
        f"GET /jobs/{OLD}/checkpoints": {"counts": {"completed": 4}, "latest": taken},
        f"GET /jobs/{NEW}": job(NEW, "RUNNING", {}),
        f"GET /jobs/{NEW}/checkpoints": InTurn(*({"counts": numbers} for numbers in counts)),
        f"GET /jobs/{NEW}/checkpoints/config": KEPT | {"interval": 10_000},
    }
    monkeypatch.setattr(settling, "time", Clock())
    moving = replace(case.move(), settings=MoveSettings(seconds=5.0, settle=30.0))
    if not fails:
        assert moving.begin().job == NEW
        return
    with pytest.raises(FlinkError, match=f"completed no checkpoint 30 s after its start{fails}"):
        moving.begin()
