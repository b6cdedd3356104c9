"""Moving, with a Flink that answers what it is told to: whatever fails, the job runs again."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest
from scripted_flink import ScriptedFlink, healthy, job, scripted_flink

from streamplace.engines.flink import state, stopping, transaction
from streamplace.engines.flink.copies import CopyRuns
from streamplace.engines.flink.endings import EndedByOthers
from streamplace.engines.flink.folder import FileEntry, SavepointFolder
from streamplace.engines.flink.holder import Holder
from streamplace.engines.flink.journal import Journal, MoveLock, file_name
from streamplace.engines.flink.outcomes import Forgotten, NotRunning, Undecided
from streamplace.engines.flink.program import Program
from streamplace.engines.flink.rest import FlinkError, Rest
from streamplace.engines.flink.settling import Settling
from streamplace.engines.flink.state import Saving
from streamplace.engines.flink.submission import successor
from streamplace.engines.flink.transaction import Transaction, Way
from streamplace.engines.flink.uploads import ClusterJar
from streamplace.engines.live import Verification

OLD = "old"
NEW = successor(OLD)
BACK = successor(NEW)
AGAIN = successor(BACK)
STOP = f"GET /jobs/{OLD}/savepoints/t1"
SAVED = {"status": {"id": "COMPLETED"}, "operation": {"location": "file:/s/savepoint-1"}}
UNDER_WAY = {"status": {"id": "IN_PROGRESS"}}
FAILED = {"status": {"id": "COMPLETED"}, "operation": {"failure-cause": {"stack-trace": "no disk"}}}
RETAINED = {"counts": {"completed": 3}, "latest": {"completed": {"external_path": "s3://b/chk-3"}}}
KEPT = {"externalization": {"enabled": True, "delete_on_cancellation": True}}
KEPT_ALWAYS = {"externalization": {"enabled": True, "delete_on_cancellation": False}}
UNKNOWN = {"errors": ["Could not find Flink job (…)"]}
Started = list[tuple[str, str, str]]
RUNNING, FINISHED = job(OLD, "RUNNING", {}), job(OLD, "FINISHED", {})


class MemoryFolder(SavepointFolder):
    """A folder of savepoints in memory."""

    files: ClassVar[dict[str, str]] = {}

    def create(self, name: str, text: str) -> bool:
        """Write a file that does not exist yet."""
        return self.files.setdefault(name, text) is text

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        self.files[name] = text

    def read(self, name: str) -> str:
        """Text of a file."""
        return self.files.get(name, "")

    def delete(self, name: str) -> None:
        """Delete a file."""
        self.files.pop(name, None)

    def entries(self, prefix: str) -> list[FileEntry]:
        """Files whose names begin with a prefix; all are a minute old."""
        return [FileEntry(name, 60.0) for name in self.files if name.startswith(prefix)]

    def complete(self, uri: str, prefix: str) -> list[FileEntry]:
        """Savepoints that a test has put there, with their age as text."""
        names = [name.removeprefix(f"{uri}/") for name in self.files if name.startswith(f"{uri}/")]
        return [
            FileEntry(name, float(self.files[f"{uri}/{name}"]))
            for name in names
            if name.startswith(prefix)
        ]

    def spend(self, job: str) -> None:
        """Use up the id of a job."""
        self.files[f"spent {job}"] = ""


def jobs(states: Mapping[str, str]) -> dict[str, Any]:
    """The list of all jobs."""
    return {"jobs": [{"id": name, "status": state} for name, state in states.items()]}


def cluster_jar(rest: Rest, name: str) -> ClusterJar:
    """A jar that is on the cluster."""
    return ClusterJar(rest, lambda: nullcontext(Path(name)), name, name)


@pytest.fixture
def flink() -> Iterator[ScriptedFlink]:
    """A cluster on which the job ends with a savepoint when it is asked to."""
    answers: dict[str, Any] = healthy("dev-0", "dev-1") | {
        f"POST /jobs/{OLD}/stop": {"request-id": "t1"},
        STOP: SAVED,
        f"GET /jobs/{OLD}": [RUNNING, FINISHED],
        f"GET /jobs/{OLD}/checkpoints": {"counts": {"completed": 0}},
        f"GET /jobs/{NEW}": UNKNOWN,
        f"GET /jobs/{BACK}": UNKNOWN,
        f"GET /jobs/{AGAIN}": UNKNOWN,
        "GET /jobs": jobs({OLD: "FINISHED"}),
    }
    with scripted_flink(answers) as answering:
        yield answering


@pytest.fixture
def started() -> Started:
    """Id, way and savepoint of every job that was started."""
    return []


@pytest.fixture
def move(
    flink: ScriptedFlink, started: Started, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Transaction]:
    """A move whose starts fail as told, one after the other."""

    def made(*failures: BaseException) -> Transaction:
        left = [*failures]

        def submit(rest: Rest, jar: ClusterJar, request: dict[str, Any], job_id: str) -> None:
            started.append((job_id, jar.id, request["savepointPath"]))
            if left:
                raise left.pop(0)

        monkeypatch.setattr(transaction, "submit", submit)
        monkeypatch.setattr(transaction, "wait_started", lambda *_: None)
        monkeypatch.setattr(transaction, "verify", lambda *_: Verification((), (), ()))
        monkeypatch.setattr(stopping, "STEADY_SECONDS", 0.2)
        monkeypatch.setattr(Program, "run_request", lambda _, saved: {"savepointPath": saved.path})
        rest, moment = Rest(flink.url), datetime(2020, 1, 1, tzinfo=UTC)
        journal = Journal(
            job=OLD,
            trigger="t1",
            successor=NEW,
            before={"map": ["dev-0"]},
            after={"map": ["dev-1"]},
            began=moment,
            holder=Holder.current(),
        )
        folder = MemoryFolder(rest, "file:///s", cluster_jar(rest, "jar-files"))
        program = Program(Path("a.jar"))
        ways = (
            Way(cluster_jar(rest, "there"), program, journal.after),
            Way(cluster_jar(rest, "here"), program, journal.before),
        )
        folder.files.clear()
        return Transaction(
            rest,
            folder,
            MoveLock(folder, journal, []),
            ways,
            lambda _: None,
            5.0,
            Saving(),
            Settling(0.0),
            None,
            "move --resume",
        )

    return made


def test_a_job_is_started_from_its_savepoint_where_it_is_placed(
    move: Callable[..., Transaction], flink: ScriptedFlink, started: Started
) -> None:
    """The request to stop it bears an id, and so does the job that follows."""
    moved = move().begin()
    assert started == [(NEW, "there", "file:/s/savepoint-1")]
    assert (moved.job, moved.savepoint) == (NEW, "file:/s/savepoint-1")
    asked = dict(flink.asked)[f"POST /jobs/{OLD}/stop"]
    assert (asked["triggerId"], asked["targetDirectory"]) == ("t1", "file:///s")


def test_a_job_that_does_not_start_goes_back(
    move: Callable[..., Transaction], started: Started
) -> None:
    """Once, from the same savepoint; the id that it should have had is used up before."""
    moving = move(FlinkError("no slots"))
    with pytest.raises(
        FlinkError, match=rf"^no slots; the job runs on its previous devices again, as job {BACK}"
    ):
        moving.begin()
    assert started == [
        (NEW, "there", "file:/s/savepoint-1"),
        (BACK, "here", "file:/s/savepoint-1"),
    ]
    assert f"spent {NEW}" in MemoryFolder.files


def test_where_going_back_fails_the_savepoint_is_told(move: Callable[..., Transaction]) -> None:
    told = "no slots; the return.* failed, too: no disk.*in file:/s/savepoint-1.*: move --resume$"
    with pytest.raises(FlinkError, match=told):
        move(FlinkError("no slots"), FlinkError("no disk")).begin()


def test_an_interrupted_job_goes_back(move: Callable[..., Transaction], started: Started) -> None:
    """And the interruption goes on."""
    with pytest.raises(KeyboardInterrupt):
        move(KeyboardInterrupt()).begin()
    assert [way for _, way, _ in started] == ["there", "here"]


def test_a_job_that_is_being_stopped_goes_back_when_interrupted(
    move: Callable[..., Transaction],
    flink: ScriptedFlink,
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Flink stops it all the same."""
    flink.answers[STOP] = [UNDER_WAY, UNDER_WAY, SAVED]
    sleep, calls = state.time.sleep, []

    def interrupted(seconds: float) -> None:
        calls.append(seconds)
        if len(calls) == 1:
            raise KeyboardInterrupt
        sleep(seconds)

    moving = move()
    monkeypatch.setattr(state.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        moving.begin()
    assert started == [(BACK, "here", "file:/s/savepoint-1")]


def test_a_job_that_cannot_be_saved_goes_on(
    move: Callable[..., Transaction], flink: ScriptedFlink, started: Started
) -> None:
    flink.answers |= {
        STOP: FAILED,
        f"GET /jobs/{OLD}": RUNNING,
        f"GET /jobs/{OLD}/checkpoints": RETAINED,
    }
    with pytest.raises(FlinkError, match=rf"^job {OLD} cannot be saved: no disk$"):
        move().begin()
    assert started == []


def test_a_job_that_fails_while_it_is_stopped_goes_back_to_what_it_saved_last(
    move: Callable[..., Transaction], flink: ScriptedFlink, started: Started
) -> None:
    """A checkpoint that was retained."""
    flink.answers |= {
        STOP: FAILED,
        f"GET /jobs/{OLD}": [RUNNING, job(OLD, "FAILED", {})],
        f"GET /jobs/{OLD}/checkpoints": RETAINED,
        f"GET /jobs/{OLD}/checkpoints/config": KEPT,
    }
    with pytest.raises(FlinkError, match="no disk; the job runs on its previous devices again"):
        move().begin()
    assert started == [(BACK, "here", "s3://b/chk-3")]


@pytest.mark.parametrize("saved", [RETAINED, {"counts": {"completed": 0}}])
def test_a_job_that_comes_to_its_end_meanwhile_is_not_started_again(
    move: Callable[..., Transaction],
    flink: ScriptedFlink,
    started: Started,
    saved: dict[str, Any],
) -> None:
    """From its last checkpoint it would tell twice what it had told since."""
    flink.answers |= {STOP: FAILED, f"GET /jobs/{OLD}/checkpoints": saved}
    with pytest.raises(FlinkError, match=rf"^job {OLD} finished before it could be saved; "):
        move().begin()
    assert started == []


def test_a_savepoint_that_takes_too_long_is_left_to_be_resumed(
    move: Callable[..., Transaction], flink: ScriptedFlink, started: Started
) -> None:
    """Flink cannot be told to give it up."""
    flink.answers[STOP] = UNDER_WAY
    with pytest.raises(Undecided, match=r"not complete after 0\.2 s.*move --resume"):
        replace(move(), saving=Saving(0.2)).begin()
    assert started == []


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
    move: Callable[..., Transaction],
    flink: ScriptedFlink,
    started: Started,
    states: dict[str, str],
    outcome: str,
    starts: Started,
) -> None:
    """One copy runs afterwards, or the command that starts it is told."""
    flink.answers["GET /jobs"] = jobs(states)
    for name in (OLD, NEW, BACK, AGAIN):
        document = job(name, states[name], {}) if name in states else UNKNOWN
        flink.answers[f"GET /jobs/{name}"] = document
        flink.answers[f"GET /jobs/{name}/exceptions"] = {}
    flink.answers[STOP] = SAVED
    if states.get(OLD) == "RUNNING":  # it had not been asked to stop
        flink.answers[STOP] = [{"errors": ["no operation"]}, SAVED]
        flink.answers[f"GET /jobs/{OLD}"] = [RUNNING, RUNNING, FINISHED]
    moving = move()
    if outcome == "moved":
        moved = moving.conclude()
        assert (moved.job, moved.savepoint) == (NEW, "file:/s/savepoint-1")
    else:
        with pytest.raises(FlinkError, match=outcome):
            moving.conclude()
    assert started == starts


