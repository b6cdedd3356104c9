"""Moving: transfer a running job with its state to other devices, and back if that fails."""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move.carried import (
    CHECKPOINTING,
    UNTOLD,
    Settings,
    checkpoint_folder,
    lost,
    running_settings,
)
from streamplace.engines.flink.move.check_saving import check_saving
from streamplace.engines.flink.move.copies import check_first, jar_name
from streamplace.engines.flink.move.folder import SavepointFolder, folder_uri, savepoint_folder
from streamplace.engines.flink.move.holder import Holder
from streamplace.engines.flink.move.journal import (
    JobLocks,
    Journal,
    MoveLock,
    acquire,
    broken_off,
    devices_in,
    now,
    renewing,
    unfinished,
)
from streamplace.engines.flink.move.outcomes import (
    FlinkMoved,
    Forgotten,
    leaving_untouched,
    releasing,
    remembered,
    resumable,
)
from streamplace.engines.flink.move.pause import note_slow_start
from streamplace.engines.flink.move.resuming import await_devices, resume_command, with_job
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.move.settling import SourceFlow, seconds_for, source_flow
from streamplace.engines.flink.move.stopping import stop_status
from streamplace.engines.flink.move.transaction import Transaction, Way
from streamplace.engines.flink.pin.apply import check, placed_upload
from streamplace.engines.flink.pin.fitting import fitted, holds_whole, left_without
from streamplace.engines.flink.pin.pinning import Vectors, counts
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.program.submitted import digest, remember
from streamplace.engines.flink.program.uploads import remove_left_jars
from streamplace.engines.flink.rest.client import FlinkError, Refusal, Rest
from streamplace.engines.flink.rest.job_ids import chain_of, only_job, successor
from streamplace.engines.flink.rest.tasks import job_operators, layout_of
from streamplace.errors import SettingError
from streamplace.model.messages import listed

Tell = Callable[[str], None]
DevicesOf = dict[str, list[str]]
"""Operator → device of each of its subtasks."""
PATIENCE_SECONDS = 60.0
"""Seconds for which requests are repeated while a job is moved and Flink does not answer."""
UNCOMPARED = "the rates before and after the move are not compared"
RETENTION = f"{CHECKPOINTING}.externalized-checkpoint-retention"
"""The moved job keeps its checkpoints when it ends, so that it can return to the last of them."""


