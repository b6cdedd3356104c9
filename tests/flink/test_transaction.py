"""The transaction of a move, on a Flink that carries out what it asks for: whatever befalls it.

In the end one copy of the job runs, or the user is told what to do, and then the journal stays.
"""

import os
import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from command_lines import settings_file
from fake_flink import (
    DELETED,
    JOB,
    UNDER_WAY,
    UNKNOWN,
    Clock,
    FakeFlink,
    InTurn,
    checkpoints,
    cluster_jar,
    failure,
    healthy,
    job,
    no_savepoint,
    on_devices,
    savepoint_at,
    task_manager,
    write_program,
)
from moving_flink import (
    Act,
    FakeJob,
    MovingFlink,
    after,
    before,
    interrupts,
    interrupts_then,
    loses,
    refuses,
    stays_silent,
)

from streamplace.errors import FormatError, SettingError, StreamplaceError
from streamplace.flink.layout import Layout
from streamplace.flink.move import move as moving
from streamplace.flink.move.decision_table import Step
from streamplace.flink.move.journal import (
    MOVES,
    Journal,
    MoveClaim,
    MoveUnderWay,
    interrupted_move,
    unfinished,
)
from streamplace.flink.move.move import FlinkMove
from streamplace.flink.move.running_settings import running_settings
from streamplace.flink.move.savepoints import (
    CopyRuns,
    EndedByOthers,
    checkpoint_settings,
    checkpoint_totals,
    refuse_moved,
)
from streamplace.flink.move.settling import MoveSettings
from streamplace.flink.move.transaction import (
    NotSaved,
    StoppedByOthers,
    Submission,
    Transaction,
    Undecided,
    is_unfinished,
)
from streamplace.flink.pin.apply import apply
from streamplace.flink.program import submission
from streamplace.flink.program.program import Program, Savepoint, remember
from streamplace.flink.program.submission import submit
from streamplace.flink.rest import client
from streamplace.flink.rest.client import FlinkError, NoAnswer, Rest, chain_of

OLD = "old"
NEW, BACK, AGAIN = chain_of(OLD, 4)[1:]
PATH, BEGAN = "file:/s/savepoint-1", "file:/s/savepoint-0"
FORWARD, RETURN = (NEW, "dev-1", PATH), (BACK, "dev-0", PATH)
NOT_KEPT = {"externalization": {"enabled": False, "delete_on_cancellation": True}}
RETAINED = checkpoints(3, completed="s3://b/chk-3")
ON_TRIAL = {"id": 4, "external_path": "file:/s/savepoint-4", "checkpoint_type": "SAVEPOINT"}
TRIED = checkpoints(4, completed={"id": 3, "external_path": "s3://b/chk-3"}, savepoint=ON_TRIAL)
"""Flink still tells the path of a savepoint that was removed before the job was stopped."""
STARTED = {"requested_job": NEW, "savepoint": PATH}
Started = list[tuple[str, str, str]]


def complete(place, age):
    """Write a savepoint or checkpoint that is some seconds old; return its path."""
    place.mkdir(parents=True)
    (place / "_metadata").touch()
    os.utime(place / "_metadata", times=(time.time() - age,) * 2)
    return place.as_uri()


class MoveCase:
    """A move of a job from dev-0 to dev-1, and what it tells."""

    def __init__(self, folder):
        self.flink = MovingFlink(OLD, FakeJob("RUNNING"), ("dev-0", "dev-1"), PATH)
        self.folder = folder  # of savepoints
        self.messages: list[str] = []

    def upload(self, sent):
        """Upload the jar of a submission."""
        return self.flink.upload(sent.places)

    @property
    def is_unfinished(self):
        """Whether the journal has the move, for whoever resumes it."""
        return [journal.job for journal in unfinished() if not journal.is_held] == [OLD]

    @property
    def copies(self):
        """Jobs that run."""
        return [*self.flink.alive]

    def move(self, settings=None, **facts):
        """A new move; its journal may have more."""
        journal = Journal(
            url="http://flink:8081",
            job=OLD,
            trigger="t1",
            before=Layout({"map": ["dev-0"]}),
            after=Layout({"map": ["dev-1"]}),
            folder=self.folder.as_uri(),
            name="shop",
            resume_by="move --resume",
            began=datetime.now(UTC) - timedelta(seconds=60),
        ).model_copy(update=facts)
        MoveClaim(MOVES, OLD, journal).end()
        return self._transaction(MoveClaim.begin(journal), settings)

    def resume(self):
        """What is left of the move."""
        return self._transaction(MoveClaim.take(OLD))

    def _transaction(self, claim, settings=None):
        program, journal = Program(Path("a.jar"), "Main"), claim.journal
        there, back = Submission(program, journal.after), Submission(program, journal.before)
        usual = MoveSettings(seconds=5.0, settle=0.0, savepoint_seconds=5.0)
        return Transaction(
            self.flink.rest,
            claim,
            there,
            back,
            self.upload,
            self.messages.append,
            settings or usual,
            None,
        )


