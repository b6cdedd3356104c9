"""The transaction of a move, with a Flink that answers what it is told to: whatever disturbs it.

In the end one copy of the job runs, or the user is told what to do, and then the journal stays.
"""

import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from command_lines import settings_file
from fake_flink import (
    DELETED,
    JOB,
    KEPT,
    UNDER_WAY,
    UNKNOWN,
    Clock,
    FakeFlink,
    InTurn,
    checkpoints,
    cluster_jar,
    failed_by,
    failure,
    healthy,
    job,
    jobs,
    no_savepoint,
    on_devices,
    savepoint_at,
    stopped,
    write_program,
)

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import VERSION, Flink
from streamplace.engines.flink.move import move as moving
from streamplace.engines.flink.move import transaction
from streamplace.engines.flink.move.journal import (
    Journal,
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
    EndedByOthers,
    checkpoint_settings,
    checkpoint_totals,
    refuse_moved,
)
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.move.transaction import (
    Forgotten,
    NotSaved,
    StoppedByOthers,
    Transaction,
    Undecided,
    Way,
)
from streamplace.engines.flink.pin.apply import wait_started
from streamplace.engines.flink.program import submission
from streamplace.engines.flink.program.jars import SPENT
from streamplace.engines.flink.program.program import Program, remember
from streamplace.engines.flink.program.submission import ClusterJar, submit
from streamplace.engines.flink.rest import client
from streamplace.engines.flink.rest.client import (
    FlinkError,
    NoAnswer,
    Refusal,
    Rest,
    chain_of,
    return_trigger,
)
from streamplace.errors import FormatError, SettingError
from streamplace.io.store import Holder

OLD = "old"
NEW, BACK, AGAIN = chain_of(OLD, 4)[1:]
STOP = f"GET /jobs/{OLD}/savepoints/t1"
PATH, BEGAN = "file:/s/savepoint-1", "file:/s/savepoint-0"
SAVED, FAILED = savepoint_at(PATH), no_savepoint("no disk")
FORWARD, RETURN = (NEW, "there", PATH), (BACK, "here", PATH)
RETURN_TRIGGER = return_trigger(NEW)
GOES_BACK = "runs on its previous devices again"
RUNNING, FINISHED = job(OLD, "RUNNING", {}), job(OLD, "FINISHED", {})
RESTORING = job("shop", "RUNNING", {"source": "RUNNING", "map": "INITIALIZING"})
NOT_KEPT = {"externalization": {"enabled": False, "delete_on_cancellation": True}}
NOTHING = checkpoints()
RETAINED = checkpoints(3, completed="s3://b/chk-3")
STOPPED = checkpoints(4, savepoint=stopped("file:/s/savepoint-9", 4))
ON_TRIAL = {"id": 4, "external_path": "file:/s/savepoint-4", "checkpoint_type": "SAVEPOINT"}
TRIED = checkpoints(4, completed={"id": 3, "external_path": "s3://b/chk-3"}, savepoint=ON_TRIAL)
"""Flink still tells the path of a savepoint that was removed before the job was stopped."""
ASKED = {"asked": NEW, "savepoint": PATH}
NO_SLOTS = FlinkError("no slots")
COPY = checkpoints(restored="/s/savepoint-1")
Started = list[tuple[str, str, str]]


def interrupt() -> None:
    """Press Ctrl-C."""
    raise KeyboardInterrupt


def complete(place: Path, age: float) -> str:
    """Write a savepoint or checkpoint that is some seconds old; return its path."""
    place.mkdir(parents=True)
    (place / "_metadata").touch()
    os.utime(place / "_metadata", times=(time.time() - age,) * 2)
    return place.as_uri()


