"""Moving: a running job, with its state, to where it is placed; and back, if that fails."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace

from streamplace.engines.flink.apply import check, placed_upload
from streamplace.engines.flink.carried import UNTOLD, Settings, lost, running_settings
from streamplace.engines.flink.dist import Flink
from streamplace.engines.flink.fitting import fitted, holds_whole, left_without
from streamplace.engines.flink.folder import SavepointFolder, folder_uri, savepoint_folder
from streamplace.engines.flink.jobs import only_job
from streamplace.engines.flink.journal import (
    Holder,
    JobLocks,
    Journal,
    MoveLock,
    MoveUnderWay,
    acquire,
    now,
    renewing,
    unfinished,
)
from streamplace.engines.flink.pinning import Vectors, counts
from streamplace.engines.flink.program import Program
from streamplace.engines.flink.rest import FlinkError, Rest
from streamplace.engines.flink.settling import Settling, source_rate
from streamplace.engines.flink.state import Saving, stop_status
from streamplace.engines.flink.submission import successor
from streamplace.engines.flink.tasks import read_vertices
from streamplace.engines.flink.transaction import FlinkMoved, Transaction, Undecided
from streamplace.errors import SettingError, StreamplaceError
from streamplace.model.messages import listed, quoted

Tell = Callable[[str], None]
DevicesOf = dict[str, list[str]]
"""Operator → the device of each of its subtasks."""
PATIENCE_SECONDS = 60.0
"""For which a Flink that does not answer is asked again while a job is moved."""
BEGIN_SECONDS = 120.0
"""In which a move stops its job, once its jar is on the cluster."""


@dataclass(frozen=True, slots=True)
class MovePlan:
    """What moving a job means.

    Attributes
    ----------
    job
        The job that runs.
    before, after
        Where its subtasks are, and where they shall be.
    settings
        Settings that the running job goes by and its new submission would lose.
    pins
        Whether nothing moves, but the job was submitted without a placement: it holds whole
        TaskManagers, and may come up on others after a failure.
    """

    job: str
    before: DevicesOf
    after: DevicesOf
    settings: Settings = field(default_factory=dict)
    pins: bool = False

    @property
    def is_needed(self) -> bool:
        """Whether the job must be submitted again to run where it is placed, and to stay there."""
        return self.pins or bool(self.moved)

    @property
    def moved(self) -> dict[str, tuple[dict[str, int], dict[str, int]]]:
        """Operators that move, with the numbers of their subtasks by device before and after."""
        pairs = {
            name: (counts(sorted(self.before.get(name, ()))), counts(sorted(devices)))
            for name, devices in self.after.items()
        }
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@dataclass(frozen=True, slots=True)
class FlinkMove:
    """A cluster, and what is needed to submit the job to it again.

    Attributes
    ----------
    tell
        Is told every step.
    folder
        Where savepoints go; None for the cluster's own folder.
    allow_non_restored
        Whether state that no operator takes over may be left behind.
    seconds
        In which the job must have come up again.
    saving
        How its state is saved.
    settling
        What it must show after its start.
    resume_by
        The command that resumes the move, for messages.
    """

    rest: Rest
    flink: Flink
    program: Program
    tell: Tell
    folder: str | None = None
    allow_non_restored: bool = False
    seconds: float = 120.0
    saving: Saving = field(default_factory=Saving)
    settling: Settling = field(default_factory=Settling)
    resume_by: str = "streamplace flink move JAR --resume"

    def plan(self, job: str, vectors: Vectors) -> MovePlan:
        """Find out where a job runs and whether it can be moved and, if need be, moved back.

        Nothing is stopped; the job's main method runs twice, but submits nothing.
        """
        folder_uri(self.rest, self.folder, self.program.settings)
        vertices = read_vertices(self.rest, job, self.rest.running_job(job), vectors)
        before: DevicesOf = {}
        for vertex in vertices:
            devices = [device for device, n in vertex.devices.items() for _ in range(n)]
            before.update(dict.fromkeys(vertex.operators, devices))
        unsure = {name: before[name] for vertex in vertices for name in vertex.unsure}
        if any(devices != next(iter(unsure.values())) for devices in unsure.values()):
            names = listed(tuple(unsure))
            self.tell(
                f"note: {names} cannot be distinguished if the job has to return to its previous "
                "devices"
            )
        after = _devices_of(vectors, before)
        self.tell("checking that the job fits the new placement and its current one")
        plan = MovePlan(job, before, after, self._checked(job, before, after))
        return plan if plan.moved else replace(plan, pins=holds_whole(self.rest, job))

    def run(self, plan: MovePlan) -> FlinkMoved:
        """Move a job.

        Raises
        ------
        MoveUnderWay
            When somebody else moves it.
        FlinkError
            When it cannot be saved, and goes on; or when it does not run where it shall, and runs
            again where it ran.
        Undecided
            When Flink answers no more, so that the move has to be resumed.
        """
        journal = Journal(
            job=plan.job,
            trigger=secrets.token_hex(16),
            successor=successor(plan.job),
            before=plan.before,
            after=plan.after,
            settings=plan.settings,
            allow_non_restored=self.allow_non_restored,
            began=now(),
            holder=Holder.current(),
        )
        rate = source_rate(self.rest, plan.job) if self.settling.compares_rates else None
        with self._folder(_jar_name(journal)) as folder:
            locks = JobLocks.listed(folder, journal.job)
            self._check_earlier(folder, journal, locks)
            lock = acquire(folder, journal, locks)
            with _releasing(lock), self._transaction(folder, lock, rate) as transaction:
                return transaction.begin()

    def resume(self, job: str | None = None) -> FlinkMoved:
        """Bring a move that was broken off to its end: one copy of the job runs afterwards.

        Parameters
        ----------
        job
            The job that was moved, or its successor; may be left out where only one move was
            broken off.

        Raises
        ------
        SettingError
            When no move was broken off.
        """
        with self._folder() as folder:
            journal = self._broken_off(folder, job)
            journal = journal.model_copy(update={"holder": Holder.current()})
            lock = acquire(folder, journal, JobLocks.listed(folder, journal.job))
            with _releasing(lock), self._transaction(folder, lock, None) as transaction:
                return transaction.conclude()

    def running_job(self, given: str | None) -> str:
        """Id of the job that is meant: the one given, else the only one that has not ended.

        Raises
        ------
        SettingError
            When it does not run because a move of it was broken off.
        """
        try:
            job = only_job(self.rest, given)
        except SettingError:
            if self.rest.live_jobs():
                raise
            job = None
        if job is None or self.rest.state(job) != "RUNNING":
            for journal in self.unfinished_moves():
                if job in (None, journal.job, journal.successor):
                    raise SettingError(
                        f"a move of job {journal.job} was interrupted, or is still being carried "
                        f"out by {journal.holder}; finish it with: {self.resume_by}"
                    )
        return job if job is not None else only_job(self.rest, given)

    def unfinished_moves(self) -> list[Journal]:
        """Moves in the folder of savepoints that are under way or were broken off."""
        with self._folder() as folder:
            return unfinished(folder)

    def _checked(self, job: str, before: DevicesOf, after: DevicesOf) -> Settings:
        """Settings to carry over; raises where the job fits a placement not."""
        running = running_settings(self.rest, job)
        planned = check(self.rest, self.flink, self.program, after, job)
        given = self.program.settings
        changes = lost(running, planned)
        carried = {
            key: was for key, (was, _) in changes.items() if key not in given and was != UNTOLD
        }
        program = self.program.with_settings(carried)
        left = lost(running, check(self.rest, self.flink, program, before, job))
        for key, (was, will_be) in sorted((changes | left).items()):
            if key in carried and key not in left:
                self.tell(f"  {key}: {was}, as in the running job")
            elif was == UNTOLD:
                self.tell(f"note: {key} is {was} and is not preserved; set it with -D")
            else:
                why = "as -D says" if key in given else "as the job's program says"
                self.tell(f"note: {key} is {was or 'not set'} and becomes {will_be}, {why}")
        return carried

    @contextmanager
    def _folder(self, jar_name: str = "streamplace-files.jar") -> Iterator[SavepointFolder]:
        rest = self.rest.patient(PATIENCE_SECONDS, self.tell)
        uri = folder_uri(rest, self.folder, self.program.settings)
        with savepoint_folder(rest, self.flink, uri, jar_name) as folder:
            yield folder

    @contextmanager
    def _transaction(
        self, folder: SavepointFolder, lock: MoveLock, rate: float | None
    ) -> Iterator[Transaction]:
        """What moves the job, with all that it needs on the cluster before the job is stopped."""
        journal = lock.journal
        program = self.program.with_settings(journal.settings)
        with renewing(lock), ExitStack() as uploads:
            managers = left_without(folder.rest, journal.job)
            jars = [
                uploads.enter_context(
                    placed_upload(
                        folder.rest,
                        self.flink,
                        program,
                        *fitted(folder.rest, devices, program.managed_mb, managers),
                    )
                )
                for devices in (journal.after, journal.before)
            ]
            yield Transaction(
                folder.rest,
                folder,
                lock,
                program,
                (jars[0], jars[1]),
                self.tell,
                self.seconds,
                self.saving,
                self.settling,
                rate,
                self.resume_by,
            )

    def _check_earlier(self, folder: SavepointFolder, journal: Journal, locks: JobLocks) -> None:
        """Raise where another move of the job is under way, or was broken off half-way."""
        earlier = locks.journal
        if earlier is None:
            _check_first(folder, journal)
            return
        locks.refuse_holder(journal.job)
        if stop_status(self.rest, earlier.job, earlier.trigger) is not None:
            raise FlinkError(
                f"an earlier move of job {journal.job} was interrupted after it had begun to stop "
                f"the job; finish it with: {self.resume_by}"
            )

    def _broken_off(self, folder: SavepointFolder, job: str | None) -> Journal:
        journals = unfinished(folder)
        if job is not None:
            journals = [j for j in journals if job in (j.job, j.successor)]
        if not journals:
            of = "" if job is None else f" of job {quoted(job)}"
            raise SettingError(
                f"{quoted(folder.uri)} records no interrupted move{of}; drop --resume to start one"
            )
        if len(journals) > 1:
            names = listed(tuple(journal.job for journal in journals))
            raise SettingError(
                f"moves of {len(journals)} jobs were interrupted: {names}; choose one with --job"
            )
        return journals[0]


def _jar_name(journal: Journal) -> str:
    """Name of the jar by which a move shows on the cluster."""
    return f"{_jar_prefix(journal.job)}{journal.trigger}-{journal.holder.mark}.jar"


def _jar_prefix(job: str) -> str:
    return f"streamplace-move-{job}-"


def _check_first(folder: SavepointFolder, journal: Journal) -> None:
    """Raise MoveUnderWay where another command has begun to move the job, with whatever folder.

    It shows by its jar on the cluster. Two stops at once could fail the job.
    """
    jars = folder.rest.get("/jars")["files"]
    own = min((j["uploaded"], j["id"]) for j in jars if j["name"] == _jar_name(journal))
    for jar in jars:
        name, is_first = jar["name"], (jar["uploaded"], jar["id"]) < own
        if not name.startswith(_jar_prefix(journal.job)) or name == _jar_name(journal):
            continue
        mark = name.removesuffix(".jar").rpartition("-")[2]
        is_recent = own[0] - jar["uploaded"] < 1000 * BEGIN_SECONDS
        if is_first and is_recent and Holder.may_run(mark):
            raise MoveUnderWay(
                f"job {journal.job} is being moved by another command, which has begun "
                f"{(own[0] - jar['uploaded']) / 1000:.1f} s before; look again in two minutes"
            )


@contextmanager
def _releasing(lock: MoveLock) -> Iterator[None]:
    """Give a lock up when the block ends, unless what became of the job is not decided.

    An interruption has been dealt with when it comes here.
    """
    try:
        yield
    except Undecided:
        raise
    except (StreamplaceError, KeyboardInterrupt):
        with suppress(FlinkError):
            lock.release()
        raise
    with suppress(FlinkError):
        lock.release()


def _devices_of(vectors: Vectors, before: Mapping[str, list[str]]) -> DevicesOf:
    """Devices of every subtask; where their number is not said there are as many as before."""
    return {
        name: [vector] * max(1, len(before.get(name, ()))) if isinstance(vector, str) else [*vector]
        for name, vector in vectors.items()
    }