@dataclass(frozen=True, slots=True)
class MovePlan:
    """Plan of a move."""

    job: str  # the running job
    # Devices of its subtasks, before and after the move.
    before: DevicesOf
    after: DevicesOf
    # Settings of the running job that its new submission would lose.
    settings: Settings = field(default_factory=dict)
    # Whether no subtask moves, but the job was submitted without a placement: its slots have all
    # resources of their TaskManagers, and it may restart on others after a failure.
    pins: bool = False
    name: str = ""  # name of the job
    # Folder with a folder of checkpoints for each job; None if unknown.
    checkpoints: str | None = None
    varies: bool = False  # whether the rate of a source varies, so that it is measured for longer

    @property
    def is_needed(self) -> bool:
        """Whether the job must be submitted again to run on its devices, and to stay there."""
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
    """Moves jobs of a cluster."""

    rest: Rest
    flink: Flink
    program: Program
    tell: Tell  # function that receives a message for every step
    settings: MoveSettings = field(default_factory=MoveSettings)  # how jobs are moved
    # The command that finishes the move, for messages; by default it is derived from the rest.
    resume_by: str = ""
    # Placements after and before a move, without devices that were lost; None waits for these.
    without_lost: Callable[[Journal], tuple[DevicesOf, DevicesOf]] | None = None

    def plan(self, job: str, vectors: Vectors) -> MovePlan:
        """Find out where a job runs, and whether it can be moved and, if necessary, moved back.

        Nothing is stopped; the job's main method runs twice, but submits nothing.
        """
        job = only_job(self.rest, job)
        folder_uri(self.rest, self.settings.savepoints, self.program.settings)
        document = self.rest.running_job(job)
        layout = layout_of(self.rest, job, document, vectors)
        before: DevicesOf = {name: sorted(devices) for name, devices in layout.items()}
        operators = job_operators(document, vectors)
        unsure = {name: before[name] for task in operators for name in task.unsure}
        if any(devices != next(iter(unsure.values())) for devices in unsure.values()):
            self.tell(
                f"note: {listed(tuple(unsure))} cannot be distinguished if the job has to return "
                "to its previous devices"
            )
        after = _devices_of(vectors, before)
        self.tell("checking that the job fits the new placement and its current one")
        settings = self._checked(job, before, after)
        folder = checkpoint_folder(self.rest, job, {**settings, **self.program.settings})
        note_slow_start(self.rest, job, document, self.settings.seconds, self.tell)
        plan = MovePlan(job, before, after, settings, name=document["name"], checkpoints=folder)
        return plan if plan.moved else replace(plan, pins=holds_whole(self.rest, job))

    def run(self, plan: MovePlan) -> FlinkMoved:
        """Move a job.

        Raises
        ------
        MoveUnderWay
            When another command moves it.
        FlinkError
            When it cannot be saved, and so continues to run; or when it does not run on its new
            devices, and runs on its previous ones again.
        Undecided
            When Flink no longer answers, so that the move must be resumed.
        """
        try:
            return self._run(plan)
        except Forgotten as error:
            self.tell(str(error))
        return self.resume(plan.job)

    def _run(self, plan: MovePlan) -> FlinkMoved:
        """Move a job, provided that the JobManager is not restarted."""
        with leaving_untouched(), ExitStack() as stack:
            journal = self._journal(plan)
            rate = self.rate(plan)
            folder = stack.enter_context(self.folder(jar_name(journal)))
            locks = JobLocks.listed(folder, journal.job)
            self._check_earlier(folder, journal, locks)
            check_saving(self.rest, folder, journal.job, self.settings.saving, self.tell)
            lock = acquire(folder, journal, locks)
            stack.enter_context(releasing(lock, self.tell))
            stack.enter_context(renewing(lock))
            with remembered(folder.rest, journal.job):
                transaction = stack.enter_context(
                    self._transaction(folder, lock, rate, plan.after, plan.before)
                )
            held = stack.pop_all()
        with held:
            remember(plan.job, self.program)
            return transaction.begin()

    def rate(self, plan: MovePlan) -> SourceFlow | None:
        """Return the output of a job's sources; None if it is not needed, or the job has gone."""
        if self.settings.settling.compares_rates:
            with suppress(Refusal):
                flow = source_flow(self.rest, plan.job, seconds_for(varies=plan.varies))
                if flow is None:
                    self.tell(f"note: Flink reports no rate of the sources, so {UNCOMPARED}")
                return flow
        return None

    def _journal(self, plan: MovePlan) -> Journal:
        """Return the journal of a new move."""
        jar = self.program.jar.resolve()
        return Journal(
            job=plan.job,
            trigger=secrets.token_hex(16),
            successor=successor(plan.job),
            before=plan.before,
            after=plan.after,
            settings=plan.settings,
            allow_non_restored=self.settings.allow_non_restored,
            name=plan.name,
            checkpoints=plan.checkpoints,
            jar=str(jar),
            digest=digest(jar),
            resume_by=self.resume_line(plan.job),
            began=now(),
            holder=Holder.current(),
        )

    def resume(self, job: str | None = None) -> FlinkMoved:
        """Finish an interrupted move, so that exactly one copy of the job runs.

        Parameters
        ----------
        job
            The job that was moved, or its successor; it may be omitted if only one move was
            interrupted.

        Raises
        ------
        SettingError
            When no move was interrupted.
        """
        with self.folder() as folder:
            journal = broken_off(folder, job and only_job(self.rest, job))
            journal = journal.model_copy(update={"holder": Holder.current()})
            lock = acquire(folder, journal, JobLocks.listed(folder, journal.job))
            with suppress(FlinkError):
                remove_left_jars(folder.rest, time.time())
            if journal.digest and journal.digest != digest(self.program.jar):
                self.tell(
                    f"note: {self.program.jar} differs from {journal.jar}, with which the move "
                    "was begun"
                )
            if self.settings.settling.compares_rates:
                self.tell(f"note: the rate before the interruption is not known, so {UNCOMPARED}")
            with resumable(self.resume_line(journal.job)), ExitStack() as stack:
                stack.enter_context(renewing(lock))
                places = journal.after, journal.before
                if self.without_lost is not None:
                    places = self.without_lost(journal)
                needed = set[str]().union(*map(devices_in, places))
                await_devices(folder.rest, needed, self.settings.seconds, self.tell)
                transaction = stack.enter_context(self._transaction(folder, lock, None, *places))
                held = stack.pop_all()
            with releasing(lock, self.tell), held:
                return transaction.conclude()

    def resume_line(self, job: str) -> str:
        """Command that finishes a move of a job."""
        made = self.resume_by or resume_command(self.program, self.rest.url, self.settings)
        return with_job(made, job)

    def running_job(self, given: str | None) -> str:
        """Id of the given job, else of the only one that has not ended.

        Raises SettingError when it does not run because its move was interrupted.
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
                        f"out by {journal.holder}; finish it with: "
                        f"{self.resume_line(journal.job)}"
                    )
        return job if job is not None else only_job(self.rest, given)

    def unfinished_moves(self) -> list[Journal]:
        """Moves in the folder of savepoints that are in progress or were interrupted."""
        with self.folder() as folder:
            return unfinished(folder)

    def _checked(self, job: str, before: DevicesOf, after: DevicesOf) -> Settings:
        """Return settings to carry over; raise an error if the job does not fit a placement."""
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
    def folder(self, jar_name: str | None = None) -> Iterator[SavepointFolder]:
        """Provide the folder of savepoints, while the block runs."""
        rest = self.rest.patient(PATIENCE_SECONDS, self.tell)
        uri = folder_uri(rest, self.settings.savepoints, self.program.settings)
        with savepoint_folder(rest, self.flink, uri, jar_name) as folder:
            yield folder

    @contextmanager
    def _transaction(
        self, folder: SavepointFolder, lock: MoveLock, rate: SourceFlow | None, *places: DevicesOf
    ) -> Iterator[Transaction]:
        """Provide the transaction of a move, with everything that it needs on the cluster."""
        journal = lock.journal
        program = replace(self.program, entry_class=self.program.entry)
        back = program.with_settings(journal.settings)
        forward = program.with_settings({**journal.settings, RETENTION: "RETAIN_ON_CANCELLATION"})
        with ExitStack() as uploads:
            managers = left_without(folder.rest, *chain_of(journal.job))
            ways = [
                Way(
                    uploads.enter_context(
                        placed_upload(
                            folder.rest,
                            self.flink,
                            program,
                            *fitted(folder.rest, devices, program.managed_mb, managers),
                        )
                    ),
                    program,
                    devices,
                )
                for program, devices in zip((forward, back), places, strict=True)
            ]
            yield Transaction(
                folder.rest,
                folder,
                lock,
                (ways[0], ways[1]),
                self.tell,
                self.settings,
                rate,
                self.resume_line(journal.job),
                awaits_lost=self.without_lost is None,
            )

    def _check_earlier(self, folder: SavepointFolder, journal: Journal, locks: JobLocks) -> None:
        """Raise an error if another move of the job is in progress, or was interrupted half-way."""
        earlier = locks.journal
        if earlier is not None:
            locks.refuse_holder(journal.job)
            if stop_status(self.rest, earlier.job, earlier.trigger) is not None:
                raise FlinkError(
                    f"an earlier move of job {journal.job} was interrupted after it had begun to "
                    f"stop the job; finish it with: {self.resume_line(journal.job)}"
                )
        check_first(folder, journal)


def _devices_of(vectors: Vectors, before: Mapping[str, list[str]]) -> DevicesOf:
    """Device of every subtask; operators without a list keep their number of subtasks."""
    return {
        name: [vector] * max(1, len(before.get(name, ()))) if isinstance(vector, str) else [*vector]
        for name, vector in vectors.items()
    }