def test_nothing_is_started_where_flink_does_not_answer(
    move: Callable[..., Transaction], flink: ScriptedFlink, started: Started
) -> None:
    """The command that goes on is told, and the lock stays."""
    flink.answers[f"GET /jobs/{OLD}"] = RUNNING
    moving = replace(move(), rest=Rest("http://127.0.0.1:9"))
    with pytest.raises(FlinkError, match="no Flink answers"):
        moving.begin()
    assert started == []


STOPPED = {
    "counts": {"completed": 4},
    "latest": {
        "savepoint": {
            "id": 4,
            "external_path": "file:/s/savepoint-9",
            "checkpoint_type": "SYNC_SAVEPOINT",
        }
    },
}


def while_watched(
    moving: Transaction,
    flink: ScriptedFlink,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    checkpoints: dict[str, Any],
    policy: dict[str, Any],
) -> Transaction:
    """A move whose started job is in some state when it has been watched for a second."""
    flink.answers |= {
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
    return replace(moving, settling=Settling(1.0))


def test_a_job_that_a_user_cancels_while_it_is_watched_stays_cancelled(
    move: Callable[..., Transaction],
    flink: ScriptedFlink,
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where its state is, is told, if that outlives it."""
    moving = while_watched(move(), flink, monkeypatch, "CANCELED", RETAINED, KEPT_ALWAYS)
    with pytest.raises(EndedByOthers, match=r"cancelled by another user.*state is in s3://b/chk-3"):
        moving.begin()
    assert [name for name, _, _ in started] == [NEW]


def test_a_job_that_a_user_stops_while_it_is_watched_stays_stopped(
    move: Callable[..., Transaction],
    flink: ScriptedFlink,
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That is no success, and the savepoint is told."""
    moving = while_watched(move(), flink, monkeypatch, "FINISHED", STOPPED, KEPT_ALWAYS)
    with pytest.raises(EndedByOthers, match=r"stopped by another user.*file:/s/savepoint-9"):
        moving.begin()
    assert [name for name, _, _ in started] == [NEW]


@pytest.mark.parametrize(
    ("enabled", "path"), [(True, "s3://b/chk-3"), (False, "file:/s/savepoint-1")]
)
def test_a_job_that_fails_while_it_is_watched_goes_back_to_its_last_checkpoint(
    move: Callable[..., Transaction],
    flink: ScriptedFlink,
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
    *,
    enabled: bool,
    path: str,
) -> None:
    """If that outlives a failure, whatever becomes of it when a job is cancelled."""
    policy = {"externalization": {"enabled": enabled, "delete_on_cancellation": True}}
    moving = while_watched(move(), flink, monkeypatch, "FAILED", RETAINED, policy)
    with pytest.raises(FlinkError, match="runs on its previous devices again"):
        moving.begin()
    assert started == [(NEW, "there", "file:/s/savepoint-1"), (BACK, "here", path)]


def test_the_moved_job_is_not_started_where_another_goes_on_from_its_savepoint(
    move: Callable[..., Transaction], flink: ScriptedFlink, started: Started
) -> None:
    """Neither there nor where it ran: that would be a second copy."""
    restored = {"restored": {"external_path": "/s/savepoint-1"}}
    flink.answers |= {
        "GET /jobs": jobs({OLD: "FINISHED", "other": "RUNNING"}),
        "GET /jobs/other/checkpoints": {"counts": {"completed": 0}, "latest": restored},
    }
    with pytest.raises(CopyRuns, match=r"^job other \(RUNNING\) continues from"):
        move().begin()
    assert started == []


def test_the_moved_job_gives_way_to_a_copy_that_was_started_at_the_same_moment(
    move: Callable[..., Transaction],
    flink: ScriptedFlink,
    started: Started,
) -> None:
    """That bears an id which nobody could know before."""
    restored = {"restored": {"external_path": "/s/savepoint-1"}}
    flink.answers |= {
        "GET /jobs": [
            jobs({OLD: "FINISHED"}),
            jobs({OLD: "FINISHED", NEW: "RUNNING", "other": "RUNNING"}),
        ],
        "GET /jobs/other/checkpoints": {"counts": {"completed": 0}, "latest": restored},
        f"GET /jobs/{NEW}": [job(NEW, "RUNNING", {})] * 3 + [job(NEW, "CANCELED", {})],
        f"PATCH /jobs/{NEW}": {},
    }
    with pytest.raises(CopyRuns, match=r"^job other \(RUNNING\) continues from"):
        move().begin()
    assert [name for name, _, _ in started] == [NEW]
    assert flink.requests("PATCH") == [f"/jobs/{NEW}"]


def test_a_job_that_the_job_manager_has_forgotten_goes_on_from_its_savepoint(
    move: Callable[..., Transaction], flink: ScriptedFlink, started: Started
) -> None:
    """It is named with the command, and nobody is said to have cancelled the job."""
    flink.answers |= {f"GET /jobs/{OLD}": [RUNNING, UNKNOWN], STOP: UNKNOWN, "GET /jobs": jobs({})}
    moving = move()
    MemoryFolder.files |= {
        file_name(OLD, 1): "",
        "file:///s/savepoint-old-new": "10",
        "file:///s/savepoint-old-older": "20",
        "file:///s/savepoint-old-from-before-the-move": "100",
    }
    with pytest.raises(Forgotten, match=r"savepoint is file:///s/savepoint-old-new\. .*--resume"):
        moving.begin()
    assert started == []
    moved = moving.conclude()
    assert started == [(NEW, "there", "file:///s/savepoint-old-new")]
    assert moved.job == NEW


def test_a_forgotten_job_goes_on_from_what_its_successor_has_saved(
    move: Callable[..., Transaction], flink: ScriptedFlink, started: Started
) -> None:
    """The JobManager was restarted while the moved job was watched: that had gone further."""
    flink.answers["GET /jobs"] = jobs({})
    moving = move()
    moving.lock.journal = moving.journal.model_copy(
        update={"savepoint": "file:/s/savepoint-1", "checkpoints": "file:///c"}
    )
    MemoryFolder.files |= {f"file:///c/{NEW}/chk-4": "3", f"file:///c/{NEW}/chk-5": "2"}
    moving.conclude()
    assert started == [(NEW, "there", f"file:///c/{NEW}/chk-5")]


def test_a_job_of_which_nothing_is_saved_is_not_said_to_be_cancelled(
    move: Callable[..., Transaction], flink: ScriptedFlink, started: Started
) -> None:
    """A savepoint from before the move does not count: what followed it would be told again."""
    flink.answers |= {f"GET /jobs/{OLD}": UNKNOWN, "GET /jobs": jobs({})}
    moving = move()
    MemoryFolder.files |= {file_name(OLD, 1): "", "file:///s/savepoint-old-before": "100"}
    with pytest.raises(FlinkError, match=r"restarted without high availability, and .* no comp"):
        moving.begin()
    assert started == []


def test_a_return_that_was_begun_is_finished_and_not_taken_for_a_cancellation(
    move: Callable[..., Transaction], flink: ScriptedFlink, started: Started
) -> None:
    """The command had cancelled the successor itself, and was killed then."""
    flink.answers |= {
        "GET /jobs": jobs({OLD: "FINISHED", NEW: "CANCELED"}),
        f"GET /jobs/{NEW}": job(NEW, "CANCELED", {}),
        f"GET /jobs/{NEW}/checkpoints": {"counts": {"completed": 0}},
    }
    moving = move()
    moving.lock.journal = moving.journal.model_copy(
        update={"savepoint": "file:/s/savepoint-1", "returns": True}
    )
    with pytest.raises(FlinkError, match=f"runs on its previous devices again, as job {BACK}"):
        moving.conclude()
    assert started == [(BACK, "here", "file:/s/savepoint-1")]


def test_a_job_that_others_stop_first_is_started_by_the_command_that_is_told(
    move: Callable[..., Transaction], flink: ScriptedFlink, started: Started
) -> None:
    """And only by that: the journal keeps its savepoint."""
    flink.answers |= {
        f"GET /jobs/{OLD}": FINISHED,
        f"GET /jobs/{OLD}/checkpoints": STOPPED,
        "GET /jobs": jobs({OLD: "FINISHED"}),
        "GET /jars": {"files": []},
    }
    moving = move()
    with pytest.raises(
        NotRunning, match=r"stopped by somebody else.*savepoint-9;.*: move --resume"
    ):
        moving.begin()
    assert started == []
    moving.conclude()
    assert started == [(NEW, "there", "file:/s/savepoint-9")]