@pytest.fixture
def case(monkeypatch, tmp_path):
    """A move of a job that is stopped with a savepoint when it is asked to; waits take no time."""
    clock = Clock(least=1.0)
    for module in (client, submission):
        monkeypatch.setattr(module, "time", clock)
    return MoveCase(tmp_path / "saved")


@dataclass
class Disturbance:
    """What befalls a move, and what must become of it."""

    error: type[BaseException] | None = None  # None if the job is moved
    starts: Started = field(default_factory=list)  # jobs, with their jar and state
    names: str = ""  # what the error names: where the job runs, or its state is
    acts: Mapping[str, Sequence[Act]] = field(default_factory=dict)  # what befalls requests
    jobs: Mapping[str, FakeJob] = field(default_factory=dict)  # that Flink knows besides
    facts: Mapping[str, Any] = field(default_factory=dict)  # of the journal of a resumed move
    saves: str | None = PATH
    settle: float = 0.0  # seconds for which the job is watched after its start


def ended(state, path=None, **more):
    """A job that has ended."""
    made = FakeJob(state, **more)
    made.end(state, path)
    return made


def fails(name, latest, policy=DELETED, state="FAILED"):
    """A job ends once a request is answered, and has saved something."""

    def end(flink):
        flink.jobs[name].end(state)
        flink.jobs[name].checkpoints, flink.jobs[name].policy = latest, policy
        flink.jobs[name].stop = flink.jobs[name].stop and no_savepoint("no disk")

    return after(end)


def becomes(name, state="RUNNING", task="RUNNING"):
    """A job is in a state once a request is answered."""

    def change(flink):
        flink.jobs[name].state, flink.jobs[name].task = state, task

    return after(change)


def finishes(flink, _):
    """The successor finishes before it is cancelled."""
    flink.jobs[NEW].end("FINISHED")
    return failure("not running", status=409)


def copies(flink):
    """Another user starts the job from the savepoint of the move."""
    flink.jobs["other"] = FakeJob("RUNNING", checkpoints=checkpoints(restored="/s/savepoint-1"))


def forgets(flink):
    """Flink does not know any more what was asked of a job, as another JobManager took it over."""
    flink.jobs[OLD].stop = None


