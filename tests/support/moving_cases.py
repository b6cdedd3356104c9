"""A move of a job on a Flink that answers what it is told to."""

from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest
from fake_flink import FakeFlink, InTurn, failure
from flink_documents import healthy, job, jobs

from streamplace.engines.flink.move import endings, transaction
from streamplace.engines.flink.move.folder import FileEntry, SavepointFolder
from streamplace.engines.flink.move.holder import Holder
from streamplace.engines.flink.move.journal import Journal, MoveLock
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.move.settling import Settling
from streamplace.engines.flink.move.transaction import Transaction, Way
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.program.uploads import ClusterJar
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.job_ids import successor

OLD = "old"
NEW = successor(OLD)
BACK = successor(NEW)
AGAIN = successor(BACK)
STOP = f"GET /jobs/{OLD}/savepoints/t1"
SAVED = {"status": {"id": "COMPLETED"}, "operation": {"location": "file:/s/savepoint-1"}}
UNDER_WAY = {"status": {"id": "IN_PROGRESS"}}
FAILED = {"status": {"id": "COMPLETED"}, "operation": {"failure-cause": {"stack-trace": "no disk"}}}
RETAINED = {"counts": {"completed": 3}, "latest": {"completed": {"external_path": "s3://b/chk-3"}}}
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
UNKNOWN = failure("Could not find Flink job (…)")
Started = list[tuple[str, str, str]]
RUNNING, FINISHED = job(OLD, "RUNNING", {}), job(OLD, "FINISHED", {})


class MemoryFolder(SavepointFolder):
    """A folder of savepoints in memory."""

    files: ClassVar[dict[str, str]] = {}
    rewritten: ClassVar[set[str]] = set()

    def create(self, name: str, text: str) -> bool:
        """Write a file that does not exist yet."""
        return self.files.setdefault(name, text) is text

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        self.files[name] = text
        self.rewritten.add(name)

    def read(self, name: str) -> str:
        """Text of a file."""
        return self.files.get(name, "")

    def delete(self, name: str) -> None:
        """Delete a file."""
        self.files.pop(name, None)

    def entries(self, prefix: str) -> list[FileEntry]:
        """Files whose names begin with a prefix; they are a minute old, or were just rewritten."""
        return [
            FileEntry(name, 0.0 if name in self.rewritten else 60.0)
            for name in self.files
            if name.startswith(prefix)
        ]

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


def cluster_jar(rest: Rest, name: str) -> ClusterJar:
    """A jar that is on the cluster."""
    return ClusterJar(rest, lambda: nullcontext(Path(name)), name, name)


def answering_flink() -> FakeFlink:
    """A cluster on which the job ends with a savepoint when it is asked to."""
    answers = healthy("dev-0", "dev-1") | {
        f"POST /jobs/{OLD}/stop": {"request-id": "t1"},
        STOP: SAVED,
        f"GET /jobs/{OLD}": InTurn(RUNNING, FINISHED),
        f"GET /jobs/{OLD}/checkpoints": {"counts": {"completed": 0}},
        f"GET /jobs/{NEW}": UNKNOWN,
        f"GET /jobs/{BACK}": UNKNOWN,
        f"GET /jobs/{AGAIN}": UNKNOWN,
        "GET /jobs": jobs({OLD: "FINISHED"}),
    }
    return FakeFlink(answers)


class MoveCase:
    """A move of a job on a cluster that answers what it is told to.

    Attributes
    ----------
    flink
        The cluster.
    started
        Id, way and savepoint of every job that was started.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.flink, self.started = answering_flink(), Started()
        self._failures: list[BaseException] = []
        request = lambda _, saved: {"savepointPath": saved.path}  # noqa: E731
        monkeypatch.setattr(Program, "run_request", request)
        monkeypatch.setattr(transaction, "submit", self._submit)
        monkeypatch.setattr(transaction, "wait_started", lambda *_: None)
        monkeypatch.setattr(transaction, "check_placed", lambda *_: True)
        monkeypatch.setattr(endings, "STEADY_SECONDS", 0.2)

    def _submit(self, rest: Rest, jar: ClusterJar, request: dict[str, Any], job_id: str) -> None:
        self.started.append((job_id, jar.id, request["savepointPath"]))
        if self._failures:
            raise self._failures.pop(0)

    def move(self, *failures: BaseException) -> Transaction:
        """A move whose starts fail as told, one after the other."""
        self._failures = [*failures]
        MemoryFolder.files.clear()
        MemoryFolder.rewritten.clear()
        rest = self.flink.rest
        journal = Journal(
            job=OLD,
            trigger="t1",
            successor=NEW,
            before={"map": ["dev-0"]},
            after={"map": ["dev-1"]},
            began=datetime(2020, 1, 1, tzinfo=UTC),
            holder=Holder.current(),
        )
        folder = MemoryFolder(rest, "file:///s", cluster_jar(rest, "jar-files"))
        program = Program(Path("a.jar"))
        ways = (
            Way(cluster_jar(rest, "there"), program, journal.after),
            Way(cluster_jar(rest, "here"), program, journal.before),
        )
        return Transaction(
            rest,
            folder,
            MoveLock(folder, journal, []),
            ways,
            lambda _: None,
            MoveSettings(seconds=5.0, settling=Settling(0.0)),
            None,
            "move --resume",
        )
