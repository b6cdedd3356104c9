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
    UNKNOWN,
    MoveCase,
)

from streamplace.engines.flink.move import transaction
from streamplace.engines.flink.move.journal import MoveClaim, MoveUnderWay, broken_off
from streamplace.engines.flink.move.outcomes import FlinkMoved, NotRunning, Undecided, ending
from streamplace.engines.flink.move.saving import checkpoint_totals, outlives
from streamplace.engines.flink.move.transaction import Transaction
from streamplace.engines.flink.pin.apply import wait_started
from streamplace.engines.flink.program.submission import submit
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer
from streamplace.engines.flink.rest.job_ids import return_trigger
from streamplace.errors import FormatError, SettingError


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
    with error, ending(moving.claim, moving.rest, lambda _: None):
        way(moving)
    assert case.is_unfinished


@pytest.mark.parametrize("job", [NEW, BACK])
def test_the_jobs_that_a_move_may_start_are_claimed_with_the_one_that_it_moves(
    case: MoveCase, job: str
) -> None:
    journal = case.move().journal
    with pytest.raises(MoveUnderWay, match=f"job {OLD} is being moved"):
        MoveClaim.begin(journal.model_copy(update={"job": job}))


def test_an_interrupted_move_is_found_by_any_of_its_jobs(case: MoveCase) -> None:
    """Also by one that was moved before."""
    first = case.move().journal
    second = first.model_copy(update={"job": NEW, "successor": BACK, "trigger": "t2"})
    both = [first, second]
    assert [broken_off(both, name).trigger for name in (OLD, NEW)] == ["t1", "t2"]
    assert broken_off([first], BACK).trigger == "t1"
    for found, told in (([], "has no record of an interrupted move"), (both, "choose one with")):
        with pytest.raises(SettingError, match=told):
            broken_off(found, None)


@pytest.mark.parametrize("status", [503, 500])
def test_a_flink_that_does_not_answer_is_not_said_to_keep_nothing(
    case: MoveCase, status: int
) -> None:
    """A job would be given up whose state exists."""
    busy = failure("a.B: busy", status=status)
    case.flink.answers[f"GET /jobs/{NEW}/checkpoints/config"] = busy
    with pytest.raises(NoAnswer):
        outlives(case.flink.rest, NEW)


def test_a_move_whose_jar_is_gone_on_its_way_back_can_be_finished(case: MoveCase) -> None:
    """Nothing runs then, so its journal stays, and the command is told."""
    gone = [FormatError("a.jar: no such file"), FormatError("a.jar: no such file")]
    moving = case.move(*gone)
    told = r"return to the previous devices failed, too: a\.jar: .*start it with: move --resume"
    is_told = pytest.raises(NotRunning, match=told)
    with is_told, ending(moving.claim, moving.rest, lambda _: None):
        moving.begin()
    assert [name for name, _, _ in case.started] == [NEW, BACK]
    assert case.is_unfinished


def test_a_job_is_looked_up_however_long_its_submission_is_not_answered(case: MoveCase) -> None:
    """Its main method may take longer than a request waits; it is not submitted twice."""
    case.flink.answers |= {
        "POST /jars/there/run": failure("a.B: busy", status=503),
        f"GET /jobs/{NEW}": job(NEW, "RUNNING", {}),
    }
    moving = case.move()
    asked: list[None] = []
    rest = case.flink.rest.patient(0.0, print)
    assert submit(rest, moving.ways[0].jar(), {}, NEW, lambda: asked.append(None))
    assert case.flink.requests("POST") == ["/jars/there/run"]
    assert len(asked) == 1


def test_a_job_that_another_command_has_started_is_told_from_one_of_its_own(
    case: MoveCase,
) -> None:
    """Both have the same id, which Flink accepts once."""
    spent = failure("c.DuplicateJobSubmissionException: Job has already been submitted.")
    runs = {f"GET /jobs/{NEW}": job(NEW, "RUNNING", {})}
    jar = case.move().ways[0].jar()
    rest = case.flink.rest.patient(60.0, lambda _: None)
    case.flink.answers |= runs | {"POST /jars/there/run": spent}
    assert not submit(rest, jar, {}, NEW, lambda: None)
    lost = failure("a.B: busy", status=503)
    case.flink.answers |= {
        f"GET /jobs/{NEW}": InTurn(UNKNOWN, runs[f"GET /jobs/{NEW}"]),
        "POST /jars/there/run": InTurn(lost, spent),
    }
    assert submit(rest, jar, {}, NEW, lambda: None)


def test_a_silent_flink_is_not_said_to_have_completed_no_checkpoint(case: MoveCase) -> None:
    """Those that it had completed would seem to be new when it answers again."""
    case.flink.answers[f"GET /jobs/{OLD}/checkpoints"] = failure("a.B: busy", status=503)
    with pytest.raises(NoAnswer):
        checkpoint_totals(case.flink.rest, OLD)
