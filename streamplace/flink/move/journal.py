"""Journal of moves: rows of the user's store, one for each move that has not ended.

A move is written before its job is stopped, and every step before it is carried out. So a command
that is killed at any line leaves a row with its last step, from which ``--resume`` continues. The
row is also the claim of its command on the job and its successors.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

from pydantic import BaseModel, Field, TypeAdapter

from streamplace.errors import SettingError, StreamplaceError
from streamplace.flink.layout import Layout
from streamplace.flink.rest.client import FlinkError, chain_of, successor
from streamplace.flink.store import WHOLE, Claim, Claimed, Store, Table, claim_row, with_holder
from streamplace.model.message_text import listed, quoted


class MoveUnderWay(StreamplaceError):
    """Another command moves the job."""


class MovePlan(BaseModel):
    """Plan of a move."""

    model_config = WHOLE

    job: str  # the running job
    # Devices of its subtasks, before and after the move.
    before: Layout
    after: Layout
    # Settings of the running job that have to be repeated for its successors.
    settings: dict[str, str] = Field(default_factory=dict)
    # Whether no subtask moves, but the job was submitted without a placement: its slots take all
    # resources of their TaskManagers, and it may restart on others after a failure.
    pins: bool = False
    name: str = ""  # name of the job
    # Folder with a folder of checkpoints for each job; None if unknown.
    checkpoints: str | None = None

    @property
    def is_needed(self) -> bool:
        """Whether the job must be submitted again to run on its devices, and to stay there."""
        return self.pins or bool(self.moved)

    @property
    def moved(self) -> dict[str, tuple[dict[str, int], dict[str, int]]]:
        """Operators that move, with the numbers of their subtasks by device before and after."""
        return self.after.moved_from(self.before)


class Journal(MovePlan, Claimed):
    """Plan, parameters and progress of a move."""

    url: str  # address of the cluster
    trigger: str  # id of the request that stops the job
    folder: str  # path or URI of the folder of savepoints
    allow_non_restored: bool = False
    # Savepoint or checkpoint that the next job of the move starts from, once known.
    savepoint: str | None = None
    # The last job of the move that Flink was asked to end or to start; empty before that.
    requested_job: str = ""
    # Whether the move has failed, so that the job returns to its previous devices.
    returns: bool = False
    # Whether the job has lost devices, is therefore cancelled, and continues from a checkpoint.
    cancels: bool = False
    resume_by: str = ""  # the command that finishes the move
    began: datetime = Field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))

    @property
    def successor(self) -> str:
        """Id of the job that replaces it."""
        return successor(self.job)

    def concerns(self, job: str) -> bool:
        """Whether a job is the moved job or one of its successors."""
        return job in chain_of(self.job)

    def refuse_held(self) -> None:
        """Raise MoveUnderWay if the command of the move still runs."""
        if self.is_held:
            raise MoveUnderWay(
                f"job {self.job} is being moved, by {self.holder}, since "
                f"{self.began:%Y-%m-%d %H:%M:%S} UTC; wait until that has ended"
            )

    def interrupted(self) -> FlinkError:
        """Error: this move has to be finished before another one begins."""
        return FlinkError(
            f"a move of job {self.job} was interrupted; finish it with: {self.resume_by}"
        )


MOVES = Table("moves", TypeAdapter(Journal))


def unfinished() -> list[Journal]:
    """Moves of this user that are in progress or were interrupted, the oldest first."""
    return [*Store.usual().rows(MOVES).values()]


class MoveClaim(Claim[Journal]):
    """The claim of this process on a move."""

    @classmethod
    def begin(cls, journal: Journal) -> "MoveClaim":
        """Write a new move.

        Raises MoveUnderWay when another command moves one of its jobs, and FlinkError when such a
        move was interrupted.
        """
        journal = with_holder(journal)
        with Store.usual().transaction() as rows:
            for other in rows.all(MOVES).values():
                if other.concerns(journal.job) or journal.concerns(other.job):
                    other.refuse_held()
                    raise other.interrupted()
            rows.add(MOVES, journal.job, journal)
        return cls(MOVES, journal.job, journal)

    @classmethod
    def take(cls, job: str) -> "MoveClaim":
        """Claim an interrupted move; raise MoveUnderWay if a command carries it out."""
        if (journal := claim_row(MOVES, job, Journal.refuse_held)) is None:
            raise SettingError(f"the move of job {quoted(job)} has been finished meanwhile")
        return cls(MOVES, job, journal)


def interrupted_move(journals: Iterable[Journal], job: str | None) -> Journal:
    """Journal of the only unfinished move, or of the unfinished move of a job.

    Raises SettingError when there is none, or more than one.
    """
    moves = [*journals]
    if job is not None:  # it may have been moved, and moved again
        exact = [journal for journal in moves if journal.job == job]
        moves = exact or [journal for journal in moves if journal.concerns(job)]
    if not moves:
        of_job = "" if job is None else f" of job {quoted(job)}"
        raise SettingError(
            f"this machine has no record of an interrupted move{of_job} on this cluster; drop "
            "--resume to start one, or resume it on the machine where it began, with the same "
            "--rest"
        )
    if len(moves) > 1:
        names = listed(tuple(journal.job for journal in moves))
        raise SettingError(
            f"moves of {len(moves)} jobs were interrupted: {names}; choose one with --job"
        )
    return moves[0]


def last_path(journal: Journal) -> str | None:
    """Path of the last complete state of a move: the newest file, or that of the journal.

    It is for a JobManager that has forgotten the jobs. These ran one after another, so the state of
    a later job is newer. Savepoints of the first job from before the move are ignored, because they
    may be much older.
    """
    began, chain = journal.began.timestamp(), chain_of(journal.job)
    prefixes = {job: f"savepoint-{job[:6]}-" for job in chain}
    saved = [*_complete_states(journal.folder, tuple(prefixes.values()))]
    for job in reversed(chain):
        is_first = job == journal.job
        if is_first and journal.savepoint is not None:
            break
        states = [
            (at, path)
            for at, path in saved
            if path.rpartition("/")[2].startswith(prefixes[job]) and (not is_first or at >= began)
        ]
        if journal.checkpoints is not None:
            states += _complete_states(f"{journal.checkpoints.rstrip('/')}/{job}", ("chk-",))
        if states:
            return max(states)[1]
    return journal.savepoint


def is_local(uri: str | None) -> bool:
    """Whether a path or URI is that of a file system, which this machine may be able to read."""
    return uri is not None and uri.partition(":")[0] in (uri, "file")


def _complete_states(uri: str, prefixes: tuple[str, ...]) -> Iterator[tuple[float, str]]:
    """Times and paths of complete savepoints or checkpoints in a folder of this machine."""
    _, colon, path = uri.partition(":")
    if not is_local(uri):
        return
    folder = Path(unquote(path.removeprefix("//")) if colon else uri)
    with suppress(OSError):
        for place in folder.iterdir():
            written = place / "_metadata"  # Flink writes it last
            if place.name.startswith(prefixes) and written.exists():
                yield written.stat().st_mtime, f"{uri.rstrip('/')}/{place.name}"
