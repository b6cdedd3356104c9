"""Journal of moves: rows of the user's store, one for each move that has not ended.

A move is written before its job is stopped, and every step before it is carried out. So a command
that is killed at any line leaves a row that says how far it has come, and ``--resume`` goes on from
there. The row is also the claim of its command on the job and its successors.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import Field, TypeAdapter

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.rest.client import FlinkError
from streamplace.engines.flink.rest.job_ids import chain_of
from streamplace.errors import SettingError, StreamplaceError
from streamplace.io.store import Claimed, Holder, Store, StoreError, Table
from streamplace.model.messages import listed, quoted


class Journal(Claimed):
    """Parameters and progress of a move."""

    url: str  # address of the cluster, without name and password
    job: str  # the job that is moved
    trigger: str  # id of the request that stops it
    successor: str  # id of the job that is started in its place
    # Devices of its subtasks, now and afterwards.
    before: Layout
    after: Layout
    folder: str  # path or URI of the folder of savepoints
    # Settings of the running job that its successors get.
    settings: dict[str, str] = Field(default_factory=dict)
    allow_non_restored: bool = False
    # Savepoint or checkpoint that the next job of the move starts from, once known.
    savepoint: str | None = None
    # The last job of the move that Flink was asked to start; empty before the first one.
    asked: str = ""
    # Whether the move has failed, so that the job returns to its previous devices.
    returns: bool = False
    # Whether the job has lost devices, and so is cancelled and goes on from its last checkpoint.
    cancels: bool = False
    name: str = ""  # name of the job
    # Folder with a folder of checkpoints for each job; None if unknown.
    checkpoints: str | None = None
    # The job's jar on the machine of the move, and its SHA-256.
    jar: str = ""
    digest: str = ""
    resume_by: str = ""  # the command that finishes the move
    began: datetime

    def concerns(self, job: str) -> bool:
        """Whether a job is the moved one, or one that may be started in its place."""
        return job in chain_of(self.job)


class MoveUnderWay(StreamplaceError):
    """Another command moves the job."""


def refuse_held(journal: Journal) -> None:
    """Raise MoveUnderWay if the command of a move still runs."""
    if journal.is_held:
        raise MoveUnderWay(
            f"job {journal.job} is being moved, by {journal.holder}, since "
            f"{journal.began:%Y-%m-%d %H:%M:%S} UTC; wait until that has ended"
        )


MOVES = Table("moves", TypeAdapter(Journal))


def unfinished() -> list[Journal]:
    """Moves of this user that are in progress or were interrupted, the oldest first."""
    return [*Store.usual().rows(MOVES).values()]


def forget(job: str) -> None:
    """Delete the row of a move that has ended."""
    with Store.usual().transaction() as rows:
        rows.delete(MOVES, job)


@dataclass(slots=True)
class MoveClaim:
    """The claim of this process on a move, with its journal."""

    journal: Journal

    @classmethod
    def begin(cls, journal: Journal) -> "MoveClaim":
        """Write a new move; raise MoveUnderWay if another command moves one of its jobs.

        Raises FlinkError when a move of them was interrupted.
        """
        with Store.usual().transaction() as rows:
            for other in rows.all(MOVES).values():
                if other.concerns(journal.job) or journal.concerns(other.job):
                    refuse_held(other)
                    raise FlinkError(
                        f"a move of job {other.job} was interrupted; finish it with: "
                        f"{other.resume_by}"
                    )
            rows.add(MOVES, journal.job, journal)
        return cls(journal)

    @classmethod
    def take(cls, job: str) -> "MoveClaim":
        """Claim an interrupted move; raise MoveUnderWay if a command carries it out."""
        with Store.usual().transaction() as rows:
            for number, known in rows.all(MOVES, job).items():
                refuse_held(known)
                journal = known.model_copy(update={"holder": Holder.current()})
                rows.put(MOVES, number, journal)
                return cls(journal)
        raise SettingError(f"the move of job {quoted(job)} has been finished meanwhile")

    def save(self, journal: Journal) -> None:
        """Write the next step of the move, unless it has ended."""
        self.journal = journal
        with Store.usual().transaction() as rows:
            for number in rows.all(MOVES, journal.job):
                rows.put(MOVES, number, journal)

    def leave(self) -> None:
        """Leave the move unfinished, unless it has ended, for whoever resumes it."""
        with suppress(StoreError):  # the claim ends with the process
            self.save(self.journal.model_copy(update={"holder": None}))

    def end(self) -> None:
        """End the move."""
        with suppress(StoreError):  # the next command finds that nothing is left to do
            forget(self.journal.job)


@contextmanager
def left_on_failure(claim: MoveClaim) -> Iterator[None]:
    """Leave a move unfinished if the block fails."""
    try:
        yield
    except BaseException:
        claim.leave()
        raise


def broken_off(journals: Iterable[Journal], job: str | None) -> Journal:
    """Journal of the only unfinished move, or of the unfinished move of a job.

    Raises SettingError when there is none, or more than one.
    """
    found = [*journals]
    if job is not None:  # it may have been moved, and moved again
        own = [journal for journal in found if journal.job == job]
        found = own or [journal for journal in found if journal.concerns(job)]
    if not found:
        of = "" if job is None else f" of job {quoted(job)}"
        raise SettingError(
            f"this machine has no record of an interrupted move{of} on this cluster; drop --resume "
            "to start one, or resume it on the machine, and with the --rest, of its first command"
        )
    if len(found) > 1:
        names = listed(tuple(journal.job for journal in found))
        raise SettingError(
            f"moves of {len(found)} jobs were interrupted: {names}; choose one with --job"
        )
    return found[0]


def now() -> datetime:
    """Current time, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)
