"""Moves of jobs that users end, that others start, and that the JobManager forgets meanwhile."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_flink import InTurn, failure
from flink_documents import DELETED, KEPT, job, jobs
from moving_cases import (
    AGAIN,
    BACK,
    FINISHED,
    NEW,
    OLD,
    RETAINED,
    RUNNING,
    STOP,
    STOPPED,
    UNDER_WAY,
    UNKNOWN,
    MoveCase,
    complete,
)

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move import transaction
from streamplace.engines.flink.move.journal import (
    MoveClaim,
    MoveUnderWay,
    forget,
    left_on_failure,
    unfinished,
)
from streamplace.engines.flink.move.move import FlinkMove, MovePlan
from streamplace.engines.flink.move.others import CopyRuns, EndedByOthers, refuse_moved
from streamplace.engines.flink.move.outcomes import (
    FlinkMoved,
    Forgotten,
    NotRunning,
    NotSaved,
    Undecided,
    has_to_go_on,
)
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.program import submission
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import FlinkError, Refusal, Rest
from streamplace.engines.flink.rest.job_ids import chain_of
from streamplace.errors import SettingError
from streamplace.io.store import Holder

NOT_KEPT = {"externalization": {"enabled": False, "delete_on_cancellation": True}}
GOES_BACK = "runs on its previous devices again"


@pytest.mark.parametrize(
    ("state", "checkpoints", "policy", "error", "told", "returned_from"),
    [
        ("CANCELED", RETAINED, KEPT, EndedByOthers, "cancelled by another .*in s3://b/chk-3", ""),
        ("CANCELED", RETAINED, DELETED, EndedByOthers, r"not started again(?!; its)", ""),
        ("FINISHED", STOPPED, KEPT, EndedByOthers, "stopped by another .*file:/s/savepoint-9", ""),
        ("FAILED", RETAINED, DELETED, FlinkError, GOES_BACK, "s3://b/chk-3"),
        ("FAILED", RETAINED, NOT_KEPT, FlinkError, GOES_BACK, "file:/s/savepoint-1"),
    ],
)
def test_a_job_that_users_end_while_it_is_watched_stays_ended_and_one_that_fails_goes_back(
    case: MoveCase,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    checkpoints: dict[str, Any],
    policy: dict[str, Any],
    error: type[FlinkError],
    told: str,
    returned_from: str,
) -> None:
    """Where its state is, is told.

    It goes back to its last checkpoint if that outlives a failure, whatever becomes of it when a
    job is cancelled, and else to its savepoint.
    """
    case.flink.answers |= {
        f"GET /jobs/{NEW}": job(NEW, state, {}),
        f"GET /jobs/{NEW}/checkpoints": checkpoints,
        f"GET /jobs/{NEW}/checkpoints/config": policy,
        f"GET /jobs/{NEW}/exceptions": {},
        "GET /jobs": jobs({OLD: "FINISHED", NEW: state}),
    }

    def settle(rest: Rest, name: str, *_: object) -> None:
        if rest.state(name) != "FINISHED":
            raise FlinkError(f"job {name} is {rest.state(name)} after its start")

    monkeypatch.setattr(transaction, "settle", settle)
    watched, words = MoveSettings(seconds=5.0, settle=1.0), list[str]()
    with pytest.raises(error, match=told):
        replace(case.move(), settings=watched, tell=words.append).begin()
    assert any("the move failed" in line for line in words) is bool(returned_from)
    back = [(BACK, "here", returned_from)] if returned_from else []
    assert case.started == [(NEW, "there", "file:/s/savepoint-1"), *back]


def test_a_moved_job_that_is_suspended_is_left_to_the_next_leader(
    case: MoveCase,
) -> None:
    """It may come back, so neither going back nor finishing the move starts another copy."""
    case.flink.answers |= {
        f"GET /jobs/{NEW}": job(NEW, "SUSPENDED", {}),
        "GET /jobs": jobs({OLD: "FINISHED", NEW: "SUSPENDED"}),
    }
    moving = case.move()
    with pytest.raises(Undecided, match=rf"job {NEW} is suspended until .* by: move --resume"):
        moving.begin()
    assert case.started == [(NEW, "there", "file:/s/savepoint-1")]
    with pytest.raises(Undecided, match=rf"job {NEW} is suspended until"):
        moving.conclude()
    assert len(case.started) == 1
    assert has_to_go_on(case.flink.rest, moving.journal)


@pytest.mark.parametrize("savepoint", [None, "file:/s/savepoint-1"])
def test_a_job_that_is_suspended_before_it_has_stopped_is_started_nowhere_else(
    case: MoveCase, savepoint: str | None
) -> None:
    """Although a savepoint of it is known: it may go on, and then write on its own."""
    case.flink.answers |= {
        f"GET /jobs/{OLD}": job(OLD, "SUSPENDED", {}),
        "GET /jobs": jobs({OLD: "SUSPENDED"}),
    }
    moving = case.move(savepoint=savepoint)
    with pytest.raises(Undecided, match=rf"job {OLD} is suspended until"):
        moving.conclude()
    assert case.started == []


def test_the_moved_job_is_not_started_where_another_goes_on_from_its_savepoint(
    case: MoveCase,
) -> None:
    """Neither there nor where it ran: that would be a second copy."""
    restored = {"restored": {"external_path": "/s/savepoint-1"}}
    case.flink.answers |= {
        "GET /jobs": jobs({OLD: "FINISHED", "other": "RUNNING"}),
        "GET /jobs/other/checkpoints": {"counts": {"completed": 0}, "latest": restored},
    }
    with pytest.raises(CopyRuns, match=r"^job other \(RUNNING\) continues from"):
        case.move().begin()
    assert case.started == []


def test_the_moved_job_gives_way_to_a_copy_that_was_started_at_the_same_moment(
    case: MoveCase,
) -> None:
    """That bears an id which nobody could know before."""
    restored = {"restored": {"external_path": "/s/savepoint-1"}}
    case.flink.answers |= {
        "GET /jobs": InTurn(
            jobs({OLD: "FINISHED"}),
            jobs({OLD: "FINISHED", NEW: "RUNNING", "other": "RUNNING"}),
        ),
        "GET /jobs/other/checkpoints": {"counts": {"completed": 0}, "latest": restored},
        f"GET /jobs/{NEW}": InTurn(*[job(NEW, "RUNNING", {})] * 3, job(NEW, "CANCELED", {})),
        f"PATCH /jobs/{NEW}": {},
    }
    with pytest.raises(CopyRuns, match=r"^job other \(RUNNING\) continues from"):
        case.move().begin()
    assert [name for name, _, _ in case.started] == [NEW]
    assert case.flink.requests("PATCH") == [f"/jobs/{NEW}"]


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
    moving.claim.save(moving.journal.model_copy(update={"holder": dead}))
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


def test_a_command_that_goes_on_by_itself_advises_no_other(
    mover: FlinkMove, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The JobManager was restarted, and the same command finishes the move."""

    def forgotten(*_: object) -> FlinkMoved:
        raise Forgotten("the JobManager no longer knows the job", "; move --resume")

    told: list[str] = []
    moved = FlinkMoved(NEW, 1.0, None)
    monkeypatch.setattr(FlinkMove, "_run", forgotten)
    monkeypatch.setattr(FlinkMove, "resume", lambda *_: moved)
    plan = MovePlan(OLD, {}, {})
    assert replace(mover, tell=told.append).run(plan) is moved
    assert told == ["the JobManager no longer knows the job; the move goes on"]


