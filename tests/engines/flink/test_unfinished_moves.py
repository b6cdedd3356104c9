"""Moves that were interrupted: who may finish them, and what other commands do meanwhile."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_flink import InTurn, failure, job, jobs
from moving_cases import (
    BACK,
    NEW,
    OLD,
    STOP,
    STOPPED,
    UNDER_WAY,
    UNKNOWN,
    MoveCase,
    cluster_jar,
)

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move.journal import (
    MoveClaim,
    MoveUnderWay,
    broken_off,
    forget,
    unfinished,
)
from streamplace.engines.flink.move.move import FlinkMove
from streamplace.engines.flink.move.running_settings import running_settings
from streamplace.engines.flink.move.savepoints import (
    CopyRuns,
    checkpoint_settings,
    checkpoint_totals,
    refuse_moved,
)
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.program.submission import submit
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer, Rest
from streamplace.errors import SettingError
from streamplace.io.store import Holder


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
    second = first.model_copy(update={"job": NEW, "trigger": "t2"})
    both = [first, second]
    assert [broken_off(both, name).trigger for name in (OLD, NEW)] == ["t1", "t2"]
    assert broken_off([first], BACK).trigger == "t1"
    for found, told in (([], "has no record of an interrupted move"), (both, "choose one with")):
        with pytest.raises(SettingError, match=told):
            broken_off(found, None)


@pytest.mark.parametrize("status", [503, 500])
@pytest.mark.parametrize("ask", [checkpoint_settings, checkpoint_totals, running_settings])
def test_a_flink_that_does_not_answer_is_not_said_to_keep_nothing(
    case: MoveCase, ask: Callable[[Rest, str], object], status: int
) -> None:
    """A job would be given up whose state exists, or would take no checkpoints any more."""
    busy = failure("a.B: busy", status=status)
    case.flink.answers |= {
        f"GET /jobs/{NEW}/config": {"execution-config": {}},
        f"GET /jobs/{NEW}/checkpoints": busy,
        f"GET /jobs/{NEW}/checkpoints/config": busy,
    }
    with pytest.raises(NoAnswer, match=r"a\.B: busy"):
        ask(case.flink.rest, NEW)


def test_a_job_that_another_command_has_started_is_told_from_one_of_its_own(
    case: MoveCase,
) -> None:
    """Both have the same id, which Flink accepts once."""
    spent = failure("c.DuplicateJobSubmissionException: Job has already been submitted.")
    runs = {f"GET /jobs/{NEW}": job(NEW, "RUNNING", {})}
    jar = cluster_jar(case.flink.rest, "there")
    rest = case.flink.rest.patient(60.0, lambda _: None)
    case.flink.answers |= runs | {"POST /jars/there/run": spent}
    assert not submit(rest, jar, {}, NEW, lambda: None)
    lost = failure("a.B: busy", status=503)
    case.flink.answers |= {
        f"GET /jobs/{NEW}": InTurn(UNKNOWN, runs[f"GET /jobs/{NEW}"]),
        "POST /jars/there/run": InTurn(lost, spent),
    }
    assert submit(rest, jar, {}, NEW, lambda: None)


@pytest.fixture
def mover(case: MoveCase) -> FlinkMove:
    """What moves jobs of the cluster."""
    program = Program(Path("a.jar"))
    return FlinkMove(case.flink.rest, Flink(Path(), "2.3.0"), program, lambda _: None)


@pytest.mark.parametrize(
    ("states", "asked_to_stop", "told"),
    [
        ({OLD: "RUNNING"}, UNKNOWN, ""),
        ({OLD: "RUNNING"}, UNDER_WAY, "interrupted"),
        ({OLD: "FINISHED", NEW: "RUNNING"}, UNKNOWN, ""),
        ({OLD: "FINISHED", NEW: "CANCELED"}, UNKNOWN, ""),
        ({OLD: "FINISHED"}, UNKNOWN, "interrupted"),
        ({}, UNKNOWN, "interrupted"),
    ],
)
def test_an_interrupted_move_is_finished_first_if_anything_of_it_is_left_to_do(
    case: MoveCase, mover: FlinkMove, states: dict[str, str], asked_to_stop: Any, told: str
) -> None:
    """Else its record goes; nothing else would ever end it."""
    case.flink.answers |= {
        "GET /jobs": jobs(states),
        STOP: asked_to_stop,
        f"GET /jobs/{OLD}/checkpoints": STOPPED,
    }
    case.move().claim.leave()
    job = next((one for one, state in states.items() if state == "RUNNING"), OLD)
    if told:
        with pytest.raises(FlinkError, match=rf"was {told}; finish it with: move --resume$"):
            mover.running_job(job)
        assert case.is_unfinished
        return
    assert mover.running_job(job) == job
    assert unfinished() == []


def test_a_command_that_ended_is_not_said_to_carry_its_move_out(
    case: MoveCase, mover: FlinkMove
) -> None:
    """Nor is one that runs said to be interrupted."""
    case.flink.answers["GET /jobs"] = jobs({OLD: "FINISHED"})
    case.flink.answers[f"GET /jobs/{OLD}/checkpoints"] = STOPPED
    moving = case.move()
    with pytest.raises(MoveUnderWay, match=f"job {OLD} is being moved, by process"):
        mover.running_job(OLD)
    here = Holder.current()
    dead = here.model_copy(update={"started": here.started + 1})
    moving.claim.save(holder=dead)
    with pytest.raises(FlinkError, match=f"^a move of job {OLD} was interrupted"):
        mover.running_job(OLD)


def test_a_move_of_another_cluster_is_not_resumed_on_this_one(
    case: MoveCase, mover: FlinkMove
) -> None:
    """It would start a second copy; one that knows the jobs is the same, whatever its address."""
    case.move(url="http://elsewhere:8081").claim.leave()
    assert [one.job for one in mover.unfinished_moves()] == [OLD]
    case.flink.answers["GET /jobs"] = jobs({})
    with pytest.raises(SettingError, match="no record of an interrupted move"):
        mover.resume()


@pytest.mark.parametrize(
    "path",
    ["/s/savepoint-1", f"s3://b/savepoint-{NEW[:6]}-aaaaaaaaaaaa", f"s3://b/{NEW}/chk-3"],
)
def test_nothing_is_started_from_the_state_of_an_unfinished_move(case: MoveCase, path: str) -> None:
    """Finishing it would start a second copy."""
    claim = case.move().claim
    claim.save(savepoint="file:/s/savepoint-1")
    refuse_moved("/s/savepoint-2")
    with pytest.raises(CopyRuns, match=rf"belongs to a move of job {OLD} .*: move --resume$"):
        refuse_moved(path)
    forget(OLD)
    refuse_moved(path)