class MoveCase:
    """A move of a job on a cluster on which it ends with a savepoint when it is asked to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        unknown = {f"GET /jobs/{name}": UNKNOWN for name in (NEW, BACK, AGAIN)}
        answers = {
            f"POST /jobs/{OLD}/stop": {"request-id": "t1"},
            STOP: SAVED,
            f"GET /jobs/{OLD}": InTurn(RUNNING, RUNNING, FINISHED),
            f"GET /jobs/{OLD}/checkpoints": NOTHING,
            "GET /jobs": jobs({OLD: "FINISHED"}),
        }
        self.flink = FakeFlink(healthy("dev-0", "dev-1") | unknown | answers)
        self.started = Started()  # id, way and savepoint of every job that was started
        self.spent: list[str] = []  # ids that were used up
        self.folder = folder  # of savepoints
        self._failures: list[BaseException] = []
        self.flink.answers |= {f"POST /jars/{way}/run": self._spend for way in ("there", "here")}
        request = lambda _, saved: {"savepointPath": saved.path}  # noqa: E731
        monkeypatch.setattr(Program, "run_request", request)
        monkeypatch.setattr(Transaction, "_jar", self._jar)
        monkeypatch.setattr(transaction, "submit", self._submit)
        monkeypatch.setattr(transaction, "wait_started", lambda *_: None)
        monkeypatch.setattr(transaction, "check_placed", lambda *_: True)
        monkeypatch.setattr(transaction, "EFFECT_SECONDS", 0.2)

    @staticmethod
    def _jar(moving: Transaction, way: Way) -> ClusterJar:
        return cluster_jar(moving.rest, "there" if way is moving.there else "here")

    def _submit(self, _: Rest, jar: ClusterJar, request: Any, name: str, await_ready: Any) -> bool:
        await_ready()
        self.started.append((name, jar.id, request["savepointPath"]))
        if self._failures:
            raise self._failures.pop(0)
        return True

    def _spend(self) -> dict[str, str]:
        _, document = self.flink.asked[-1]
        assert document["entryClass"] == SPENT
        name = document["jobId"]
        self.spent.append(name)
        self.flink.answers[f"GET /jobs/{name}"] = job(name, "CANCELED", {})
        return {"jobid": name}

    @property
    def is_unfinished(self) -> bool:
        """Whether the journal has the move, for whoever resumes it."""
        return [one.job for one in unfinished() if not one.is_held] == [OLD]

    def move(self, *failures: BaseException, **facts: Any) -> Transaction:
        """A move whose starts fail as told, one after the other; its journal may have more."""
        self._failures = [*failures]
        rest = self.flink.rest
        journal = Journal(
            url=rest.url,
            job=OLD,
            trigger="t1",
            before=Layout({"map": ["dev-0"]}),
            after=Layout({"map": ["dev-1"]}),
            folder=self.folder.as_uri(),
            resume_by="move --resume",
            began=datetime.now(UTC) - timedelta(seconds=60),
        ).model_copy(update=facts)
        forget(OLD)
        program = Program(Path("a.jar"))
        there, here = Way(program, journal.after), Way(program, journal.before)
        return Transaction(
            rest,
            MoveClaim.begin(journal),
            Flink(Path(), "2.3.0"),
            there,
            here,
            lambda _: None,
            MoveSettings(seconds=5.0, settle=0.0),
            None,
        )


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> MoveCase:
    """A move of a job that ends with a savepoint when it is asked to."""
    return MoveCase(monkeypatch, tmp_path / "saved")


def known(states: Mapping[str, str]) -> dict[str, Any]:
    """Answers on the jobs of a move that are in these states; others are unknown."""
    answers: dict[str, Any] = {"GET /jobs": jobs(states)}
    for name in (OLD, NEW, BACK, AGAIN):
        answers[f"GET /jobs/{name}"] = job(name, states[name], {}) if name in states else UNKNOWN
        answers[f"GET /jobs/{name}/exceptions"] = failed_by("c.D: lost")
    return answers


def saved(name: str, checkpoints: Any, policy: Any = KEPT) -> dict[str, Any]:
    """Answers on the checkpoints of a job."""
    path = f"GET /jobs/{name}/checkpoints"
    return {path: checkpoints, f"{path}/config": policy}


@dataclass
class Disturbance:
    """What befalls a move, and what must become of it."""

    answers: dict[str, Any]  # what Flink answers otherwise
    told: str = ""  # pattern of the error; empty if the job is moved
    started: Started = field(default_factory=list)  # jobs, with their way and state
    error: type[BaseException] = FlinkError
    failures: Sequence[BaseException] = ()  # errors of the starts
    facts: Mapping[str, Any] = field(default_factory=dict)  # of the journal
    seconds: float = 0.0  # for which the job is watched after its start
    waits: bool = False  # whether it is waited for until it runs


def resumed(
    answers: dict[str, Any],
    told: str,
    started: Started,
    facts: Mapping[str, Any] | None = None,
    **more: Any,
) -> Disturbance:
    """What befalls a move that was interrupted."""
    journal = {"asked": OLD} | dict(facts or {})
    return Disturbance(answers, told, started, facts=journal, **more)


def watched(
    state: str, checkpoints: Any, policy: Any, error: type[FlinkError], told: str, back: str = ""
) -> Disturbance:
    """A job that is in a state while it is watched, and starts where it was from a path."""
    answers = known({OLD: "FINISHED", NEW: state}) | saved(NEW, checkpoints, policy)
    answers |= {f"GET /jobs/{OLD}": InTurn(RUNNING, RUNNING, FINISHED)}
    started = [FORWARD, (BACK, "here", back)] if back else [FORWARD]
    return Disturbance(answers, told, started, error, seconds=1.0)


def failing_stop(told: str, checkpoints: Any, path: str | None, state: str) -> Disturbance:
    """A job that ends while it is being stopped, and has saved something."""
    ended = {STOP: FAILED, f"GET /jobs/{OLD}": InTurn(RUNNING, RUNNING, job(OLD, state, {}))}
    started = [] if path is None else [(BACK, "here", path)]
    return Disturbance(ended | saved(OLD, checkpoints, DELETED), told, started)


def forgotten_stop(state: str, error: type[FlinkError], told: str, started: Started) -> Disturbance:
    """A JobManager that was replaced by another, which does not know that the job was to stop."""
    answers = known({OLD: state}) | saved(OLD, RETAINED)
    answers[STOP] = InTurn(UNDER_WAY, UNKNOWN) if state == "RUNNING" else UNKNOWN
    return resumed(answers, told, started, error=error)


def finished_there(stopped: Any) -> Disturbance:
    """A moved job that finishes before it is saved for its return: it has told everything."""
    answers = saved(NEW, RETAINED) | {
        f"GET /jobs/{NEW}": InTurn(RUNNING, RUNNING, FINISHED),
        f"POST /jobs/{NEW}/stop": stopped,
        f"GET /jobs/{NEW}/savepoints/{RETURN_TRIGGER}": InTurn(failure("no operation"), FAILED),
    }
    told = f"^no slots; job {NEW} has finished by itself$"
    return Disturbance(answers, told, [FORWARD], failures=[NO_SLOTS])


RESTARTING = {
    f"GET /jobs/{BACK}": RESTORING | {"state": "RESTARTING"},
    f"GET /jobs/{BACK}/exceptions": failed_by("c.D: lost"),
}
SUSPENDED = known({OLD: "SUSPENDED"})
NEW_IS_SUSPENDED = {
    f"GET /jobs/{NEW}": job(NEW, "SUSPENDED", {}),
    "GET /jobs": jobs({OLD: "FINISHED", NEW: "SUSPENDED"}),
}
RUNS = {f"GET /jobs/{OLD}": RUNNING, "GET /jobs": jobs({OLD: "RUNNING"})}
UNTOUCHED = {
    STOP: InTurn(failure("no operation"), SAVED),
    f"GET /jobs/{OLD}": InTurn(RUNNING, RUNNING, FINISHED),
    "GET /jobs": jobs({OLD: "RUNNING"}),
}
DISTURBANCES = {
    "nothing": Disturbance({}, "", [FORWARD]),
    "it does not start": Disturbance(
        {}, rf"^no slots; the job {GOES_BACK}, as job {BACK}", [FORWARD, RETURN],
        failures=[NO_SLOTS],
    ),
    "it is interrupted while it starts": Disturbance(
        {}, "^$", [FORWARD, RETURN], KeyboardInterrupt, [KeyboardInterrupt()]
    ),
    "it starts neither there nor here": Disturbance(
        {}, "no slots; the return.* failed, too: no disk.*in file:/s/savepoint-1.*: move --resume$",
        [FORWARD, RETURN], Undecided, [NO_SLOTS, FlinkError("no disk")],
    ),
    "its jar is gone": Disturbance(
        {}, r"the return.* failed, too: a\.jar: .*start it with: move --resume", [FORWARD, RETURN],
        Undecided, [FormatError("a.jar: no such file"), FormatError("a.jar: no such file")],
    ),
    "it restores its state": Disturbance(
        {f"GET /jobs/{NEW}": RESTORING},
        rf"^job {NEW} is still starting after 0\.2 s: 'map' is.*: move --resume$", [FORWARD],
        Undecided, waits=True,
    ),
    "it restores its state where it was": Disturbance(
        {f"GET /jobs/{BACK}": RESTORING},
        rf"job {BACK} is still starting after 0\.2 s: 'map' is INITIALIZING.*resume$",
        [FORWARD, RETURN], Undecided, [NO_SLOTS], waits=True,
    ),
    "it restarts where it was": Disturbance(
        RESTARTING, rf"c\.D: lost\. Job {BACK} has not ended, so do not start another.*resume$",
        [FORWARD, RETURN], Undecided, [NO_SLOTS], waits=True,
    ),
    "it cannot be saved": Disturbance(
        {STOP: FAILED, f"GET /jobs/{OLD}": RUNNING} | saved(OLD, RETAINED),
        rf"^job {OLD} cannot be saved: no disk$", [], NotSaved,
    ),
    "it could not be saved": resumed(
        {STOP: FAILED, f"GET /jobs/{OLD}": RUNNING} | saved(OLD, RETAINED),
        rf"^job {OLD} cannot be saved: no disk$", [], error=NotSaved,
    ),
    "it fails, with a checkpoint": failing_stop(
        f"no disk.*{GOES_BACK}", RETAINED, "s3://b/chk-3", "FAILED"
    ),
    "it fails, with a savepoint on trial": failing_stop(
        f"no disk.*{GOES_BACK}", TRIED, "s3://b/chk-3",
        "FAILED",
    ),
    "it fails, with what it began from": failing_stop(
        f"no disk.*{GOES_BACK}", checkpoints(restored=BEGAN), BEGAN, "FAILED"
    ),
    "it fails, with nothing": failing_stop(
        "no disk.*left no checkpoint or savepoint", checkpoints(restored=None), None,
        "FAILED",
    ),
    "it finishes": failing_stop(
        rf"^job {OLD} finished before it could be saved; ", RETAINED, None, "FINISHED"
    ),
    "Flink fails while it is saved": Disturbance(
        {STOP: failure("a.B: out of memory", status=500)} | RUNS,
        r"500: a\.B: out of memory.*move --resume", [], Undecided,
    ),
    "it is saved for long": Disturbance(
        {STOP: UNDER_WAY} | RUNS, r"not complete after 0\.2 s.*move --resume", [], Undecided
    ),
    "others cancel it first": Disturbance(
        {f"GET /jobs/{OLD}": job(OLD, "CANCELED", {}), STOP: UNKNOWN} | saved(OLD, RETAINED),
        "cancelled by another user; nothing was started; its state is in s3://b/chk-3",
    ),
    "another goes on from its savepoint": Disturbance(
        {"GET /jobs": jobs({OLD: "FINISHED", "other": "RUNNING"}), **saved("other", COPY)},
        r"^job other \(RUNNING\) continues from", [], CopyRuns,
    ),
    "it is suspended": Disturbance(
        NEW_IS_SUSPENDED, rf"job {NEW} is suspended until .* by: move --resume", [FORWARD],
        Undecided,
    ),
    "it was suspended": resumed(
        NEW_IS_SUSPENDED, rf"job {NEW} is suspended until", [], error=Undecided, facts=ASKED
    ),
    "it was suspended before it stopped": resumed(
        SUSPENDED, rf"job {OLD} is suspended until", [], error=Undecided
    ),
    "it was suspended after it was saved": resumed(
        SUSPENDED, rf"job {OLD} is suspended until", [], error=Undecided, facts={"savepoint": PATH}
    ),
    "others cancel it there": watched(
        "CANCELED", RETAINED, KEPT, EndedByOthers, "cancelled by another .*in s3://b/chk-3"
    ),
    "others cancel it there without state": watched(
        "CANCELED", RETAINED, DELETED, EndedByOthers, r"not started again(?!; its)"
    ),
    "others stop it there": watched(
        "FINISHED", STOPPED, KEPT, EndedByOthers, "stopped by another .*file:/s/savepoint-9"
    ),
    "it fails there": watched("FAILED", RETAINED, DELETED, FlinkError, GOES_BACK, "s3://b/chk-3"),
    "it fails there without state": watched(
        "FAILED", RETAINED, NOT_KEPT, FlinkError, GOES_BACK, PATH
    ),
    "it had not been asked to stop": resumed(UNTOUCHED, "", [FORWARD]),
    "it had stopped": resumed(known({OLD: "FINISHED"}), "", [FORWARD]),
    "it had been started": resumed(known({OLD: "FINISHED", NEW: "RUNNING"}), "", [], facts=ASKED),
    "it had finished": resumed(known({OLD: "FINISHED", NEW: "FINISHED"}), "", [], facts=ASKED),
    "it had failed": resumed(
        known({OLD: "FINISHED", NEW: "FAILED"}), GOES_BACK, [RETURN], facts=ASKED
    ),
    "it had returned": resumed(
        known({OLD: "FINISHED", NEW: "CANCELED", BACK: "RUNNING"}),
        "failed; the job runs on its previous devices", [], facts=ASKED,
    ),
    "it had returned and failed": resumed(
        known({OLD: "FINISHED", NEW: "CANCELED", BACK: "FAILED"}), f"{GOES_BACK}, as job {AGAIN}",
        [(AGAIN, "here", PATH)], facts=ASKED,
    ),
    "it fails where it had returned": resumed(
        known({OLD: "FINISHED", NEW: "CANCELED", BACK: "RUNNING"})
        | {f"GET /jobs/{BACK}": job(BACK, "FAILED", {"map": "FAILED"})} | saved(BACK, RETAINED),
        r"c\.D: lost.*state is in s3://b/chk-3; start it with", [], error=Undecided, facts=ASKED,
        waits=True,
    ),
    "its first job is forgotten": resumed(known({NEW: "RUNNING"}), "", [], facts=ASKED),
    "its return had begun": resumed(
        known({OLD: "FINISHED", NEW: "CANCELED"}) | saved(NEW, NOTHING),
        f"{GOES_BACK}, as job {BACK}", [RETURN], facts=ASKED | {"returns": True},
    ),
    "others cancelled it, Flink forgot": forgotten_stop(
        "CANCELED", FlinkError, r"cancelled by another .*state is in s3://b/chk-3", []
    ),
    "it failed, Flink forgot": forgotten_stop(
        "FAILED", FlinkError, GOES_BACK, [(BACK, "here", "s3://b/chk-3")]
    ),
    "it runs, Flink forgot": forgotten_stop("RUNNING", NotSaved, "continues where it ran", []),
    "it stopped, Flink forgot": resumed(
        known({OLD: "RUNNING"}) | saved(OLD, checkpoints(4, savepoint=stopped(PATH, 4)))
        | {f"GET /jobs/{OLD}": FINISHED, STOP: InTurn(UNDER_WAY, UNKNOWN)}, "", [FORWARD],
    ),
    "Flink is silent for a while": resumed(
        {"GET /jobs": InTurn(failure("a.B: busy", status=503), jobs({OLD: "FINISHED"}))},
        r"not known; .* finish the move by: move --resume", [], error=Undecided,
    ),
    "it finishes, so Flink refuses to stop it": finished_there(failure("not running", status=409)),
    "it finishes, so Flink cannot save it": finished_there({"request-id": RETURN_TRIGGER}),
    "it is interrupted while it is being stopped": Disturbance(
        {STOP: InTurn(UNDER_WAY, interrupt, SAVED)}, "^$", [RETURN], KeyboardInterrupt
    ),
    "it is interrupted twice": Disturbance(
        saved(OLD, STOPPED), "^$", [FORWARD, RETURN], KeyboardInterrupt,
        [KeyboardInterrupt(), KeyboardInterrupt()],
    ),
    "it is interrupted while it stops for its return": Disturbance(
        {
            "GET /jobs": jobs({OLD: "FINISHED", NEW: "RUNNING"}), f"GET /jobs/{NEW}": RUNNING,
            f"GET /jobs/{NEW}/savepoints/{RETURN_TRIGGER}": InTurn(
                UNDER_WAY, interrupt, UNDER_WAY
            ),
        },
        "^$", [FORWARD], KeyboardInterrupt, [NO_SLOTS],
    ),
    "it is interrupted while it stops": resumed(
        {"GET /jobs": jobs({OLD: "RUNNING"}), STOP: InTurn(UNDER_WAY, interrupt, UNDER_WAY)}, "^$",
        [], error=KeyboardInterrupt,
    ),
}  # fmt: skip
UNFINISHED = {
    "it is interrupted twice",
    "it is interrupted while it stops",
    "it is interrupted while it stops for its return",
}
"""Disturbances by Ctrl-C after which the journal stays."""


@pytest.mark.parametrize("name", DISTURBANCES)
def test_one_copy_runs_or_the_user_is_told_what_to_do(
    case: MoveCase, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The journal stays exactly while no copy is sure to run."""
    befalls = DISTURBANCES[name]
    case.flink.answers |= befalls.answers
    listed = case.flink.answers["GET /jobs"]

    def listed_now() -> Any:
        """List no successors before any was started."""
        rows = [row for row in listed["jobs"] if case.started or row["id"] != NEW]
        return {"jobs": rows}

    if not befalls.facts:
        case.flink.answers["GET /jobs"] = listed_now

    def settle(rest: Rest, new: str, *_: object) -> None:
        if rest.state(new) != "FINISHED":
            raise FlinkError(f"job {new} is {rest.state(new)} after its start")

    monkeypatch.setattr(transaction, "settle", settle)
    if befalls.waits:
        monkeypatch.setattr(transaction, "wait_started", wait_started)
    settings = MoveSettings(
        seconds=0.2 if befalls.waits else 5.0, settle=befalls.seconds, savepoint_seconds=0.2
    )
    moving = replace(case.move(*befalls.failures, **befalls.facts), settings=settings)
    fails = pytest.raises(befalls.error, match=befalls.told) if befalls.told else nullcontext()
    with fails:
        moved = moving.run()
        assert (moved.job, moved.savepoint) == (NEW, PATH)
    assert case.started == befalls.started
    assert case.is_unfinished is (issubclass(befalls.error, Undecided) or name in UNFINISHED)


