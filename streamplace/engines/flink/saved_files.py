"""State on files: what the jobs of a move have saved, where Flink itself no longer knows them."""

from typing import NamedTuple

from streamplace.engines.flink.copies import maker, same_place
from streamplace.engines.flink.folder import FileEntry, SavepointFolder
from streamplace.engines.flink.job_ids import chain_of
from streamplace.engines.flink.journal import Journal, file_name

CHAIN = 6
"""Jobs of a move whose state is looked for: the first, its successor, and returns."""


class SavedState(NamedTuple):
    """Complete state in a file.

    Attributes
    ----------
    path
        Of the savepoint or checkpoint.
    job
        The job that has saved it.
    age
        Seconds since it was complete.
    """

    path: str
    job: str
    age: float

    @property
    def words(self) -> str:
        """What it is."""
        kind = "checkpoint" if "/chk-" in self.path else "savepoint"
        return f"the last complete {kind} is {self.path}"


def last_on_files(folder: SavepointFolder, journal: Journal) -> SavedState | None:
    """Last complete state that any job of a move has saved; None where there is none.

    The jobs followed one another, so the state of a later one is later. Savepoints of the first job
    that are older than the move may be from long before, and are not meant.
    """
    for job in reversed(chain_of(journal.job, CHAIN)):
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
    """Path of the last complete state of a move: in the journal, or later on files."""
    state = last_on_files(folder, journal)
    if state is None or (journal.savepoint is not None and state.job == journal.job):
        return journal.savepoint
    return state.path


def concerns(journal: Journal, path: str) -> bool:
    """Whether a savepoint or checkpoint is one of the jobs of a move."""
    made_by = maker(path)
    chain = chain_of(journal.job, CHAIN)
    of_chain = bool(made_by) and any(made_by in (job, job[: len(made_by)]) for job in chain)
    return of_chain or (journal.savepoint is not None and same_place(path, journal.savepoint))


def _age(folder: SavepointFolder, journal: Journal) -> float:
    """Seconds since a move began, by the clock of the file system; 0 where no lock tells."""
    entries: list[FileEntry] = folder.entries(file_name(journal.job, 1))
    return max((entry.age for entry in entries), default=0.0)
