"""What goes wrong while a watch starts a job in place of a lost TaskManager is dealt with, too."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from fake_flink import FakeFlink, InTurn
from flink_documents import KEPT, healthy, job, jobs
from lazy_flink import Clock
from watched_jobs import CHECKPOINTED, OLD, RESTORED, SAVED, lacking, replacing_of

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.move.others import CopyRuns
from streamplace.engines.flink.pin.verify import Verification
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer, Refusal, Rest
from streamplace.engines.flink.rest.tasks import StillStarting
from streamplace.engines.flink.watch import replacing
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.replacing import Notices, PlacedJob, Replacing
from streamplace.errors import StreamplaceError
from streamplace.io.store import Store
from streamplace.io.watches import WatchDecision

NEW = "b" * 32
HEALTHY = healthy("dev-0", "dev-1", "dev-2")
SILENCE = NoAnswer("Flink does not answer")


@pytest.fixture
def flink() -> FakeFlink:
    """A cluster that has lost dev-0 of three TaskManagers, and a job that takes checkpoints."""
    return FakeFlink(
        HEALTHY
        | {
            "GET /taskmanagers": lacking(HEALTHY, "dev-0"),
            f"GET /jobs/{OLD}": job("shop", "RESTARTING", {}),
            f"GET /jobs/{OLD}/checkpoints/config": KEPT,
            f"GET /jobs/{NEW}/checkpoints/config": KEPT,
            f"GET /jobs/{OLD}/checkpoints": CHECKPOINTED,
            f"GET /jobs/{NEW}/checkpoints": RESTORED,
            "GET /jobs": jobs({OLD: "CANCELED"}),
        }
    )


def begin(flink: FakeFlink, device: str, *before: Any) -> None:
    """Let Flink know the job that was started on a device, and what it answers of it at first."""
    flink.answers |= {
        "GET /jobs": jobs({OLD: "CANCELED", NEW: "RUNNING"}),
        f"GET /jobs/{NEW}": InTurn(*before, job("shop", "RUNNING", {"map": "RUNNING"})),
        f"GET /jobs/{NEW}/vertices/map": {"subtasks": [{"taskmanager-id": device}]},
    }


class Starts:
    """Tries to start a job, and what becomes of each."""

    def __init__(self, ends: Sequence[Callable[[], None] | StreamplaceError | None]) -> None:
        self.ends, self.seen = list(ends), list[tuple[Layout, str | None]]()

    def __call__(self, *given: Any, savepoint: Any, **_: Any) -> str:
        """Start it, as ``apply`` does."""
        self.seen.append((given[3], savepoint and savepoint.path))
        end = self.ends.pop(0)
        if isinstance(end, StreamplaceError):
            raise end
        if end is not None:
            end()
        return NEW


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Starts]:
    """Say what becomes of the tries to start a job."""
    monkeypatch.setattr(replacing, "verify", lambda *_: Verification((), (), ()))
    monkeypatch.setattr(replacing, "unfit", lambda *_: None)
    monkeypatch.setattr(replacing, "check_made", lambda *_: None)
    monkeypatch.setattr(replacing, "time", Clock())
    monkeypatch.setattr(Rest, "cancel", lambda *_: None)

    def given(*ends: Callable[[], None] | StreamplaceError | None) -> Starts:
        found = Starts(ends)
        monkeypatch.setattr(replacing, "apply", found)
        return found

    return given


def own_replacing(
    flink: FakeFlink, told: list[str], log: WatchLog | None = None, seconds: float = 120.0
) -> Replacing:
    """Start a job again on whatever is there."""
    own = log or WatchLog.claimed(Store.usual(), OLD, "shop", told.append)
    facts: dict[str, Any] = {"patience": 5.0, "seconds": seconds, "takes_free": True}
    return replacing_of(flink, own, told.append, **facts)


def replaced(flink: FakeFlink, subtasks: int = 1, **facts: Any) -> tuple[PlacedJob, list[str]]:
    """The job as it runs in place of one on dev-0, and what was told."""
    told: list[str] = []
    run = PlacedJob(OLD, Layout({"map": ["dev-0"] * subtasks}))
    made = own_replacing(flink, told, **facts)
    return made.replace_lost(run, ["dev-0"], Notices(told.append)), told


def test_a_spare_that_is_lost_while_the_job_starts_is_replaced_in_turn(
    flink: FakeFlink, starts: Callable[..., Starts], store: Store
) -> None:
    """Flink notices its loss later than the start fails, and the job goes on from the same state.

    The store tells in the end where the job runs.
    """
    first, second = flink.answers["GET /taskmanagers"], lacking(flink.answers, "dev-1")

    def lose() -> None:
        flink.answers["GET /taskmanagers"] = InTurn(*[first] * 3, second)
        raise FlinkError("job is RESTARTING: connection lost")

    tries = starts(lose, None)
    log = WatchLog.claimed(store, OLD, "shop", print)
    now, told = replaced(flink, subtasks=2, log=log)
    assert [where for where, _ in tries.seen] == [{"map": ["dev-1"] * 2}, {"map": ["dev-2"] * 2}]
    assert {path for _, path in tries.seen} == {SAVED}
    assert (now.job, now.devices) == (NEW, {"dev-2"})
    assert log.placed(NEW) == {"map": ["dev-2", "dev-2"]}
    assert "job is RESTARTING: connection lost; it is started without 'dev-1'" in told


def test_a_job_that_was_ended_waits_for_any_task_manager_where_none_is_left(
    flink: FakeFlink, starts: Callable[..., Starts]
) -> None:
    """The watch goes on, and tells once what it waits for."""

    def lose() -> None:
        every = HEALTHY["GET /taskmanagers"]
        flink.answers["GET /taskmanagers"] = InTurn(*[{"taskmanagers": []}] * 12, every)
        raise FlinkError("gone")

    tries = starts(lose, None)
    now, told = replaced(flink)
    assert (now.job, len(tries.seen)) == (NEW, 2)
    assert told.count("no spare is left for 'dev-1'; waiting for it") == 1


@pytest.mark.parametrize("is_started", [True, False])
def test_a_start_that_flink_did_not_answer_is_looked_up_before_it_is_repeated(
    flink: FakeFlink, starts: Callable[..., Starts], is_started: bool
) -> None:
    """So that no second copy is started."""

    def vanish() -> None:
        if is_started:
            begin(flink, "dev-2")
        raise SILENCE

    tries = starts(vanish, None)
    now, _ = replaced(flink)
    assert now.job == NEW
    assert len(tries.seen) == (1 if is_started else 2)
    assert now.devices == {"dev-2" if is_started else "dev-1"}


@pytest.mark.parametrize("failure", [StillStarting(NEW, 0.0, "map"), NoAnswer("no answer")])
def test_a_job_that_restores_its_state_for_long_is_waited_for(
    flink: FakeFlink,
    starts: Callable[..., Starts],
    monkeypatch: pytest.MonkeyPatch,
    failure: NoAnswer,
) -> None:
    """It is not cancelled, also if it was found after a start without an answer."""
    cancelled: list[str] = []
    monkeypatch.setattr(Rest, "cancel", lambda _, one: cancelled.append(one))

    def restore() -> None:
        begin(flink, "dev-1", *[job("shop", "RUNNING", {"map": "INITIALIZING"})] * 8)
        raise failure

    tries = starts(restore)
    now, told = replaced(flink, seconds=0.0)
    assert (now.job, now.devices, len(tries.seen)) == (NEW, {"dev-1"}, 1)
    assert cancelled == [OLD]
    assert any(line.endswith("restore their state; waiting for it") for line in told)


@pytest.mark.parametrize("refusal", [CopyRuns("it runs"), Refusal("its id is known")])
def test_a_start_that_flink_knows_only_after_it_was_looked_up_is_found(
    flink: FakeFlink, starts: Callable[..., Starts], refusal: StreamplaceError
) -> None:
    """The repeated start is refused, because the first one has begun at last."""

    def refuse() -> None:
        begin(flink, "dev-1")
        raise refusal

    tries = starts(SILENCE, refuse)
    now, _ = replaced(flink)
    assert (now.job, now.devices, len(tries.seen)) == (NEW, {"dev-1"}, 2)


@pytest.mark.parametrize(
    ("ends", "why"),
    [
        ([FlinkError("its main method fails")], "its main method fails"),
        ([SILENCE, Refusal("no"), Refusal("no")], "no"),
    ],
)
def test_a_start_that_fails_or_is_refused_twice_ends_with_the_command_that_repeats_it(
    flink: FakeFlink, starts: Callable[..., Starts], ends: list[StreamplaceError], why: str
) -> None:
    tries = starts(*ends)
    with pytest.raises(FlinkError, match=rf"{why}; its state is in {SAVED}.*apply"):
        replaced(flink)
    assert len(tries.seen) == len(ends)


def test_a_start_without_state_that_flink_did_not_answer_is_not_repeated(
    flink: FakeFlink, starts: Callable[..., Starts]
) -> None:
    """Nothing tells whether it runs already, so a second copy might be started."""
    tries = starts(SILENCE, None)
    flink.answers[f"GET /jobs/{OLD}/checkpoints"] = {"counts": {"completed": 0}, "latest": {}}
    with pytest.raises(FlinkError, match="Flink does not answer"):
        replaced(flink)
    assert len(tries.seen) == 1


def test_a_replacement_that_was_begun_is_finished_without_what_was_lost_since(
    flink: FakeFlink, starts: Callable[..., Starts], store: Store
) -> None:
    """The watch was killed after the job had been ended, and its spare is gone, too."""
    log = WatchLog.claimed(store, OLD, "shop", print)
    decision = WatchDecision("", "replace", OLD, SAVED, {"map": ["dev-1"]}, (1, 1), "")
    number = log.begin(decision)
    flink.answers["GET /taskmanagers"] = lacking(flink.answers, "dev-1")
    tries = starts(FlinkError("'dev-1' is not a TaskManager"), None)
    assert own_replacing(flink, [], log).settle(number, decision) == NEW
    assert [where for where, _ in tries.seen] == [{"map": ["dev-1"]}, {"map": ["dev-2"]}]
    assert log.placed(NEW) == {"map": ["dev-2"]}
