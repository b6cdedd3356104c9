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
from flink_proxy import FaultyProxy, faulty_proxy
from moved_jobs import check_windows, tells_more_windows
from submitted_jobs import submitted

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move.journal import MoveUnderWay
from streamplace.engines.flink.move.move import FlinkMove, MovePlan
from streamplace.engines.flink.move.saving import stop
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.errors import SettingError, StreamplaceError

pytestmark = pytest.mark.xdist_group("flink")
RATE = "300"
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


class Tally:
    """The job of the tests, moved to and fro; ``job`` is the copy that runs."""

    def __init__(
        self, rest: Rest, flink: Flink, jar: Path, folder: Path, proxy: FaultyProxy
    ) -> None:
        self.rest, self.flink, self.proxy = rest, flink, proxy
        self.told = folder / "told"
        self.told.mkdir()
        self.program = Program(jar, "TallyJob", (str(self.told), RATE))
        self.saved = (folder / "saved").as_uri()
        self.job = submitted(rest, jar, "TallyJob", *self.program.arguments)
        self.goal = HERE

    def move(self, url: str = "", saved: str = "") -> FlinkMove:
        """A move by a REST interface, direct or disturbed, with savepoints in some folder."""
        rest = Rest(url or self.rest.url)
        settings = MoveSettings(saved or self.saved, settle=0.0)
        return FlinkMove(rest, self.flink, self.program, lambda _: None, settings)

    def moved(self, url: str) -> None:
        """Move the job to the other of its two places."""
        self.goal = THERE if self.goal == HERE else HERE
        plan = self.move().plan(self.job, Layout(self.goal))
        try:
            self.job = self.move(url).run(plan).job
        finally:
            self.proxy.disturb(-1, "")

    def the_only_copy(self) -> str:
        """Id of the one copy that runs."""
        (job,) = self.rest.live_jobs()
        self.rest.wait_running(job)
        return job

    def check_sums(self) -> None:
        """Every window was told once, however often the job was started."""
        self.job = self.the_only_copy()
        tells_more_windows(self.told, 2)
        stop(self.rest, self.job, self.saved)
        check_windows(self.told)


@pytest.fixture
def proxy(rest: Rest) -> Iterator[FaultyProxy]:
    """A proxy before the shared cluster."""
    with faulty_proxy(rest.url) as running:
        yield running


@pytest.fixture
def tally(rest: Rest, flink: Flink, jobs: Path, tmp_path: Path, proxy: FaultyProxy) -> Tally:
    """The job, running where Flink has put it."""
    return Tally(rest, flink, jobs, tmp_path, proxy)


def move_disturbed(tally: Tally, at: int, fault: str) -> str:
    """Move with one request disturbed; returns that request, once one copy runs again."""
    tally.proxy.disturb(at, fault)
    seen = tally.proxy.requests
    try:
        tally.moved(tally.proxy.url)
    except FlinkError as error:
        if "--resume" in str(error):
            tally.job = tally.move().resume().job
    request = seen[at] if at < len(seen) else ""
    tally.job = tally.the_only_copy()
    return request


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["lost", "delayed", "cut", "gone"])
def test_any_request_may_be_disturbed(tally: Tally, fault: str) -> None:
    """Every one of a move."""
    at = 0
    while move_disturbed(tally, at, fault):
        at += 1
    assert at >= FEWEST_REQUESTS
    tally.check_sums()


def started_until(
    tally: Tally, plan: MovePlan, at: int | str, when: str = "after"
) -> multiprocessing.process.BaseProcess:
    """A move in a process of its own, which is killed before a request or before its answer."""
    child = multiprocessing.get_context("fork").Process(
        target=tally.move(tally.proxy.url).run, args=(plan,)
    )
    tally.proxy.disturb(at, "lost")

    def kill() -> None:
        if child.pid is not None:
            os.kill(child.pid, signal.SIGKILL)

    if when == "after":
        tally.proxy.after = kill
    else:
        tally.proxy.before = kill
    child.start()
    return child


def move_killed(tally: Tally, at: int, when: str) -> bool:
    """Move by a process that is killed before a request, or before its answer; then resume it.

    Returns whether there was such a request.
    """
    tally.goal = THERE if tally.goal == HERE else HERE
    plan = tally.move().plan(tally.job, Layout(tally.goal))
    process = started_until(tally, plan, at, when)
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    tally.proxy.disturb(-1, "")
    with suppress(SettingError):  # it had not begun, or was over
        tally.job = tally.move().resume().job
    tally.job = tally.the_only_copy()
    return process.exitcode != 0


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_the_command_may_be_killed_at_any_request(tally: Tally, when: str) -> None:
    """Whoever resumes it finds one copy, or starts one."""
    at = 0
    while move_killed(tally, at, when):
        at += 1
    assert at >= FEWEST_REQUESTS
    tally.check_sums()


def test_a_move_that_was_broken_off_is_resumed_before_another_begins(tally: Tally) -> None:
    """The command that does so is named, whether the job runs by now or not."""
    plan = tally.move().plan(tally.job, Layout(THERE))
    process = started_until(tally, plan, "/stop")
    process.join()
    time.sleep(1)  # Flink goes on stopping it
    for _ in range(2):
        with pytest.raises(FlinkError, match=r"finish it with: .*--resume"):
            tally.move().run(plan)
    tally.job = tally.move().resume(tally.job).job
    tally.check_sums()


@pytest.mark.slow
def test_two_moves_at_once_leave_one_copy(tally: Tally) -> None:
    """The second is refused, and names who moves the job."""
    plan = tally.move().plan(tally.job, Layout(THERE))
    errors: list[StreamplaceError] = []
    new: list[str] = []

    def run() -> None:
        try:
            new.append(tally.move().run(plan).job)
        except StreamplaceError as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(new) == len(errors) == 1
    assert isinstance(errors[0], MoveUnderWay)
    tally.check_sums()


@pytest.mark.slow
@pytest.mark.parametrize("later", [0.0, 0.3, 1.0])
def test_moves_on_two_machines_leave_one_copy(tally: Tally, tmp_path: Path, later: float) -> None:
    """Neither sees the other's journal; Flink accepts the ids of each step once.

    The second says so in one line, and touches nothing.
    """
    plan = tally.move().plan(tally.job, Layout(THERE))
    words = multiprocessing.get_context("fork").Queue()

    def run(name: str) -> None:
        os.environ["XDG_STATE_HOME"] = str(tmp_path / name)
        try:
            words.put(f"moved {tally.move().run(plan).job}")
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
    tally.job = tally.the_only_copy()
    assert told[1] == f"moved {tally.job}", told
    others = "another command|not RUNNING any more|stopped by somebody else"
    assert re.match(f"job {plan.job} .*({others})", told[0]), told
    tally.check_sums()