def test_a_start_waits_for_task_managers_of_its_own_placement_alone(case: MoveCase) -> None:
    """After a restart of the JobManager they join one after the other; others are not needed."""
    moved, managers = case.move(), case.flink.answers["GET /taskmanagers"]["taskmanagers"]
    there = [one for one in managers if one["id"] == "dev-1"]
    case.flink.answers["GET /taskmanagers"] = InTurn(
        {"taskmanagers": []}, {"taskmanagers": []}, {"taskmanagers": there}
    )
    told: list[str] = []
    replace(moved, tell=told.append).begin()
    assert case.started == [(NEW, "there", "file:/s/savepoint-1")]
    assert "waiting: 'dev-1' have to join the cluster" in told


def test_a_job_that_a_command_on_another_machine_has_started_is_left_to_it(
    case: MoveCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flink accepts the id of a successor once: the second starts nothing, and does not go back."""
    monkeypatch.setattr(transaction, "submit", lambda *_: False)
    with pytest.raises(
        MoveUnderWay, match=rf"was moved by another command.*continues as job {NEW}"
    ):
        case.move().begin()
    case.flink.answers["GET /jobs"] = jobs({OLD: "FINISHED", NEW: "RUNNING"})
    with pytest.raises(MoveUnderWay, match=f"continues as job {NEW}"):
        case.move().conclude()  # it was killed before it asked Flink to start the job
    assert case.flink.requests("PATCH") == []
    monkeypatch.setattr(transaction, "submit", lambda *_: False)
    case.flink.answers["GET /jobs"] = jobs({OLD: "FINISHED"})
    assert case.move(asked=NEW, savepoint="file:/s/savepoint-1").conclude().job == NEW


@pytest.mark.parametrize(
    "path",
    ["/s/savepoint-1", f"s3://b/savepoint-{NEW[:6]}-aaaaaaaaaaaa", f"s3://b/{NEW}/chk-3"],
)
def test_nothing_is_started_from_the_state_of_an_unfinished_move(case: MoveCase, path: str) -> None:
    """Finishing it would start a second copy."""
    claim = case.move().claim
    claim.save(claim.journal.model_copy(update={"savepoint": "file:/s/savepoint-1"}))
    refuse_moved("/s/savepoint-2")
    with pytest.raises(CopyRuns, match=rf"belongs to a move of job {OLD} .*: move --resume$"):
        refuse_moved(path)
    forget(OLD)
    refuse_moved(path)


@pytest.fixture
def mover(case: MoveCase) -> FlinkMove:
    """What moves jobs of the cluster."""
    program = Program(Path("a.jar"))
    return FlinkMove(case.flink.rest, Flink(Path(), "2.3.0"), program, lambda _: None)


def forgotten() -> dict[str, Any]:
    """Answers of a JobManager that is restarted right after it was asked to stop the job."""
    asked = {f"GET /jobs/{OLD}": InTurn(RUNNING, UNKNOWN), STOP: UNKNOWN}
    return asked | {"GET /jobs": jobs({})}


def test_a_job_that_the_job_manager_has_forgotten_goes_on_from_its_savepoint(
    case: MoveCase,
) -> None:
    """It is named with the command, and nobody is said to have cancelled the job."""
    case.flink.answers |= forgotten()
    moving = case.move()
    saved = complete(case.folder / "savepoint-old-new", 10)
    complete(case.folder / "savepoint-old-older", 20)
    complete(case.folder / "savepoint-old-from-before-the-move", 100)
    with pytest.raises(Forgotten, match=rf"state is {saved}\. .*--resume"):
        moving.begin()
    assert case.started == []
    moved = moving.conclude()
    assert case.started == [(NEW, "there", saved)]
    assert moved.job == NEW


def test_a_process_that_finishes_its_own_move_continues_from_its_savepoint(case: MoveCase) -> None:
    """As it does when the JobManager is restarted right after the job was stopped."""
    case.flink.answers |= forgotten()
    moving = case.move()
    saved = complete(case.folder / "savepoint-old-new", 10)
    with pytest.raises(Forgotten), left_on_failure(moving.claim):
        moving.begin()
    replace(moving, claim=MoveClaim.take(OLD)).conclude()
    assert case.started == [(NEW, "there", saved)]


@pytest.mark.parametrize("last", [NEW, chain_of(OLD)[-1]])
def test_a_forgotten_job_goes_on_from_what_its_successor_has_saved(
    case: MoveCase, tmp_path: Path, last: str
) -> None:
    """The JobManager was restarted while the moved job was watched, or one that had returned."""
    case.flink.answers["GET /jobs"] = jobs({})
    moving = case.move(savepoint="file:/s/savepoint-1", checkpoints=tmp_path.as_uri())
    complete(tmp_path / last / "chk-4", 3)
    latest = complete(tmp_path / last / "chk-5", 2)
    moving.conclude()
    assert case.started == [(NEW, "there", latest)]


@pytest.mark.parametrize(("tries", "again"), [(1, BACK), (2, AGAIN)])
def test_a_move_is_finished_although_all_of_its_jobs_ended_long_ago(
    case: MoveCase, monkeypatch: pytest.MonkeyPatch, tries: int, again: str
) -> None:
    """Flink does not list them any more, and accepts none of their ids a second time."""
    spent = "c.DuplicateJobSubmissionException: Job has already been submitted."

    monkeypatch.setattr(submission, "SPENT_SECONDS", 0.0)
    case.flink.answers |= {f"GET /jobs/{OLD}": UNKNOWN, "GET /jobs": jobs({})}
    case.flink.answers["POST /jars/here/run"] = failure(spent)
    moving = case.move(*[Refusal(spent, spent, 400)] * tries)
    saved = complete(case.folder / "savepoint-old-new", 10)
    with pytest.raises(FlinkError, match=f"runs on its previous devices again, as job {again}$"):
        moving.conclude()
    assert case.started[-1] == (again, "here", saved)


def test_a_job_of_which_nothing_is_saved_is_not_said_to_be_cancelled(case: MoveCase) -> None:
    """A savepoint from before the move does not count: what followed it would be told again."""
    case.flink.answers |= {f"GET /jobs/{OLD}": UNKNOWN, "GET /jobs": jobs({})}
    moving = case.move()
    complete(case.folder / "savepoint-old-before", 100)
    with pytest.raises(FlinkError, match=r"restarted without high availability, and no complete"):
        moving.begin()
    assert case.started == []


def test_a_return_that_was_begun_is_finished_and_not_taken_for_a_cancellation(
    case: MoveCase,
) -> None:
    """The command had cancelled the successor itself, and was killed then."""
    case.flink.answers |= {
        "GET /jobs": jobs({OLD: "FINISHED", NEW: "CANCELED"}),
        f"GET /jobs/{NEW}": job(NEW, "CANCELED", {}),
        f"GET /jobs/{NEW}/checkpoints": {"counts": {"completed": 0}},
    }
    moving = case.move(savepoint="file:/s/savepoint-1", returns=True, asked=NEW)
    with pytest.raises(FlinkError, match=f"runs on its previous devices again, as job {BACK}"):
        moving.conclude()
    assert case.started == [(BACK, "here", "file:/s/savepoint-1")]


def test_a_job_that_others_cancel_first_is_not_started(case: MoveCase) -> None:
    """Where its state is, is told, if that outlives it."""
    case.flink.answers |= {
        f"GET /jobs/{OLD}": job(OLD, "CANCELED", {}),
        STOP: UNKNOWN,
        f"GET /jobs/{OLD}/checkpoints": RETAINED,
        f"GET /jobs/{OLD}/checkpoints/config": KEPT,
    }
    told = r"cancelled by another user; nothing was started; its state is in s3://b/chk-3"
    with pytest.raises(FlinkError, match=told):
        case.move().begin()
    assert case.started == []


def test_a_job_that_others_stop_first_is_started_by_the_command_that_is_told(
    case: MoveCase,
) -> None:
    """And only by that: the journal keeps its savepoint."""
    case.flink.answers |= {
        f"GET /jobs/{OLD}": FINISHED,
        STOP: UNKNOWN,
        f"GET /jobs/{OLD}/checkpoints": STOPPED,
        "GET /jobs": jobs({OLD: "FINISHED"}),
    }
    moving = case.move()
    with pytest.raises(
        NotRunning, match=r"stopped by somebody else.*savepoint-9;.*: move --resume"
    ):
        moving.begin()
    assert case.started == []
    moving.conclude()
    assert case.started == [(NEW, "there", "file:/s/savepoint-9")]


@pytest.mark.parametrize(
    ("state", "error", "told", "started"),
    [
        ("CANCELED", FlinkError, r"cancelled by another .*state is in s3://b/chk-3", []),
        ("FAILED", FlinkError, GOES_BACK, [(BACK, "here", "s3://b/chk-3")]),
        (None, Forgotten, r"state is file:///.*/savepoint-old-new\. .*--resume", []),
        ("RUNNING", NotSaved, "goes on where it ran", []),
    ],
)
def test_a_job_goes_back_only_if_it_failed_where_flink_has_forgotten_to_stop_it(
    case: MoveCase,
    state: str | None,
    error: type[FlinkError],
    told: str,
    started: list[tuple[str, str, str]],
) -> None:
    """The JobManager was replaced by another; the last one was replaced once more meanwhile."""
    case.flink.answers |= {
        STOP: UNKNOWN,
        "GET /jobs": jobs({OLD: "FINISHED" if state == "RUNNING" else state or "CANCELED"}),
        f"GET /jobs/{OLD}": UNKNOWN if state is None else job(OLD, state, {}),
        f"GET /jobs/{OLD}/checkpoints": RETAINED,
        f"GET /jobs/{OLD}/checkpoints/config": KEPT,
        f"GET /jobs/{OLD}/exceptions": {},
    }
    moving = case.move()
    complete(case.folder / "savepoint-old-new", 10)
    with pytest.raises(error, match=told):
        moving.conclude()
    assert case.started == started


@pytest.mark.parametrize(("state", "is_checked"), [("RUNNING", True), ("FINISHED", False)])
def test_where_a_move_is_finished_its_job_is_watched_unless_it_has_read_all(
    case: MoveCase, state: str, *, is_checked: bool
) -> None:
    case.flink.answers |= {
        "GET /jobs": jobs({OLD: "FINISHED", NEW: state}),
        f"GET /jobs/{NEW}": job(NEW, state, {}),
        f"GET /jobs/{NEW}/checkpoints": {"counts": {"completed": 0}},
    }
    told: list[str] = []
    moving = replace(case.move(savepoint="file:/s/savepoint-1", asked=NEW), tell=told.append)
    assert moving.conclude().job == NEW
    assert case.started == []
    assert any("every subtask is where it is placed" in line for line in told) is is_checked
