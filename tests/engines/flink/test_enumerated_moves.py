"""Moves by the command on a real cluster, enumerated: each request by what befalls it.

What a command advises is typed literally until nothing more is advised.
"""

import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flink_proxy import faulty_proxy
from move_trials import Trial, nth

from streamplace.engines.flink.local.config import Settings
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import LocalCluster, local_cluster
from streamplace.engines.flink.move.saving import stop
from streamplace.engines.flink.move.transaction import await_devices
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.job_ids import successor

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
DEVICES = tuple(f"dev-{i}" for i in range(5))
QUICK_TO_MISS: Settings = {
    "heartbeat.timeout": 10_000,
    "heartbeat.interval": 1_000,
    "taskmanager.slot.timeout": "3 s",
}
"""TaskManagers soon notice that the JobManager is another, and give slots back."""
REQUESTS = (
    ("upload a jar", 3),
    ("upload a jar", 4),
    ("stop", 1),
    ("start", 1),
    ("remove a jar", 3),
)
"""What changes something, from the move's first jar on; the plan before it has used two jars."""
FAULTS = (
    "cut",
    "lost",
    "delayed",
    "killed before",
    "killed after",
    "JobManager restarted before",
    "JobManager restarted after",
)


@pytest.fixture(scope="module")
def restless(flink: Flink) -> Iterator[LocalCluster]:
    """A cluster whose JobManager may be restarted."""
    with local_cluster(flink, DEVICES, settings=QUICK_TO_MISS) as running:
        yield running


@pytest.fixture
def trial(restless: LocalCluster, flink: Flink, jobs: Path, tmp_path: Path) -> Iterator[Trial]:
    """A job on it, and a proxy for the commands."""
    restless.wait()
    await_devices(Rest(restless.url), set(DEVICES), 120.0, print)
    with faulty_proxy(restless.url) as proxy:
        made = Trial(restless, flink, jobs, tmp_path / "trial", proxy)
        yield made
        made.end()
    shutil.rmtree(tmp_path / "trial", ignore_errors=True)


def befall(trial: Trial, request: str, number: int, fault: str) -> None:
    """Disturb one of the requests to come."""
    is_action = " " in fault
    trial.proxy.disturb(nth(request, number), "none" if is_action else fault)
    if is_action:
        what, when = fault.rsplit(" ", 1)
        setattr(trial.proxy, when, trial.kill if what == "killed" else trial.restart)
        if what == "killed":
            trial.proxy.fault = "lost"


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("request_", "number"), REQUESTS)
def test_one_copy_runs_and_nothing_is_lost_or_doubled(
    trial: Trial, request_: str, number: int, fault: str
) -> None:
    """Whatever befalls a request of a move."""
    befall(trial, request_, number, fault)
    outcome = trial.followed(trial.move())
    assert (outcome.lost, outcome.doubled) == (0, 0), outcome.words
    assert outcome.copies == 1, outcome.words


def cancel(trial: Trial) -> None:
    """Cancel what runs."""
    for job in trial.live():
        trial.rest.cancel(job)


def stop_it(trial: Trial) -> None:
    """Stop what runs with a savepoint elsewhere."""
    for job in trial.live():
        stop(trial.rest, job, (trial.folder / "else").as_uri())


def start_copy(trial: Trial) -> None:
    """Start the job from the savepoint of the move, as Flink's own client does."""
    (saved,) = [*(trial.folder / "saved").glob("savepoint-*")]
    request = trial.request | {"savepointPath": saved.as_uri()}
    uploaded = trial.rest.upload(trial.jar)
    job = trial.rest.post(f"/jars/{uploaded}/run", request)["jobid"]
    trial.rest.wait_running(job, 120)


def break_once(trial: Trial) -> None:
    """Let the job fail once."""
    (trial.folder / "commands" / "broken once").touch()


ACTS: tuple[tuple[str, str, Callable[[Trial], None], int], ...] = (
    ("cancel", "stop", cancel, 0),
    ("stop", "stop", stop_it, 1),
    ("start a copy", "start", start_copy, 1),
)
"""Who acts before which request, and how many copies run when all advice has been followed."""


@pytest.mark.parametrize(
    ("request_", "act", "copies"), [a[1:] for a in ACTS], ids=[a[0] for a in ACTS]
)
def test_one_copy_runs_when_others_act(
    trial: Trial, request_: str, act: Callable[[Trial], None], copies: int
) -> None:
    """A cancellation is final; what was stopped or started by others is not started twice."""
    trial.proxy.disturb(nth(request_), "none")
    trial.proxy.before = lambda: act(trial)
    outcome = trial.followed(trial.move())
    assert (outcome.copies, outcome.lost, outcome.doubled) == (copies, 0, 0), outcome.words


WATCHED = (("cancel", cancel, 0), ("stop", stop_it, 0), ("fail", break_once, 1))


@pytest.mark.parametrize(("act", "copies"), [w[1:] for w in WATCHED], ids=[w[0] for w in WATCHED])
def test_one_copy_runs_when_others_act_while_it_is_watched(
    trial: Trial, act: Callable[[Trial], None], copies: int
) -> None:
    """What a user ends stays ended; a job that fails goes back to its last checkpoint."""

    def meddle() -> None:
        new = successor(trial.job)
        trial.wait(new, ["RUNNING"])
        trial.rest.wait_running(new, 120)
        trial.tells_more()
        act(trial)

    thread = threading.Thread(target=meddle)
    thread.start()
    status = trial.move(settle=30)
    thread.join()
    outcome = trial.followed(status)
    assert (outcome.copies, outcome.lost, outcome.doubled) == (copies, 0, 0), outcome.words
    assert outcome.status != 0


def test_what_was_advised_before_and_resuming_make_no_second_copy(trial: Trial) -> None:
    """A user starts the savepoint by 'apply' while the move can be resumed, and resumes it then."""
    befall(trial, "start", 1, "killed before")
    assert trial.move() == -signal.SIGKILL
    trial.proxy.disturb(-1, "")
    (saved,) = [*(trial.folder / "saved").glob("savepoint-*")]
    status = trial.apply(saved.as_uri())
    assert "belongs to a move of job" in trial.words[-1]
    outcome = trial.followed(status)
    assert (outcome.copies, outcome.lost, outcome.doubled) == (1, 0, 0), outcome.words
