"""The journal of a move stays until a copy of the job runs, or has ended for good."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pytest
from fake_flink import InTurn, failure
from flink_documents import KEPT, failed_by, job, jobs
from moving_cases import (
    BACK,
    NEW,
    OLD,
    RETAINED,
    RUNNING,
    STOP,
    STOPPED,
    UNDER_WAY,
    MemoryFolder,
    MoveCase,
)

from streamplace.engines.flink.move import transaction
from streamplace.engines.flink.move.holder import Holder
from streamplace.engines.flink.move.journal import (
    BEAT,
    PREFIX,
    JobLocks,
    acquire,
    broken_off,
    file_name,
    now,
)
from streamplace.engines.flink.move.leftovers import LeftSavepoint, left_locks, needed_by
from streamplace.engines.flink.move.outcomes import FlinkMoved, NotRunning, Undecided, releasing
from streamplace.engines.flink.move.state import checkpoint_totals, outlives
from streamplace.engines.flink.move.transaction import Transaction
from streamplace.engines.flink.pin.apply import wait_started
from streamplace.engines.flink.program.submission import submit
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer
from streamplace.engines.flink.rest.job_ids import return_trigger
from streamplace.errors import FormatError


def interrupt() -> None:
    """Press Ctrl-C."""
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("way", "failures", "answers", "error"),
    [
        (  # Flink is silent for a while, and answers again before the command ends
            Transaction.conclude,
            (),
            {"GET /jobs": InTurn(failure("a.B: busy", status=503), jobs({OLD: "FINISHED"}))},
            pytest.raises(Undecided, match=r"not known; .* finish the move by: move --resume"),
        ),
        (  # interrupted again while the job is started where it was
            Transaction.begin,
            (KeyboardInterrupt(), KeyboardInterrupt()),
            {f"GET /jobs/{OLD}/checkpoints": STOPPED},
            pytest.raises(KeyboardInterrupt),
        ),
        (  # interrupted while the job is being stopped
            Transaction.conclude,
            (),
            {"GET /jobs": jobs({OLD: "RUNNING"}), STOP: InTurn(UNDER_WAY, interrupt, UNDER_WAY)},
            pytest.raises(KeyboardInterrupt),
        ),
        (  # interrupted while the job that was started is stopped for its return
            Transaction.begin,
            (FlinkError("no slots"), KeyboardInterrupt()),
            {
                "GET /jobs": jobs({OLD: "FINISHED", NEW: "RUNNING"}),
                f"GET /jobs/{NEW}": RUNNING,
                f"GET /jobs/{NEW}/savepoints/{return_trigger(NEW)}": InTurn(
                    UNDER_WAY, interrupt, UNDER_WAY
                ),
            },
            pytest.raises(KeyboardInterrupt),
        ),
        (  # the job has failed where it was started again
            Transaction.conclude,
            (),
            {
                "GET /jobs": jobs({OLD: "FINISHED", NEW: "CANCELED", BACK: "RUNNING"}),
                f"GET /jobs/{BACK}": job(BACK, "FAILED", {"map": "FAILED"}),
                f"GET /jobs/{BACK}/exceptions": failed_by("c.D: lost"),
                f"GET /jobs/{BACK}/checkpoints": RETAINED,
                f"GET /jobs/{BACK}/checkpoints/config": KEPT,
            },
            pytest.raises(NotRunning, match=r"c\.D: lost.*state is in s3://b/chk-3; start it with"),
        ),
    ],
)
def test_the_journal_stays_while_no_copy_is_sure_to_run(
    case: MoveCase,
    monkeypatch: pytest.MonkeyPatch,
    way: Callable[[Transaction], FlinkMoved],
    failures: Sequence[BaseException],
    answers: Mapping[str, Any],
    error: AbstractContextManager[Any],
) -> None:
    case.flink.answers |= answers
    moving = case.move(*failures)
    monkeypatch.setattr(transaction, "wait_started", wait_started)
    with error, releasing(moving.lock, lambda _: None):
        way(moving)
    assert file_name(NEW, 1) in MemoryFolder.files


def test_a_process_that_tries_again_and_again_keeps_one_lock(case: MoveCase) -> None:
    """As a watch does every few seconds, which renews all of its locks."""
    folder, journal = case.move().folder, case.move().journal
    for _ in range(3):
        lock = acquire(folder, journal, JobLocks.listed(folder, OLD))
    assert lock.names == [file_name(OLD, 1)]
    assert [*MemoryFolder.files] == [file_name(OLD, 1), f"{PREFIX}{OLD}.1{BEAT}"]
    other = journal.model_copy(update={"holder": Holder(host="x", process=1, started=1, user="")})
    assert acquire(folder, other, JobLocks.listed(folder, OLD)).names[-1] == file_name(OLD, 2)


def test_the_last_of_many_locks_has_the_journal(case: MoveCase) -> None:
    """Locks are numbered; by name, the tenth would come before the second."""
    folder, journal = case.move().folder, case.move().journal
    for number in sorted(range(1, 11), key=str):
        holder = Holder(host="x", process=number, started=1, user="me")
        later = journal.model_copy(update={"trigger": f"t{number}", "holder": holder})
        MemoryFolder.files[file_name(OLD, number)] = later.model_dump_json()
    assert broken_off(folder, OLD).trigger == "t10"
    MemoryFolder.rewritten.add(file_name(OLD, 10))
    (lock,) = left_locks(case.flink.rest, folder)
    assert lock.needed == f"job {OLD} is being moved, by process 10 of me on x"


@pytest.mark.parametrize("names", [(OLD, NEW), (NEW, OLD)])
def test_a_move_is_found_by_its_job_although_that_was_moved_before(
    case: MoveCase, names: Sequence[str]
) -> None:
    """The lock of the earlier move could not be removed, and covers its successor, too."""
    folder, journal = case.move().folder, case.move().journal
    both = {
        OLD: journal,
        NEW: journal.model_copy(update={"job": NEW, "successor": BACK, "trigger": "t2"}),
    }
    for name in names:
        MemoryFolder.files[file_name(name, 1)] = both[name].model_dump_json()
    assert [broken_off(folder, name).trigger for name in (OLD, NEW, BACK)] == ["t1", "t2", "t2"]


@pytest.mark.parametrize("status", [503, 500])
def test_a_flink_that_does_not_answer_is_not_said_to_keep_nothing(
    case: MoveCase, status: int
) -> None:
    """A savepoint would be removed that a job needs, and a job be given up whose state exists."""
    saved, folder = "file:/s/savepoint-1", case.move().folder
    case.flink.answers |= {
        "GET /jobs": jobs({NEW: "RUNNING"}),
        f"GET /jobs/{NEW}/checkpoints": failure("a.B: busy", status=status),
        f"GET /jobs/{NEW}/checkpoints/config": failure("a.B: busy", status=status),
    }
    left = LeftSavepoint(path=saved, job="gone", successor=NEW, made=now())
    with pytest.raises(NoAnswer):
        needed_by(case.flink.rest, folder, left)
    with pytest.raises(NoAnswer):
        outlives(case.flink.rest, NEW)


@pytest.mark.parametrize(
    ("path", "known", "is_needed"),
    [
        ("file:/s/savepoint-1", {NEW: ("RUNNING", 0)}, True),
        ("file:/s/savepoint-1", {NEW: ("RUNNING", 1)}, False),
        ("file:///s/savepoint-1", {NEW: ("RUNNING", 0)}, True),  # of a move that files resumed
        ("file:/s/savepoint-1", {NEW: ("FAILED", 0)}, True),
        ("file:/s/savepoint-1", {NEW: ("FAILED", 1)}, False),
        ("file:/s/savepoint-1", {NEW: ("CANCELED", 0)}, False),
        ("file:/s/savepoint-1", {NEW: ("FINISHED", 0)}, False),
        ("file:/s/savepoint-1", {"other": ("FAILED", 0)}, True),
        ("file:/s/savepoint-1", {NEW: ("FAILED", 0), BACK: ("RUNNING", 0)}, True),
        ("file:/s/savepoint-1", {NEW: ("FAILED", 0), BACK: ("RUNNING", 1)}, False),
        ("file:/s/savepoint-1", {NEW: ("FAILED", 0), "other": ("RUNNING", 1)}, False),
        ("file:/s/savepoint-2", {NEW: ("FAILED", 0)}, False),
    ],
)
def test_a_savepoint_stays_while_it_is_the_only_state_of_a_job(
    case: MoveCase, path: str, known: Mapping[str, tuple[str, int]], *, is_needed: bool
) -> None:
    """Flink tells the path in a form of its own; a failed job never completes a checkpoint."""
    restored = {"restored": {"external_path": "file:/s/savepoint-1"}}
    case.flink.answers["GET /jobs"] = jobs({name: state for name, (state, _) in known.items()})
    for name, (_, completed) in known.items():
        latest = restored | ({"completed": {"id": completed}} if completed else {})
        document = {"counts": {"completed": completed}, "latest": latest}
        case.flink.answers[f"GET /jobs/{name}/checkpoints"] = document
    left = LeftSavepoint(path=path, job=OLD, successor=NEW, made=now())
    assert (needed_by(case.flink.rest, case.move().folder, left) is not None) is is_needed


def test_a_savepoint_stays_although_its_job_has_made_another(case: MoveCase) -> None:
    """Flink counts that among the checkpoints, and restarts the job from the first nevertheless."""
    saved = "file:/s/savepoint-1"
    latest = {"restored": {"external_path": saved}, "savepoint": {"external_path": "s3://b/sp"}}
    case.flink.answers |= {
        "GET /jobs": jobs({NEW: "RUNNING"}),
        f"GET /jobs/{NEW}/checkpoints": {"counts": {"completed": 1}, "latest": latest},
    }
    left = LeftSavepoint(path=saved, job=OLD, successor=NEW, made=now())
    reason = needed_by(case.flink.rest, case.move().folder, left)
    assert reason == f"job {NEW} was started from it and has completed no checkpoint since"


def test_a_move_whose_jar_is_gone_on_its_way_back_can_be_finished(case: MoveCase) -> None:
    """Nothing runs then, so its journal stays, and the command is told."""
    gone = [FormatError("a.jar: no such file"), FormatError("a.jar: no such file")]
    moving = case.move(*gone)
    told = r"return to the previous devices failed, too: a\.jar: .*start it with: move --resume"
    with pytest.raises(NotRunning, match=told), releasing(moving.lock, lambda _: None):
        moving.begin()
    assert [name for name, _, _ in case.started] == [NEW, BACK]
    assert file_name(NEW, 1) in MemoryFolder.files


def test_a_job_is_looked_up_however_long_its_submission_is_not_answered(case: MoveCase) -> None:
    """Its main method may take longer than a request waits; it is not submitted twice."""
    case.flink.answers |= {
        "POST /jars/there/run": failure("a.B: busy", status=503),
        f"GET /jobs/{NEW}": job(NEW, "RUNNING", {}),
    }
    moving = case.move()
    submit(case.flink.rest.patient(0.0, print), moving.ways[0].jar, {}, NEW)
    assert case.flink.requests("POST") == ["/jars/there/run"]


def test_a_silent_flink_is_not_said_to_have_completed_no_checkpoint(case: MoveCase) -> None:
    """Those that it had completed would seem to be new when it answers again."""
    case.flink.answers[f"GET /jobs/{OLD}/checkpoints"] = failure("a.B: busy", status=503)
    with pytest.raises(NoAnswer):
        checkpoint_totals(case.flink.rest, OLD)
