"""Moving, with a Flink that answers what it is told to: whatever fails, the job runs again."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_flink import ScriptedFlink, healthy, job, scripted_flink

from streamplace.engines.flink import move as moving
from streamplace.engines.flink import state
from streamplace.engines.flink.dist import Flink
from streamplace.engines.flink.move import Move, Plan
from streamplace.engines.flink.pinning import Vectors
from streamplace.engines.flink.program import Program
from streamplace.engines.flink.rest import FlinkError, Rest
from streamplace.engines.flink.state import Savepoint
from streamplace.engines.flink.verify import Verification

PLAN = Plan("old", {"map": ["dev-0"]}, {"map": ["dev-1"]})
SAVED = {"status": {"id": "COMPLETED"}, "operation": {"location": "file:/s/savepoint-1"}}
UNDER_WAY = {"status": {"id": "IN_PROGRESS"}}
FAILED = {"status": {"id": "COMPLETED"}, "operation": {"failure-cause": {"stack-trace": "no disk"}}}
RETAINED = {"counts": {"completed": 3}, "latest": {"completed": {"external_path": "s3://b/chk-3"}}}


@pytest.fixture
def flink() -> Iterator[ScriptedFlink]:
    """A cluster on which the job "old" ends with a savepoint when it is asked to."""
    answers: dict[str, Any] = healthy("dev-0", "dev-1") | {
        "POST /jobs/old/stop": {"request-id": "t1"},
        "GET /jobs/old/savepoints/t1": SAVED,
        "GET /jobs/old": job("old", "FINISHED", {}),
        "GET /jobs/new": job("new", "CANCELED", {}),
    }
    with scripted_flink(answers) as answering:
        yield answering


class Started(list[tuple[str, str]]):
    """Where and from what jobs were started; the first so many fail."""

    def __init__(self, failures: list[BaseException]) -> None:
        super().__init__()
        self.failures = failures

    def __call__(self, *given: Any, savepoint: Savepoint, seconds: float) -> str:
        """Start a job, as ``apply`` does."""
        vectors: Vectors = given[3]
        self.append((vectors["map"][0], savepoint.path))
        if self.failures:
            raise self.failures.pop(0)
        return "new"


@pytest.fixture
def run(flink: ScriptedFlink, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Started]:
    """Move the job; returns what was started, and raises what was raised."""

    def call(*failures: BaseException, started: Started | None = None) -> Started:
        found = Started([*failures]) if started is None else started
        monkeypatch.setattr(moving, "apply", found)
        monkeypatch.setattr(moving, "verify", lambda *_: Verification((), (), ()))
        move = Move(Rest(flink.url), Flink(Path(), "2.3.0"), Program(Path("a.jar")), lambda _: None)
        move.run(PLAN)
        return found

    return call


def test_a_job_is_started_from_its_savepoint_where_it_is_placed(
    run: Callable[..., Started], flink: ScriptedFlink
) -> None:
    """The folder is the cluster's own, where none is given."""
    assert run() == [("dev-1", "file:/s/savepoint-1")]
    assert {"drain": False} in [document for _, document in flink.asked]


def test_a_job_that_does_not_start_goes_back(run: Callable[..., Started]) -> None:
    """Once, from the same savepoint; both are told."""
    started = Started([FlinkError("no slots")])
    with pytest.raises(FlinkError, match=r"^no slots; the job runs again where it ran, as job new"):
        run(started=started)
    assert started == [("dev-1", "file:/s/savepoint-1"), ("dev-0", "file:/s/savepoint-1")]


def test_where_going_back_fails_the_savepoint_is_told(run: Callable[..., Started]) -> None:
    told = "no slots; going back failed, too: no disk.*--savepoint file:/s/savepoint-1$"
    with pytest.raises(FlinkError, match=told):
        run(FlinkError("no slots"), FlinkError("no disk"))


def test_an_interrupted_job_goes_back(run: Callable[..., Started]) -> None:
    """And the interruption goes on."""
    started = Started([KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        run(started=started)
    assert [device for device, _ in started] == ["dev-1", "dev-0"]


def test_a_job_that_is_being_stopped_goes_back_when_interrupted(
    run: Callable[..., Started], flink: ScriptedFlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flink stops it all the same."""
    flink.answers["GET /jobs/old/savepoints/t1"] = [UNDER_WAY, SAVED]

    def interrupted(_: float) -> None:
        monkeypatch.undo()
        monkeypatch.setattr(moving, "apply", started)
        monkeypatch.setattr(moving, "verify", lambda *_: Verification((), (), ()))
        raise KeyboardInterrupt

    started = Started([])
    monkeypatch.setattr(state.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(started=started)
    assert started == [("dev-0", "file:/s/savepoint-1")]


def test_a_job_that_cannot_be_saved_goes_on(
    run: Callable[..., Started], flink: ScriptedFlink
) -> None:
    flink.answers |= {
        "GET /jobs/old/savepoints/t1": FAILED,
        "GET /jobs/old": job("old", "RUNNING", {}),
        "GET /jobs/old/checkpoints": RETAINED,
    }
    started = Started([])
    with pytest.raises(FlinkError, match=r"^job old cannot be saved: no disk$"):
        run(started=started)
    assert started == []


def test_a_job_that_fails_while_it_is_stopped_goes_back_to_what_it_saved_last(
    run: Callable[..., Started], flink: ScriptedFlink
) -> None:
    """A checkpoint that was retained."""
    flink.answers |= {
        "GET /jobs/old/savepoints/t1": FAILED,
        "GET /jobs/old": job("old", "FAILED", {}),
        "GET /jobs/old/checkpoints": RETAINED,
    }
    started = Started([])
    with pytest.raises(FlinkError, match="no disk; the job runs again where it ran"):
        run(started=started)
    assert started == [("dev-0", "s3://b/chk-3")]


@pytest.mark.parametrize("saved", [RETAINED, {"counts": {"completed": 0}}])
def test_a_job_that_comes_to_its_end_meanwhile_is_not_started_again(
    run: Callable[..., Started], flink: ScriptedFlink, saved: dict[str, Any]
) -> None:
    """From its last checkpoint it would tell twice what it had told since."""
    flink.answers |= {"GET /jobs/old/savepoints/t1": FAILED, "GET /jobs/old/checkpoints": saved}
    started = Started([])
    with pytest.raises(FlinkError, match=r"^job old came to its end before it could be saved; "):
        run(started=started)
    assert started == []
