"""State on files: savepoints and checkpoints of the jobs of a move, which Flink may not know.

A job that another command starts from one of them would be a second copy once the move is finished.
"""

from contextlib import suppress
from typing import NamedTuple

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move.copies import CopyRuns, maker, same_place
from streamplace.engines.flink.move.folder import (
    FileEntry,
    SavepointFolder,
    folder_uri,
    savepoint_folder,
)
from streamplace.engines.flink.move.journal import Journal, file_name, unfinished
from streamplace.engines.flink.move.leftovers import left_savepoints
from streamplace.engines.flink.program.submission import chain_states
from streamplace.engines.flink.rest.client import ENDED, FlinkError, NoAnswer, Rest
from streamplace.engines.flink.rest.job_ids import chain_of
from streamplace.errors import SettingError
from streamplace.model.messages import shown


class SavedState(NamedTuple):
    """A complete savepoint or checkpoint."""

    path: str  # path of the savepoint or checkpoint
    job: str  # the job that saved it
    age: float  # seconds since its completion

    @property
    def words(self) -> str:
        """Clause on its kind and path."""
        kind = "checkpoint" if "/chk-" in self.path else "savepoint"
        return f"the last complete {kind} is {self.path}"


def last_on_files(folder: SavepointFolder, journal: Journal) -> SavedState | None:
    """Last complete state of any job of a move; None if there is none.

    The jobs ran one after another, so the state of a later job is newer. Savepoints of the first
    job that are older than the move are ignored, because they may be much older.
    """
    for job in reversed(chain_of(journal.job)):
        states = [
            SavedState(folder.path(entry.name), job, entry.age)
            for entry in folder.complete(folder.uri, f"savepoint-{job[:6]}-")
            if job != journal.job or entry.age <= _age(folder, journal)
        ]
        if journal.checkpoints is not None:
            own = f"{journal.checkpoints.rstrip('/')}/{job}"
            entries = folder.complete(own, "chk-")
            states += [SavedState(f"{own}/{entry.name}", job, entry.age) for entry in entries]
        if states:
            return min(states, key=lambda state: state.age)
    return None


def last_path(folder: SavepointFolder, journal: Journal) -> str | None:
    """Path of the last complete state of a move: of a newer one on files, else from the journal."""
    state = last_on_files(folder, journal)
    if state is None or (journal.savepoint is not None and state.job == journal.job):
        return journal.savepoint
    return state.path


def concerns(journal: Journal, path: str) -> bool:
    """Whether a savepoint or checkpoint belongs to the jobs of a move."""
    made_by = maker(path)
    of_chain = bool(made_by) and any(job.startswith(made_by) for job in chain_of(journal.job))
    return of_chain or (journal.savepoint is not None and same_place(path, journal.savepoint))


def _age(folder: SavepointFolder, journal: Journal) -> float:
    """Seconds since a move began, by the clock of the file system; 0 if it has no lock."""
    entries: list[FileEntry] = folder.entries(file_name(journal.job, 1))
    return max((entry.age for entry in entries), default=0.0)


def refuse_moved(rest: Rest, flink: Flink, path: str) -> None:
    """Raise CopyRuns if a savepoint or checkpoint belongs to an unfinished move, or its job runs.

    Folders that the JobManager cannot list contain no journals.
    """
    folders = [path.rstrip("/").rpartition("/")[0]]
    with suppress(SettingError):
        folders.append(folder_uri(rest, None))
    with savepoint_folder(rest, flink, folders[0]) as access:
        for uri in dict.fromkeys(folders):
            try:
                _refuse_in(rest, SavepointFolder(rest, uri, access.jar), path)
            except (CopyRuns, NoAnswer):
                raise
            except FlinkError:
                continue


def _refuse_in(rest: Rest, folder: SavepointFolder, path: str) -> None:
    """Raise CopyRuns if a folder contains a move that a savepoint belongs to."""
    for journal in unfinished(folder):
        if concerns(journal, path):
            raise CopyRuns(
                f"{shown(path, 300)} belongs to a move of job {journal.job} that has not finished; "
                f"nothing was started. Finish the move with: "
                f"{journal.resume_by or 'streamplace flink move JAR --resume'}"
            )
    for left in left_savepoints(folder):
        if same_place(left.path, path):
            for job, state in chain_states(rest, left.job).items():
                if state not in ENDED:
                    raise CopyRuns(
                        f"job {job} ({state}) continues from {shown(path, 300)} already; nothing "
                        "was started"
                    )
