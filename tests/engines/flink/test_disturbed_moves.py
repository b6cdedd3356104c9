"""Moves that are disturbed, on a real cluster: one copy of the job runs afterwards."""

import multiprocessing
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from flink_clusters import FaultyProxy, Tally, faulty_proxy

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move.journal import MoveUnderWay
from streamplace.engines.flink.move.move import FlinkMove, MovePlan
from streamplace.engines.flink.move.savepoints import stop
from streamplace.engines.flink.move.settling import MoveSettings
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.errors import SettingError, StreamplaceError

pytestmark = pytest.mark.xdist_group("flink")
HERE = {
    "numbers": ["dev-0"],
    "Map": ["dev-1"],
    "KeyedProcess": ["dev-2"],
    "Process": ["dev-2"],
    "Writer": ["dev-2"],
    "TumblingEventTimeWindows": ["dev-1"],
    "tell": ["dev-1"],
    "out": ["dev-0"],
}
THERE = HERE | {"Map": ["dev-3"], "tell": ["dev-4"]}
FEWEST_REQUESTS = 40
"""A move asks Flink at least so often."""


class Shuttle:
    """The job that checks itself, moved to and fro; ``job`` is the copy that runs."""

    def __init__(self, tally: Tally, proxy: FaultyProxy) -> None:
        self.tally, self.rest, self.proxy = tally, tally.rest, proxy
        self.saved = (tally.folder / "saved").as_uri()
        self.job = tally.start()
        self.goal = HERE

    def move(self, url: str = "") -> FlinkMove:
        """A move by a REST interface, direct or disturbed."""
        rest, settings = Rest(url or self.rest.url), MoveSettings(self.saved, settle=0.0)
        return FlinkMove(rest, self.tally.flink, self.tally.program(), lambda _: None, settings)

    def plan(self) -> MovePlan:
        """Plan to move it to the other of its two places."""
        self.goal = THERE if self.goal == HERE else HERE
        return self.move().plan(self.job, Layout(self.goal))

    def find(self) -> None:
        """Find the one copy that runs."""
        (self.job,) = self.rest.live_jobs()
        self.rest.wait_running(self.job)

    def check_sums(self) -> None:
        """Every window was told once, however often the job was started."""
        self.find()
        self.tally.tells_more(2)
        stop(self.rest, self.job, self.saved)
        self.tally.check_windows()


@pytest.fixture
def shuttle(rest: Rest, flink: Flink, jobs: Path, tmp_path: Path) -> Iterator[Shuttle]:
    """The job, running where Flink has put it, and a proxy before the shared cluster."""
    with faulty_proxy(rest.url) as proxy:
        yield Shuttle(Tally(rest, flink, jobs, tmp_path, "300"), proxy)


def move_disturbed(shuttle: Shuttle, at: int, fault: str) -> bool:
    """Move with one request disturbed; returns whether there was such a request."""
    plan = shuttle.plan()
    shuttle.proxy.disturb(at, fault)
    requests = shuttle.proxy.requests
    try:
        shuttle.move(shuttle.proxy.url).run(plan)
    except FlinkError as error:
        shuttle.proxy.disturb(-1, "")
        if "--resume" in str(error):
            shuttle.move().resume()
    shuttle.proxy.disturb(-1, "")
    shuttle.find()
    return at < len(requests)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["lost", "delayed", "cut", "gone"])
def test_any_request_may_be_disturbed(shuttle: Shuttle, fault: str) -> None:
    """Every one of a move."""
    at = 0
    while move_disturbed(shuttle, at, fault):
        at += 1
    assert at >= FEWEST_REQUESTS
    shuttle.check_sums()


def started_until(
    shuttle: Shuttle, plan: MovePlan, at: int | str, when: str = "after"
) -> multiprocessing.process.BaseProcess:
    """A move in a process of its own, which is killed before a request or before its answer."""
    child = multiprocessing.get_context("fork").Process(
        target=shuttle.move(shuttle.proxy.url).run, args=(plan,)
    )
    shuttle.proxy.disturb(at, "lost")

    def kill() -> None:
        if child.pid is not None:
            os.kill(child.pid, signal.SIGKILL)

    if when == "after":
        shuttle.proxy.after = kill
    else:
        shuttle.proxy.before = kill
    child.start()
    return child


def move_killed(shuttle: Shuttle, at: int, when: str) -> bool:
    """Move by a process that is killed before a request, or before its answer; then resume it.

    Returns whether there was such a request.
    """
    plan = shuttle.plan()
    process = started_until(shuttle, plan, at, when)
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    shuttle.proxy.disturb(-1, "")
    with suppress(SettingError):  # it had not begun, or was over
        shuttle.move().resume()
    shuttle.find()
    return process.exitcode != 0


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_the_command_may_be_killed_at_any_request(shuttle: Shuttle, when: str) -> None:
    """Whoever resumes it finds one copy, or starts one."""
    at = 0
    while move_killed(shuttle, at, when):
        at += 1
    assert at >= FEWEST_REQUESTS
    shuttle.check_sums()


def test_a_move_that_was_broken_off_is_resumed_before_another_begins(shuttle: Shuttle) -> None:
    """The command that does so is named, whether the job runs by now or not."""
    plan = shuttle.plan()
    process = started_until(shuttle, plan, "/stop")
    process.join()
    time.sleep(1)  # Flink goes on stopping it
    for _ in range(2):
        with pytest.raises(FlinkError, match=r"finish it with: .*--resume"):
            shuttle.move().run(plan)
    shuttle.move().resume(shuttle.job)
    shuttle.check_sums()


@pytest.mark.slow
def test_two_moves_at_once_leave_one_copy(shuttle: Shuttle) -> None:
    """The second is refused, and names who moves the job."""
    plan = shuttle.plan()
    errors: list[StreamplaceError] = []
    new: list[str] = []

    def run() -> None:
        try:
            new.append(shuttle.move().run(plan).job)
        except StreamplaceError as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(new) == len(errors) == 1
    assert isinstance(errors[0], MoveUnderWay)
    shuttle.check_sums()


@pytest.mark.slow
@pytest.mark.parametrize("later", [0.0, 0.3, 1.0])
def test_moves_on_two_machines_leave_one_copy(
    shuttle: Shuttle, tmp_path: Path, later: float
) -> None:
    """Neither sees the other's journal; Flink accepts the ids of each step once.

    The second says so in one line, and touches nothing.
    """
    plan = shuttle.plan()
    words = multiprocessing.get_context("fork").Queue()

    def run(name: str) -> None:
        os.environ["XDG_STATE_HOME"] = str(tmp_path / name)
        try:
            words.put(f"moved {shuttle.move().run(plan).job}")
        except StreamplaceError as error:
            words.put(str(error))

    commands = [
        multiprocessing.get_context("fork").Process(target=run, args=(name,))
        for name in ("one", "other")
    ]
    for command in commands:
        command.start()
        time.sleep(later)
    told = sorted(words.get(timeout=120) for _ in commands)
    for command in commands:
        command.join()
    shuttle.find()
    assert told[1] == f"moved {shuttle.job}", told
    others = "another command|not RUNNING any more|stopped by somebody else"
    assert re.match(f"job {plan.job} .*({others})", told[0]), told
    shuttle.check_sums()