def test_requests_bear_ids_and_a_start_that_failed_uses_its_own_up(case: MoveCase) -> None:
    """So a request whose answer was lost has no effect later."""
    with pytest.raises(FlinkError):
        case.move(NO_SLOTS).run()
    asked = dict(case.flink.asked)[f"POST /jobs/{OLD}/stop"]
    assert (asked["triggerId"], asked["targetDirectory"]) == ("t1", case.folder.as_uri())
    assert case.spent == [NEW]


def test_a_job_that_restored_its_state_for_long_is_moved_when_it_runs(
    case: MoveCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither cancelled nor started elsewhere, however short the timeout."""
    moving = replace(case.move(), settings=MoveSettings(seconds=0.2, settle=0.0))
    monkeypatch.setattr(transaction, "wait_started", wait_started)
    case.flink.answers[f"GET /jobs/{NEW}"] = RESTORING
    with pytest.raises(Undecided):
        moving.run()
    case.flink.answers |= {
        f"GET /jobs/{NEW}": job(NEW, "RUNNING", {"map": "RUNNING"}),
        "GET /jobs": jobs({OLD: "FINISHED", NEW: "RUNNING"}),
    }
    assert moving.run().job == NEW
    assert (len(case.started), case.flink.requests("PATCH"), case.spent) == (1, [], [])


@pytest.mark.parametrize("native", [True, False])
def test_a_job_that_goes_back_is_saved_in_the_same_format(
    case: MoveCase, monkeypatch: pytest.MonkeyPatch, native: bool
) -> None:
    stop = f"POST /jobs/{NEW}/stop"
    path = savepoint_at("file:/s/savepoint-2")

    def asked(before: object, after: object) -> Callable[[], object]:
        return lambda: after if stop in dict(case.flink.asked) else before

    case.flink.answers |= {
        stop: {"request-id": RETURN_TRIGGER},
        f"GET /jobs/{NEW}": asked(RUNNING, FINISHED),
        f"GET /jobs/{NEW}/savepoints/{RETURN_TRIGGER}": asked(failure("no operation"), path),
    }
    moving = replace(case.move(NO_SLOTS), settings=MoveSettings(native=native, settle=0.0))
    with pytest.raises(FlinkError, match=f"^no slots; the job {GOES_BACK}"):
        moving.run()
    assert case.started[-1] == (BACK, "here", "file:/s/savepoint-2")
    formats = [
        sent["formatType"] for request, sent in case.flink.asked if request.endswith("/stop")
    ]
    assert formats == (["NATIVE"] * 2 if native else ["CANONICAL"] * 2)


def test_a_return_is_told_when_it_begins_with_what_may_be_written_twice(case: MoveCase) -> None:
    """And not before; the moved job fails, and continues from its last checkpoint."""
    told: list[str] = []
    case.flink.answers |= saved(NEW, RETAINED) | {f"GET /jobs/{NEW}": job(NEW, "FAILED", {})}
    with pytest.raises(FlinkError, match="previous devices again"):
        replace(case.move(NO_SLOTS), tell=told.append).run()
    assert case.started[-1] == (BACK, "here", "s3://b/chk-3")
    assert told[-3:] == [
        f"note: job {NEW} continues from s3://b/chk-3; what it wrote since then may be written "
        "twice",
        "the move failed: no slots",
        "starting it from its saved state on 'dev-0'",
    ]


def test_nothing_is_started_where_flink_does_not_answer(case: MoveCase) -> None:
    """The command that goes on is told, if the job may have been ended."""
    silent = Rest("http://127.0.0.1:9")
    with pytest.raises(Undecided, match=r"no Flink answers.*move --resume$"):
        replace(case.move(asked=OLD), rest=silent).run()
    assert case.is_unfinished
    with pytest.raises(NoAnswer, match="no Flink answers at http"):
        replace(case.move(), rest=silent).run()
    assert not case.is_unfinished
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
    """Full queues delay them; the first may have all of the state, as the savepoint has."""
    times = {"completed": min(milliseconds, 2000), "savepoint": milliseconds}
    taken = {kind: {"end_to_end_duration": time} for kind, time in times.items()}
    case.flink.answers |= {
        f"GET /jobs/{OLD}/checkpoints": checkpoints(4, **taken),
        f"GET /jobs/{NEW}": job(NEW, "RUNNING", {}),
        f"GET /jobs/{NEW}/checkpoints": InTurn(*({"counts": numbers} for numbers in counts)),
        f"GET /jobs/{NEW}/checkpoints/config": KEPT | {"interval": 10_000},
    }
    monkeypatch.setattr(client, "time", Clock())
    moving = replace(case.move(), settings=MoveSettings(seconds=5.0))
    if not fails:
        assert moving.run().job == NEW
        return
    with pytest.raises(FlinkError, match=f"completed no checkpoint 30 s after its start{fails}"):
        moving.run()


def test_the_moved_job_gives_way_to_a_copy_that_was_started_at_the_same_moment(
    case: MoveCase,
) -> None:
    """That bears an id which nobody could know before."""
    case.flink.answers |= saved("other", COPY) | {
        "GET /jobs": InTurn(
            jobs({OLD: "FINISHED"}),
            jobs({OLD: "FINISHED"}),
            jobs({OLD: "FINISHED", NEW: "RUNNING", "other": "RUNNING"}),
        ),
        f"GET /jobs/{NEW}": InTurn(*[job(NEW, "RUNNING", {})] * 3, job(NEW, "CANCELED", {})),
        f"PATCH /jobs/{NEW}": {},
    }
    with pytest.raises(CopyRuns, match=r"^job other \(RUNNING\) continues from"):
        case.move().run()
    assert case.started == [FORWARD]
    assert case.flink.requests("PATCH") == [f"/jobs/{NEW}"]


def test_a_start_waits_for_task_managers_of_its_own_placement_alone(case: MoveCase) -> None:
    """After a restart of the JobManager they join one after the other; others are not needed."""
    managers = case.flink.answers["GET /taskmanagers"]["taskmanagers"]
    there, told = [one for one in managers if one["id"] == "dev-1"], list[str]()
    rows: list[dict[str, Any]] = [{"taskmanagers": given} for given in ([], [], there)]
    case.flink.answers["GET /taskmanagers"] = InTurn(*rows)
    replace(case.move(), tell=told.append).run()
    assert case.started == [FORWARD]
    assert "waiting: 'dev-1' have to join the cluster" in told


def test_a_resumed_move_does_not_wait_for_a_lost_device_of_a_job_that_restarts(
    case: MoveCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not stopped, and Flink goes on with it."""
    case.flink.answers |= known({OLD: "RESTARTING"}) | {STOP: UNKNOWN}
    moving = case.move(asked=OLD)
    uploads = Mock()
    monkeypatch.setattr(Transaction, "_jar", uploads)
    with pytest.raises(FlinkError, match=f"job {OLD} is RESTARTING, not RUNNING any more"):
        moving.run()
    uploads.assert_not_called()


def test_a_job_that_a_command_on_another_machine_has_started_is_left_to_it(
    case: MoveCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flink accepts the id of a successor once: the second starts nothing, and does not go back."""
    monkeypatch.setattr(transaction, "submit", lambda *_: False)
    with pytest.raises(
        MoveUnderWay, match=rf"was moved by another command.*continues as job {NEW}"
    ):
        case.move().run()
    case.flink.answers["GET /jobs"] = jobs({OLD: "FINISHED", NEW: "RUNNING"})
    with pytest.raises(MoveUnderWay, match=f"continues as job {NEW}"):
        case.move(asked=OLD).run()  # it was killed before it asked Flink to start the job
    assert case.flink.requests("PATCH") == []
    case.flink.answers["GET /jobs"] = jobs({OLD: "FINISHED"})
    assert case.move(**ASKED).run().job == NEW


def test_a_job_that_others_stop_first_is_started_by_the_command_that_is_told(
    case: MoveCase,
) -> None:
    """And only by that: the journal keeps its savepoint."""
    case.flink.answers |= known({OLD: "FINISHED"}) | saved(OLD, STOPPED) | {STOP: UNKNOWN}
    moving = case.move()
    told = r"stopped by somebody else.*savepoint-9;.*: move --resume"
    with pytest.raises(StoppedByOthers, match=told):
        moving.run()
    assert case.started == []
    moving.run()
    assert case.started == [(NEW, "there", "file:/s/savepoint-9")]


def test_a_job_that_the_job_manager_has_forgotten_goes_on_from_its_savepoint(
    case: MoveCase,
) -> None:
    """By the same command; what followed a savepoint from before would be told again."""
    told = list[str]()

    def listed() -> Any:
        return jobs({NEW: "RUNNING"} if case.started else {})

    complete(case.folder / "savepoint-old-before", 100)
    case.flink.answers |= {f"GET /jobs/{OLD}": RUNNING, STOP: UNKNOWN}
    case.flink.answers["GET /jobs"] = InTurn(jobs({OLD: "RUNNING"}), listed)
    with pytest.raises(FlinkError, match=r"restarted without high availability, and no complete"):
        case.move().run()
    assert case.started == []
    path = complete(case.folder / "savepoint-old-new", 10)
    complete(case.folder / "savepoint-old-older", 20)
    case.flink.answers["GET /jobs"] = InTurn(jobs({OLD: "RUNNING"}), listed)
    assert replace(case.move(), tell=told.append).run().job == NEW
    assert case.started == [(NEW, "there", path)]
    assert any(line.endswith(f"state is {path}; the move goes on") for line in told)


@pytest.mark.parametrize("last", [NEW, chain_of(OLD)[-1]])
def test_a_forgotten_job_goes_on_from_what_its_successor_has_saved(
    case: MoveCase, last: str
) -> None:
    """The JobManager was restarted while the moved job was watched, or one that had returned."""
    case.flink.answers["GET /jobs"] = lambda: jobs({NEW: "RUNNING"} if case.started else {})
    folder = case.folder / "checkpoints"
    moving = case.move(savepoint=PATH, checkpoints=folder.as_uri())
    complete(folder / last / "chk-4", 3)
    latest = complete(folder / last / "chk-5", 2)
    moving.run()
    assert case.started == [(NEW, "there", latest)]


def test_a_job_that_a_new_job_manager_takes_over_late_is_left_to_it(case: MoveCase) -> None:
    """It answers before it knows its jobs."""
    seen = iter([jobs({})])
    case.flink.answers["GET /jobs"] = lambda: next(seen, jobs({NEW: "RUNNING"}))
    moving = case.move(savepoint=PATH, asked=NEW)
    with pytest.raises(MoveUnderWay, match=f"taken over job {NEW}; nothing was started"):
        moving.run()
    assert case.started == []


def test_what_a_forgotten_job_may_have_saved_elsewhere_is_not_dropped(case: MoveCase) -> None:
    """A job that was still starting ran on, until the JobManager was restarted days later."""
    case.flink.answers["GET /jobs"] = lambda: jobs({NEW: "RUNNING"} if case.started else {})
    facts = {"savepoint": PATH, "checkpoints": "s3://b/c", "asked": NEW}
    with pytest.raises(FlinkError, match=f"below s3://b/c cannot be seen .*, or from {PATH} if"):
        case.move(**facts, began=datetime(2020, 1, 1, tzinfo=UTC)).run()
    assert case.started == []
    assert case.move(**facts).run().savepoint == PATH


@pytest.mark.parametrize(("tries", "again"), [(1, BACK), (2, AGAIN)])
def test_a_move_is_finished_although_all_of_its_jobs_ended_long_ago(
    case: MoveCase, monkeypatch: pytest.MonkeyPatch, tries: int, again: str
) -> None:
    """Flink does not list them any more, and accepts none of their ids a second time."""
    spent = "c.DuplicateJobSubmissionException: Job has already been submitted."
    monkeypatch.setattr(submission, "RETRY_SECONDS", 0.0)
    case.flink.answers |= {f"GET /jobs/{OLD}": UNKNOWN, "GET /jobs": jobs({})}
    case.flink.answers["POST /jars/here/run"] = failure(spent)
    moving = case.move(*[Refusal(spent, spent, 400)] * tries)
    path = complete(case.folder / "savepoint-old-new", 10)
    with pytest.raises(FlinkError, match=f"{GOES_BACK}, as job {again}$"):
        moving.run()
    assert case.started[-1] == (again, "here", path)


def test_a_return_while_flink_forgot_the_stop_needs_a_savepoint(case: MoveCase) -> None:
    """The JobManager was replaced by another, and that by one more meanwhile."""
    case.flink.answers |= {STOP: UNKNOWN, f"GET /jobs/{OLD}": UNKNOWN}
    moving = case.move(asked=OLD)
    path = complete(case.folder / "savepoint-old-new", 10)
    with pytest.raises(Forgotten, match=rf"state is {path}\. .*--resume"):
        moving.run()
    assert case.started == []


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


def test_a_job_that_another_command_has_started_is_told_from_one_of_its_own(case: MoveCase) -> None:
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
    "path", ["/s/savepoint-1", f"s3://b/savepoint-{NEW[:6]}-aaaaaaaaaaaa", f"s3://b/{NEW}/chk-3"]
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


def test_the_line_that_finishes_a_move_can_be_typed(
    run: Callable, fetched: Callable[[str], Flink], tmp_path: Path
) -> None:
    """Without the jar, which the store knows; with the file that says how the cluster is reached.

    The first command may be typed with --resume, too.
    """
    write_program(tmp_path)
    home, program = fetched(VERSION), Program(tmp_path / "job.jar", managed_mb=64)
    own = settings_file(tmp_path, flink_home=str(home.home), managed_memory="64 MiB")
    remember(JOB, program)
    with FakeFlink(healthy("dev-0")).served() as flink:
        move = FlinkMove(Rest(flink.url), home, program, print, options=own)
        line = move.resume_line(JOB)
        assert line == (
            f"streamplace flink move --rest {flink.url} --settings {own[1]} --job {JOB} --resume"
        )
        first = ("flink", "move", str(program.jar), "--rest", flink.url, *own, "--resume")
        for words in (shlex.split(line)[1:], first):
            answer = run(*words)
            assert (answer.status, "no record of an interrupted move" in answer.err) == (2, True)


def partly_ended(
    patch: pytest.MonkeyPatch, planned: Mapping[str, str], **settings: float
) -> FlinkMove:
    """What moves a job of which one task has ended, on a device that is gone."""
    patch.setattr(moving, "check", lambda *_: planned)
    patch.setattr(moving, "running_settings", lambda *_: {})
    states = {"src": "FINISHED", "map": "RUNNING"}
    answers = healthy("dev-1", "dev-2") | {f"GET /jobs/{JOB}": job("shop", "RUNNING", states)}
    answers |= on_devices(JOB, {"src": ["dev-0"]}, "FINISHED")
    answers |= on_devices(JOB, {"map": ["dev-1"]}, "RUNNING")
    home, program = Flink(Path(), "2.3.0"), Program(Path("a.jar"))
    how = MoveSettings("file:///s", **settings)
    return FlinkMove(FakeFlink(answers).rest, home, program, lambda _: None, how)


THERE = Layout({"src": ["dev-2"], "map": ["dev-2"]})


def test_a_job_is_moved_though_a_device_whose_subtasks_have_all_ended_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If it had to return, what has ended would be on the devices that it still has."""
    move = partly_ended(monkeypatch, {})
    plan = move.plan(JOB.upper(), THERE)
    assert plan.before == Layout({"src": ["dev-1"], "map": ["dev-1"]})
    assert move.running_job(JOB.upper()) == plan.job == JOB  # the id of a successor is made from it


def test_a_sink_whose_transactions_may_end_before_the_move_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the name of its setting, before the job is stopped: Kafka would drop what it wrote."""
    planned = {"transaction.timeout.ms": "60000"}
    told = r"transaction\.timeout\.ms of a sink is 60 s, .* a move may take 720 s"
    with pytest.raises(SettingError, match=told):
        partly_ended(monkeypatch, planned).plan(JOB, THERE)
    short = partly_ended(monkeypatch, planned, seconds=20.0, savepoint_seconds=40.0)
    assert short.plan(JOB, THERE).is_needed
