"""A move of a job on a Flink that answers what it is told to."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fake_flink import FakeFlink, InTurn, failure, healthy, job, jobs

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move import transaction
from streamplace.engines.flink.move.journal import Journal, MoveClaim, forget, unfinished
from streamplace.engines.flink.move.settling import MoveSettings
from streamplace.engines.flink.move.transaction import Transaction, Way
from streamplace.engines.flink.program.jars import SPENT
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.program.submission import ClusterJar
from streamplace.engines.flink.rest.client import Rest, successor

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


def cluster_jar(rest: Rest, name: str) -> ClusterJar:
    """A jar that is on the cluster."""
    return ClusterJar(rest, Path(name), name)


def answering_flink() -> FakeFlink:
    """A cluster on which the job ends with a savepoint when it is asked to."""
    answers = healthy("dev-0", "dev-1") | {
        f"POST /jobs/{OLD}/stop": {"request-id": "t1"},
        STOP: SAVED,
        f"GET /jobs/{OLD}": InTurn(RUNNING, RUNNING, FINISHED),
        f"GET /jobs/{OLD}/checkpoints": {"counts": {"completed": 0}},
        f"GET /jobs/{NEW}": UNKNOWN,
        f"GET /jobs/{BACK}": UNKNOWN,
        f"GET /jobs/{AGAIN}": UNKNOWN,
        "GET /jobs": jobs({OLD: "FINISHED"}),
    }
    return FakeFlink(answers)


def complete(place: Path, age: float) -> str:
    """Write a savepoint or checkpoint that is some seconds old; return its path."""
    place.mkdir(parents=True)
    (place / "_metadata").touch()
    os.utime(place / "_metadata", times=(time.time() - age,) * 2)
    return place.as_uri()


class MoveCase:
    """A move of a job on a cluster that answers what it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.flink = answering_flink()
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

    def _submit(
        self,
        rest: Rest,
        jar: ClusterJar,
        request: dict[str, Any],
        job_id: str,
        await_ready: Callable[[], None],
    ) -> bool:
        await_ready()
        self.started.append((job_id, jar.id, request["savepointPath"]))
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