STOPPED = ended("FINISHED", PATH, stop=savepoint_at(PATH))
CANCELED = ended("CANCELED")
KEEPS = ended("CANCELED", checkpoints=RETAINED)
CHECKPOINT = "s3://b/chk-3"
FROM_CHECKPOINT = (BACK, "dev-0", CHECKPOINT)
DISTURBANCES = {
    "nothing": Disturbance(starts=[FORWARD]),
    "it does not start": Disturbance(
        FlinkError, [FORWARD, RETURN], BACK, acts={"start": [refuses]}
    ),
    "it starts neither there nor here": Disturbance(
        Undecided, [FORWARD, RETURN], PATH, acts={"start": [refuses, refuses]}
    ),
    "it restores its state": Disturbance(
        Undecided, [FORWARD], NEW, acts={"start": [becomes(NEW, task="INITIALIZING")]}
    ),
    "it restores its state where it was": Disturbance(
        Undecided, [FORWARD, RETURN], BACK,
        acts={"start": [refuses, becomes(BACK, task="INITIALIZING")]},
    ),
    "it restarts where it was": Disturbance(
        Undecided, [FORWARD, RETURN], BACK, acts={"start": [refuses, becomes(BACK, "RESTARTING")]}
    ),
    "it cannot be saved": Disturbance(NotSaved, [], OLD, saves=None),
    "it could not be saved": Disturbance(
        NotSaved, [], OLD,
        jobs={OLD: FakeJob("RUNNING", stop=no_savepoint("no disk"))}, facts={"requested_job": OLD},
    ),
    "it fails, with a checkpoint": Disturbance(
        FlinkError, [FROM_CHECKPOINT], "no disk", acts={"stop": [fails(OLD, RETAINED)]}
    ),
    "it fails, with a savepoint on trial": Disturbance(
        FlinkError, [FROM_CHECKPOINT], "no disk", acts={"stop": [fails(OLD, TRIED)]}
    ),
    "it fails, with what it began from": Disturbance(
        FlinkError, [(BACK, "dev-0", BEGAN)], "no disk",
        acts={"stop": [fails(OLD, checkpoints(restored=BEGAN))]},
    ),
    "it fails, with nothing": Disturbance(
        FlinkError, [], "no disk", acts={"stop": [fails(OLD, checkpoints())]}
    ),
    "it finishes": Disturbance(
        FlinkError, [], OLD, acts={"stop": [fails(OLD, RETAINED, state="FINISHED")]}
    ),
    "Flink fails while it is saved": Disturbance(Undecided, acts={"stop": [stays_silent]}),
    "it is saved for long": Disturbance(
        Undecided, facts={"requested_job": OLD},
        jobs={OLD: FakeJob("RUNNING", stop=lambda: {"status": {"id": "IN_PROGRESS"}})},
    ),
    "others cancel it first": Disturbance(
        FlinkError, [], CHECKPOINT, jobs={OLD: KEEPS}, facts={"requested_job": ""}
    ),
    "another goes on from its savepoint": Disturbance(
        CopyRuns, [], "other", acts={"stop": [before(copies)]}
    ),
    "a copy starts at the same moment": Disturbance(
        CopyRuns, [FORWARD], "other", acts={"start": [after(copies)]}
    ),
    "it is suspended": Disturbance(
        Undecided, [FORWARD], NEW, acts={"start": [becomes(NEW, "SUSPENDED")]}
    ),
    "it was suspended": Disturbance(
        Undecided, [], OLD,
        jobs={OLD: FakeJob("SUSPENDED")}, facts={"requested_job": OLD, "savepoint": PATH},
    ),
    "others cancel it there": Disturbance(
        EndedByOthers, [FORWARD], CHECKPOINT, settle=1.0,
        acts={"start": [fails(NEW, RETAINED, None, "CANCELED")]},
    ),
    "others stop it there": Disturbance(
        EndedByOthers, [FORWARD], "file:/s/savepoint-9", settle=1.0,
        acts={"start": [after(lambda f: f.jobs[NEW].end("FINISHED", "file:/s/savepoint-9"))]},
    ),
    "others cancel it there, and its tasks take long to end": Disturbance(
        Undecided, [FORWARD], NEW, acts={"start": [becomes(NEW, "CANCELLING")]}
    ),
    "it fails there": Disturbance(
        FlinkError, [FORWARD, FROM_CHECKPOINT], BACK, settle=1.0,
        acts={"start": [fails(NEW, RETAINED)]},
    ),
    "it fails there without state": Disturbance(
        FlinkError, [FORWARD, RETURN], BACK, settle=1.0,
        acts={"start": [fails(NEW, RETAINED, NOT_KEPT)]},
    ),
    "it finishes there": Disturbance(
        starts=[FORWARD], acts={"start": [fails(NEW, RETAINED, state="FINISHED")]}, settle=1.0
    ),
    "it had not been asked to stop": Disturbance(starts=[FORWARD], facts={"requested_job": OLD}),
    "it had stopped": Disturbance(
        starts=[FORWARD], jobs={OLD: STOPPED}, facts={"requested_job": OLD}
    ),
    "it had been started": Disturbance(
        jobs={OLD: STOPPED, NEW: FakeJob("RUNNING", ["dev-1"])}, facts=STARTED
    ),
    "it had finished": Disturbance(jobs={OLD: STOPPED, NEW: ended("FINISHED")}, facts=STARTED),
    "it had failed": Disturbance(
        FlinkError, [RETURN], BACK, jobs={OLD: STOPPED, NEW: ended("FAILED")}, facts=STARTED
    ),
    "it had returned": Disturbance(
        FlinkError, facts=STARTED,
        jobs={OLD: STOPPED, NEW: CANCELED, BACK: FakeJob("RUNNING")},
    ),
    "it had returned and failed": Disturbance(
        FlinkError, [(AGAIN, "dev-0", PATH)], AGAIN, facts=STARTED,
        jobs={OLD: STOPPED, NEW: CANCELED, BACK: ended("FAILED")},
    ),
    "its first job is forgotten": Disturbance(
        jobs={NEW: FakeJob("RUNNING", ["dev-1"])}, facts=STARTED
    ),
    "its return had begun": Disturbance(
        FlinkError, [RETURN], BACK, facts=STARTED | {"returns": True},
        jobs={OLD: STOPPED, NEW: CANCELED},
    ),
    "others cancelled it, Flink forgot": Disturbance(
        FlinkError, [], CHECKPOINT, jobs={OLD: KEEPS}, facts={"requested_job": OLD}
    ),
    "it failed, Flink forgot": Disturbance(
        FlinkError, [FROM_CHECKPOINT], BACK, facts={"requested_job": OLD},
        jobs={OLD: ended("FAILED", checkpoints=RETAINED)},
    ),
    "it runs, Flink forgot": Disturbance(starts=[FORWARD], acts={"stop": [after(forgets)] * 2}),
    "it stopped, Flink forgot": Disturbance(
        starts=[FORWARD], jobs={OLD: ended("FINISHED", PATH)}, facts={"requested_job": OLD}
    ),
    "it finishes before its return": Disturbance(
        FlinkError, [FORWARD], NEW,
        acts={"start": [becomes(NEW, "RESTARTING")], "cancel": [finishes]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DISTURBANCES)
def test_one_copy_runs_or_the_user_is_told_what_to_do(case, name):
    """The journal stays exactly while no copy is sure to run."""
    befalls = DISTURBANCES[name]
    case.flink.saves = befalls.saves
    case.flink.acts = {kind: [*acts] for kind, acts in befalls.acts.items()}
    if befalls.jobs:
        case.flink.jobs = {key: replace(value) for key, value in befalls.jobs.items()}
        case.flink.used = {OLD, *befalls.jobs}
    settings = MoveSettings(seconds=5.0, settle=befalls.settle, savepoint_seconds=5.0)
    transaction = case.move(settings, **befalls.facts)
    is_undecided = befalls.error is Undecided
    if befalls.error:
        with pytest.raises(befalls.error) as error:
            transaction.run()
        assert befalls.names in str(error.value)
        assert str(error.value).endswith(": move --resume") is is_undecided
    else:
        moved = transaction.run()
        assert (moved.job, moved.savepoint) == (NEW, PATH)
    assert case.flink.starts == befalls.starts
    assert case.is_unfinished is is_undecided


def test_a_job_that_starts_late_is_saved_before_it_returns(case):
    """Its start arrives when its id is to be used up, so that it has new progress already."""
    late, saved = [], "file:/s/savepoint-2"

    def interrupts_and_arrives_later(_, answer):
        late.append(answer)
        raise KeyboardInterrupt

    def arrives(flink, answer):
        late.pop()()
        flink.saves = saved
        return answer()

    case.flink.acts = {"start": [interrupts_and_arrives_later], "spend": [arrives]}
    with pytest.raises(KeyboardInterrupt):
        case.move().run()
    assert case.flink.starts == [FORWARD, (BACK, "dev-0", saved)]
    assert case.copies == [BACK]
    assert case.flink.jobs[NEW].state == "FINISHED"


FAULTS: dict[str, Act] = {
    "refused": refuses,
    "lost": loses,
    "without an answer": stays_silent,
    "interrupted before": interrupts,
    "interrupted after": interrupts_then,
}
MOST_COMMANDS = 4
SLOW = pytest.mark.slow


def disturbed(folder, faults, *, goes_back):
    """A move, perhaps one that goes back, with faults at some of its requests."""
    case = MoveCase(folder)
    case.flink.at = dict(faults)
    case.flink.acts = {"start": [refuses]} if goes_back else {}
    with suppress(StreamplaceError, KeyboardInterrupt):
        case.move().run()
    return case


def check_resumed(case):
    """One copy of the job runs once nothing is left to resume, and each id was started once."""
    case.flink.at.clear()
    for _ in range(MOST_COMMANDS):
        if case.is_unfinished:
            with suppress(StreamplaceError):
                case.resume().run()
    assert len(case.copies) == 1, case.messages
    assert not case.is_unfinished
    assert case.copies[0] not in case.flink.spent


@pytest.mark.parametrize(
    ("fault", "goes_back"),
    [
        *((fault, False) for fault in FAULTS),
        ("without an answer", True),
        *(pytest.param(f, True, marks=SLOW) for f in FAULTS if f != "without an answer"),
    ],
)
def test_one_copy_runs_whatever_befalls_any_request(case, fault, goes_back):
    """Each request of a move, and of one that goes back."""
    number = len(disturbed(case.folder, {}, goes_back=goes_back).flink.asked)
    assert number > 20
    for at in range(number):
        check_resumed(disturbed(case.folder, {at: FAULTS[fault]}, goes_back=goes_back))


@pytest.mark.parametrize("goes_back", [False, pytest.param(True, marks=SLOW)])
@pytest.mark.parametrize("apart", [1, *(pytest.param(n, marks=SLOW) for n in (2, 5))])
def test_two_interrupts_in_a_row_leave_what_a_command_finishes(case, apart, goes_back):
    """At any request, some requests apart: the journal stays, and the line that resumes is told."""
    number, left = len(disturbed(case.folder, {}, goes_back=goes_back).flink.asked), 0
    for at in range(number):
        faults = {at: interrupts_then, at + apart: interrupts_then}
        moved = disturbed(case.folder, faults, goes_back=goes_back)
        if moved.is_unfinished:
            left += 1
            assert any(line.endswith("finish it with: move --resume") for line in moved.messages)
        check_resumed(moved)
    assert left > 10


def test_an_interrupt_takes_the_job_back_and_tells_as_which_job_it_runs(case):
    case.flink.acts["start"] = [interrupts_then]
    with pytest.raises(KeyboardInterrupt):
        case.move().run()
    assert case.copies == [BACK]
    assert BACK in case.messages[-1]


def test_the_id_of_a_placeholder_is_not_taken_for_a_copy(case):
    """Interrupted while the id of the successor is used up, a move has to go on."""
    case.flink.acts = {"start": [refuses], "spend": [interrupts_then], "cancel": [interrupts]}
    with pytest.raises(KeyboardInterrupt):
        case.move().run()
    assert case.copies == [NEW]  # of no operator of the job
    assert case.is_unfinished
    assert is_unfinished(case.flink.rest, unfinished()[0])
    with pytest.raises(FlinkError, match=BACK):
        case.resume().run()
    assert case.copies == [BACK]


def test_every_step_and_every_end_has_a_method():
    for step in Step:
        assert callable(getattr(Transaction, f"_{step.name.lower()}")), step


def test_requests_bear_ids_and_a_start_that_failed_uses_its_own_up(case):
    """So a request whose answer was lost has no effect later."""
    case.flink.acts["start"] = [refuses]
    with pytest.raises(FlinkError):
        case.move().run()
    sent = dict(case.flink.asked)[f"POST /jobs/{OLD}/stop"]
    assert (sent["triggerId"], sent["targetDirectory"]) == ("t1", case.folder.as_uri())
    assert case.flink.spent == [NEW]


def test_a_job_that_restored_its_state_for_long_is_moved_when_it_runs(case):
    """It is neither cancelled nor started elsewhere, however short the timeout."""
    case.flink.acts["start"] = [becomes(NEW, task="INITIALIZING")]
    with pytest.raises(Undecided):
        case.move().run()
    case.flink.jobs[NEW].task = "RUNNING"
    assert case.resume().run().job == NEW
    assert (len(case.flink.starts), case.flink.requests("PATCH"), case.flink.spent) == (1, [], [])


@pytest.mark.parametrize("native", [True, False])
def test_a_job_that_goes_back_is_saved_in_the_same_format(case, native):
    settings = MoveSettings(native=native, settle=0.0, seconds=5.0)
    case.flink.acts["start"] = [after(lambda flink: setattr(flink.jobs[NEW], "devices", ["dev-0"]))]
    with pytest.raises(FlinkError, match=f"'map' .*{BACK}"):
        case.move(settings).run()
    assert case.copies == [BACK]
    formats = [
        sent["formatType"] for request, sent in case.flink.asked if request.endswith("/stop")
    ]
    assert formats == (["NATIVE"] * 2 if native else ["CANONICAL"] * 2)


def test_a_return_is_told_when_it_begins_with_what_may_be_written_twice(case):
    """And not before; the moved job fails, and continues from its last checkpoint."""
    case.flink.acts["start"] = [fails(NEW, RETAINED)]
    with pytest.raises(FlinkError, match=BACK):
        case.move().run()
    assert case.flink.starts[-1] == (BACK, "dev-0", "s3://b/chk-3")
    repeated, _, starts = case.messages[-3:]
    assert NEW in repeated
    assert "s3://b/chk-3" in repeated
    assert "'dev-0'" in starts


def test_nothing_is_started_where_flink_does_not_answer(case):
    """The command that goes on is told, if the job may have been ended."""
    silent = Rest("http://127.0.0.1:9")
    with pytest.raises(Undecided, match=r": move --resume$"):
        replace(case.move(requested_job=OLD), rest=silent).run()
    assert case.is_unfinished
    with pytest.raises(NoAnswer, match=r"127\.0\.0\.1:9"):
        replace(case.move(), rest=silent).run()
    assert not case.is_unfinished
    assert case.flink.starts == []


def test_a_jar_that_is_gone_is_found_before_the_job_is_stopped(case):
    def gone(_):
        raise FormatError("a.jar: no such file")

    with pytest.raises(FormatError):
        replace(case.move(), upload=gone).run()
    assert case.copies == [OLD]
    assert not case.is_unfinished


@pytest.mark.parametrize(
    ("milliseconds", "counts", "ends"),
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
def test_a_moved_job_has_to_complete_the_checkpoints_that_are_due(case, milliseconds, counts, ends):
    """Full queues delay them; the first may have all of the state, as the savepoint has."""
    times = {"completed": min(milliseconds, 2000), "savepoint": milliseconds}
    taken = {kind: {"end_to_end_duration": spent} for kind, spent in times.items()}
    case.flink.answers |= {
        f"GET /jobs/{OLD}/checkpoints": checkpoints(4, **taken),
        f"GET /jobs/{NEW}/checkpoints": InTurn(*({"counts": numbers} for numbers in counts)),
        f"GET /jobs/{NEW}/checkpoints/config": {
            "externalization": {"enabled": True, "delete_on_cancellation": False},
            "interval": 10_000,
        },
    }
    transaction = case.move(MoveSettings(seconds=5.0, savepoint_seconds=5.0))
    if not ends:
        assert transaction.run().job == NEW
        return
    with pytest.raises(FlinkError, match=f"completed no checkpoint 30 s after its start{ends}"):
        transaction.run()


def test_a_start_waits_for_task_managers_of_its_own_placement_alone(case):
    """After a restart of the JobManager they join one after the other; others are not needed."""
    case.flink.answers["GET /taskmanagers"] = InTurn(
        *({"taskmanagers": rows} for rows in ([], [], [task_manager("dev-1", ["dev-1"])]))
    )
    case.flink.jobs = {OLD: replace(STOPPED)}
    case.move(requested_job=OLD, savepoint=PATH).run()
    assert case.flink.starts == [FORWARD]
    assert "waiting: 'dev-1' have to join the cluster" in case.messages


def test_a_resumed_move_does_not_wait_for_a_lost_device_of_a_job_that_restarts(case):
    """It was not stopped, and Flink goes on with it."""
    case.flink.jobs = {OLD: FakeJob("RESTARTING")}
    case.flink.managers.clear()
    with pytest.raises(FlinkError, match=f"{OLD} is RESTARTING"):
        case.move(requested_job=OLD).run()
    assert not any(line.startswith("waiting") for line in case.messages)


def test_a_job_that_a_command_on_another_machine_has_started_is_left_to_it(case):
    """Flink accepts the id of a successor once: the second starts nothing, and does not go back."""

    def taken(flink):
        flink.used.add(NEW)
        flink.jobs[NEW] = FakeJob("RUNNING", ["dev-1"])

    case.flink.acts["start"] = [before(taken)]
    for journal in (
        {},
        {"requested_job": OLD},
    ):  # the second was killed before it asked for the start
        with pytest.raises(MoveUnderWay, match=NEW):
            case.move(**journal).run()
    assert case.flink.requests("PATCH") == []
    assert case.copies == [NEW]


def test_a_job_that_others_stop_first_is_started_by_the_command_that_is_told(case):
    """And only by that: the journal keeps its savepoint."""
    case.flink.jobs = {OLD: ended("FINISHED", "file:/s/savepoint-9")}
    with pytest.raises(StoppedByOthers, match=r"savepoint-9;.*: move --resume"):
        case.move().run()
    assert case.flink.starts == []
    case.resume().run()
    assert case.flink.starts == [(NEW, "dev-1", "file:/s/savepoint-9")]


@pytest.mark.parametrize("requested_job", ["", OLD])
def test_a_job_that_the_job_manager_has_forgotten_goes_on_from_its_savepoint(case, requested_job):
    """By the same command; what followed a savepoint from before would be told again."""
    complete(case.folder / "savepoint-old-before", 100)
    case.flink.jobs = {}
    with pytest.raises(FlinkError, match=f"job {OLD}"):
        case.move(requested_job=requested_job).run()
    assert case.flink.starts == []
    path = complete(case.folder / "savepoint-old-new", 10)
    complete(case.folder / "savepoint-old-older", 20)
    assert case.move(requested_job=requested_job).run().job == NEW
    assert case.flink.starts == [(NEW, "dev-1", path)]


@pytest.mark.parametrize("last", [NEW, chain_of(OLD)[-1]])
def test_a_forgotten_job_goes_on_from_what_its_successor_has_saved(case, last):
    """The JobManager was restarted while the moved job was watched, or one that had returned."""
    case.flink.jobs, folder = {}, case.folder / "checkpoints"
    transaction = case.move(savepoint=PATH, checkpoints=folder.as_uri())
    complete(folder / last / "chk-4", 3)
    latest = complete(folder / last / "chk-5", 2)
    transaction.run()
    assert case.flink.starts == [(NEW, "dev-1", latest)]


def test_a_job_manager_that_forgets_again_and_again_is_left_to_the_user(case):
    """With the line that finishes the move."""
    case.flink.acts["start"] = [after(lambda flink: flink.jobs.clear())] * 5
    case.flink.used = set()
    with pytest.raises(Undecided, match=r": move --resume$"):
        case.move(requested_job=OLD, savepoint=PATH).run()
    assert case.is_unfinished


def test_a_job_that_a_new_job_manager_takes_over_late_is_left_to_it(case):
    """It answers before it knows its jobs."""
    case.flink.jobs = {}
    transaction = case.move(savepoint=PATH, requested_job=NEW)

    def upload(sent):
        case.flink.jobs = {BACK: FakeJob("RUNNING")}
        return case.upload(sent)

    with pytest.raises(MoveUnderWay, match=BACK):
        replace(transaction, upload=upload).run()
    assert case.flink.starts == []


def test_what_a_forgotten_job_may_have_saved_elsewhere_is_not_dropped(case):
    """A job that was still starting ran on, until the JobManager was restarted days later."""
    case.flink.jobs = {}
    facts = {"savepoint": PATH, "checkpoints": "s3://b/c", "requested_job": NEW}
    with pytest.raises(FlinkError, match=f"s3://b/c .*{PATH}"):
        case.move(**facts, began=datetime(2020, 1, 1, tzinfo=UTC)).run()
    assert case.flink.starts == []
    assert case.move(**facts).run().savepoint == PATH


@pytest.mark.parametrize(("used", "again"), [({NEW}, BACK), ({NEW, BACK}, AGAIN)])
def test_a_move_is_finished_although_all_of_its_jobs_ended_long_ago(case, used, again):
    """Flink does not list them any more, and accepts none of their ids a second time."""
    case.flink.jobs, case.flink.used = {}, used
    path = complete(case.folder / "savepoint-old-new", 10)
    with pytest.raises(FlinkError, match=again):
        case.move().run()
    assert case.flink.starts[-1] == (again, "dev-0", path)


def test_a_job_that_has_lost_devices_is_cancelled_and_started_from_its_last_state(case):
    """Also when Flink says so late, and not if another user has cancelled it."""
    case.flink.jobs[OLD].checkpoints = RETAINED
    moved = case.move(cancels=True, savepoint=BEGAN).run()
    assert (moved.job, moved.savepoint) == (NEW, "s3://b/chk-3")
    case.flink.jobs = {OLD: ended("CANCELED", checkpoints=RETAINED)}
    with pytest.raises(FlinkError, match="s3://b/chk-3"):
        case.move(cancels=True, savepoint=BEGAN).run()


@pytest.mark.parametrize("job", [NEW, BACK])
def test_the_jobs_that_a_move_may_start_are_claimed_with_the_one_that_it_moves(case, job):
    journal = case.move().journal
    with pytest.raises(MoveUnderWay, match=f"job {OLD}"):
        MoveClaim.begin(journal.model_copy(update={"job": job}))


def test_an_interrupted_move_is_found_by_any_of_its_jobs(case):
    """Also by one that was moved before."""
    first = case.move().journal
    second = first.model_copy(update={"job": NEW, "trigger": "t2"})
    both = [first, second]
    assert [interrupted_move(both, name).trigger for name in (OLD, NEW)] == ["t1", "t2"]
    assert interrupted_move([first], BACK).trigger == "t1"
    for found, message in (([], "has no record of an interrupted move"), (both, "choose one with")):
        with pytest.raises(SettingError, match=message):
            interrupted_move(found, None)


@pytest.mark.parametrize("status", [503, 500])
@pytest.mark.parametrize("ask", [checkpoint_settings, checkpoint_totals, running_settings])
def test_a_flink_that_does_not_answer_is_not_said_to_keep_nothing(case, ask, status):
    """A job would be given up whose state exists, or would take no checkpoints any more."""
    busy = failure("a.B: busy", status=status)
    case.flink.jobs[NEW] = FakeJob("RUNNING")
    case.flink.answers |= {
        f"GET /jobs/{NEW}/config": {"execution-config": {}},
        f"GET /jobs/{NEW}/checkpoints": busy,
        f"GET /jobs/{NEW}/checkpoints/config": busy,
    }
    with pytest.raises(NoAnswer, match="busy"):
        ask(case.flink.rest, NEW)


def test_a_job_that_another_command_has_started_is_told_from_one_of_its_own(case):
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
def mover(case):
    """What moves jobs of the cluster."""
    program = Program(Path("a.jar"))
    return FlinkMove(case.flink.rest, program, lambda _: None)


@pytest.mark.parametrize(
    ("states", "stop", "message"),
    [
        ({OLD: "RUNNING"}, None, ""),
        ({OLD: "RUNNING"}, UNDER_WAY, "interrupted"),
        ({OLD: "RUNNING"}, no_savepoint("no disk"), ""),
        ({OLD: "FINISHED", NEW: "RUNNING"}, None, ""),
        ({OLD: "FINISHED", NEW: "CANCELED"}, None, ""),
        ({OLD: "FINISHED"}, None, "interrupted"),
        ({}, None, "interrupted"),
    ],
)
def test_an_interrupted_move_is_finished_first_if_anything_of_it_is_left_to_do(
    case, mover, states, stop, message
):
    """Else its record goes; nothing else would ever end it. First, its command has to end."""
    case.flink.jobs = {name: FakeJob(state, stop=stop) for name, state in states.items()}
    if states == {OLD: "FINISHED"}:
        case.flink.jobs = {OLD: STOPPED}
    claim = case.move(requested_job=OLD).claim
    job = next((one for one, state in states.items() if state == "RUNNING"), OLD)
    with pytest.raises(MoveUnderWay, match=f"job {OLD}"):
        mover.running_job(job)
    claim.leave()
    if message:
        with pytest.raises(FlinkError, match=rf"was {message}; finish it with: move --resume$"):
            mover.running_job(job)
        assert case.is_unfinished
        return
    assert mover.running_job(job) == job
    assert unfinished() == []


def test_a_move_of_another_cluster_is_not_resumed_on_this_one(case, mover):
    """It would start a second copy; one that knows the jobs is the same, whatever its address."""
    case.move(url="http://elsewhere:8081").claim.leave()
    assert [one.job for one in mover.unfinished_moves()] == [OLD]
    case.flink.jobs = {}
    with pytest.raises(SettingError, match="no record of an interrupted move"):
        mover.resume()


@pytest.mark.parametrize(
    "path", ["/s/savepoint-1", f"s3://b/savepoint-{NEW[:6]}-aaaaaaaaaaaa", f"s3://b/{NEW}/chk-3"]
)
def test_nothing_is_started_from_the_state_of_an_unfinished_move(case, path):
    """Finishing it would start a second copy."""
    claim = case.move().claim
    claim.save(savepoint="file:/s/savepoint-1")
    refuse_moved("/s/savepoint-2")
    with pytest.raises(CopyRuns, match=rf"{OLD} .*: move --resume$"):
        apply(case.flink.rest, Program(Path("a.jar")), Layout({}), savepoint=Savepoint(path))
    claim.end()
    refuse_moved(path)


def test_the_line_that_finishes_a_move_can_be_typed(run, fetched, tmp_path):
    """Without the jar, which the store knows; with the file that says how the cluster is reached.

    The first command may be typed with --resume, too.
    """
    write_program(tmp_path)
    program = Program(tmp_path / "job.jar", managed_mb=64)
    own = settings_file(tmp_path, managed_memory="64 MiB")
    remember(JOB, program)
    with FakeFlink(healthy("dev-0")).served() as flink:
        move = FlinkMove(Rest(flink.url), program, print, options=own)
        line = move.resume_line(JOB)
        assert line == (
            f"streamplace flink move --rest {flink.url} --settings {own[1]} --job {JOB} --resume"
        )
        first = ("flink", "move", str(program.jar), "--rest", flink.url, *own, "--resume")
        for words in (shlex.split(line)[1:], first):
            answer = run(*words)
            assert (answer.status, "no record of an interrupted move" in answer.err) == (2, True)


def partly_ended(patch, planned, **settings):
    """What moves a job of which one task has ended, on a device that is gone."""
    patch.setattr(moving, "check", lambda *_: planned)
    patch.setattr(moving, "running_settings", lambda *_: {})
    states = {"src": "FINISHED", "map": "RUNNING"}
    answers = healthy("dev-1", "dev-2") | {f"GET /jobs/{JOB}": job("shop", "RUNNING", states)}
    answers |= on_devices(JOB, {"src": ["dev-0"]}, "FINISHED")
    answers |= on_devices(JOB, {"map": ["dev-1"]}, "RUNNING")
    program = Program(Path("a.jar"))
    how = MoveSettings("file:///s", **settings)
    return FlinkMove(FakeFlink(answers).rest, program, lambda _: None, how)


THERE = Layout({"src": ["dev-2"], "map": ["dev-2"]})


def test_a_job_is_moved_though_a_device_whose_subtasks_have_all_ended_is_gone(monkeypatch):
    """If it had to return, what has ended would be on the devices that it still has."""
    move = partly_ended(monkeypatch, {})
    plan = move.plan(JOB.upper(), THERE)
    assert plan.before == Layout({"src": ["dev-1"], "map": ["dev-1"]})
    assert move.running_job(JOB.upper()) == plan.job == JOB  # the id of a successor is made from it


def test_a_sink_whose_transactions_may_end_before_the_move_is_refused(monkeypatch):
    """By the name of its setting, before the job is stopped: Kafka would drop what it wrote."""
    planned = {"transaction.timeout.ms": "60000"}
    message = r"transaction\.timeout\.ms of a sink is 60 s, .* a move may take 720 s"
    with pytest.raises(SettingError, match=message):
        partly_ended(monkeypatch, planned).plan(JOB, THERE)
    short = partly_ended(monkeypatch, planned, seconds=20.0, savepoint_seconds=40.0)
    assert short.plan(JOB, THERE).is_needed
