"""Moves that are disturbed, on a real cluster: each request by what befalls it.

One copy of the job runs afterwards, when what a command advises was typed until nothing more is
advised.
"""

import json
import multiprocessing
import os
import queue
import re
import shlex
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from command_lines import settings_file
from flink_clusters import (
    FaultyProxy,
    Tally,
    awaited,
    committed,
    faulty_proxy,
    spread_job,
    tells_more,
)

from streamplace.cli.main import main
from streamplace.errors import SettingError, StreamplaceError
from streamplace.flink.layout import Layout
from streamplace.flink.local.session import JOB_MANAGER, Flink, LocalCluster, local_cluster
from streamplace.flink.move.journal import MoveUnderWay
from streamplace.flink.move.move import FlinkMove
from streamplace.flink.move.savepoints import stop
from streamplace.flink.move.settling import MoveSettings
from streamplace.flink.move.transaction import await_devices
from streamplace.flink.pin.pinning import Pinning, Settings
from streamplace.flink.program.jars import SPENT, placed_jar
from streamplace.flink.program.program import known_program
from streamplace.flink.rest.client import FlinkError, Rest, successor
from streamplace.flink.rest.plan import layout_of

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

    def __init__(self, tally, proxy):
        self.tally, self.rest, self.proxy = tally, tally.rest, proxy
        self.saved = (tally.folder / "saved").as_uri()
        self.job = tally.start()
        self.goal = HERE

    def move(self, url=""):
        """A move by a REST interface, direct or disturbed."""
        rest, settings = Rest(url or self.rest.url), MoveSettings(self.saved, settle=0.0)
        return FlinkMove(rest, self.tally.program(), lambda _: None, settings)

    def plan(self):
        """Plan to move it to the other of its two places."""
        self.goal = THERE if self.goal == HERE else HERE
        return self.move().plan(self.job, Layout(self.goal))

    def find(self):
        """Find the one copy that runs."""
        (self.job,) = self.rest.live_jobs()
        self.rest.wait_running(self.job)

    def check_sums(self):
        """Every window was told once, however often the job was started."""
        self.find()
        self.tally.tells_more(2)
        stop(self.rest, self.job, self.saved)
        self.tally.check_windows()


@pytest.fixture
def shuttle(rest, flink, jobs, tmp_path):
    """The job, running where Flink has put it, and a proxy before the shared cluster."""
    with faulty_proxy(rest.url) as proxy:
        yield Shuttle(Tally(rest, flink, jobs, tmp_path, "300"), proxy)


def move_disturbed(shuttle, at, fault):
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


def started_until(shuttle, plan, at, when="after"):
    """A move in a process of its own, which is killed before a request or before its answer."""
    child = multiprocessing.get_context("fork").Process(
        target=shuttle.move(shuttle.proxy.url).run, args=(plan,)
    )
    shuttle.proxy.disturb(at, "lost")

    def kill():
        if child.pid is not None:
            os.kill(child.pid, signal.SIGKILL)

    setattr(shuttle.proxy, when, kill)
    child.start()
    return child


def move_killed(shuttle, at, when):
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
@pytest.mark.parametrize(
    ("move", "how"),
    [
        *((move_disturbed, fault) for fault in ("lost", "delayed", "cut", "gone")),
        *((move_killed, when) for when in ("before", "after")),
    ],
)
def test_any_request_may_be_disturbed_and_the_command_killed_at_it(shuttle, move, how):
    """Every one of a move; whoever resumes it finds one copy, or starts one."""
    at = 0
    while move(shuttle, at, how):
        at += 1
    assert at >= FEWEST_REQUESTS
    shuttle.check_sums()


@pytest.mark.slow
def test_a_move_that_was_broken_off_is_resumed_before_another_begins(shuttle):
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
def test_two_moves_at_once_leave_one_copy(shuttle):
    """The second is refused, and names who moves the job."""
    plan = shuttle.plan()
    errors: list[StreamplaceError] = []
    new: list[str] = []

    def run():
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
def test_moves_on_two_machines_leave_one_copy(shuttle, tmp_path, later):
    """Neither sees the other's journal; Flink accepts the ids of each step once.

    The second says so in one line, and touches nothing.
    """
    plan = shuttle.plan()
    words = multiprocessing.get_context("fork").Queue()

    def run(name):
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
    first = f"another command moves job {plan.job}, and stops it"
    assert re.match(f"job {plan.job} .*({others})|{first}", told[0]), told
    shuttle.check_sums()


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
    "interrupted before",
    "interrupted after",
    "interrupted twice before",
    "interrupted twice after",
)
RATE = "200"
MOST_COMMANDS = 4
"""That are typed in a row: the move, and what each of them advises."""
ADVICE = re.compile(r"(streamplace flink (?:move|apply) .*?)\s*$", re.MULTILINE)


@dataclass
class Outcome:
    """What became of a move."""

    status: int  # of the last command
    copies: int  # jobs that run afterwards
    # Numbers that were told by nobody, and more than once.
    lost: int
    doubled: int
    words: str  # what the commands said


@dataclass
class Trial:
    """A job, and commands that move it; what befalls them comes by the proxy."""

    cluster: LocalCluster
    flink: Flink
    jar: Path
    folder: Path
    proxy: FaultyProxy
    process: multiprocessing.process.BaseProcess | None = None  # the command that runs
    words: list[str] = field(default_factory=list)
    restarts: queue.Queue[threading.Event] = field(default_factory=queue.Queue)

    def __post_init__(self):
        self.rest = Rest(self.cluster.url).patient(60.0, lambda _: None)
        self.told = self.folder / "told"
        for name in ("told", "commands", "saved"):
            (self.folder / name).mkdir(parents=True)
        self.arguments = (RATE, self._uri("told"), str(self.folder / "commands"))
        self.request = {
            "entryClass": "OnceJob",
            "programArgsList": [*self.arguments],
            "flinkConfiguration": {
                "execution.checkpointing.interval": "500 ms",
                "execution.checkpointing.dir": self._uri("checkpoints"),
            },
        }
        self.job = self.start(self.request)
        tells_more(self.told)
        with placed_jar(self.jar, (), Pinning({}, {}, {}, {})):
            pass  # what a process compiles, its children have

    def _uri(self, name):
        return (self.folder / name).as_uri()

    def start(self, request):
        """Start a copy of the job, as others do; returns its id."""
        uploaded = self.rest.upload(self.jar)
        job: str = self.rest.post(f"/jars/{uploaded}/run", request)["jobid"]
        self.rest.remove_jar(uploaded)
        self.rest.wait_running(job, 120)
        return job

    def move(self, settle=3):
        """Type the command that moves the job elsewhere; returns its status."""
        devices = self.cluster.devices
        step = int(time.time() * 1000) % 3
        placed = spread_job(self.folder / "p.json", self.rest, self.job, devices, step)
        return self._type_move("--placement", placed, settle=settle)

    def _type_move(self, *options, settle):
        given = settings_file(self.folder, settle=settle)
        where = ("--rest", self.proxy.url, "--savepoints", self._uri("saved"), *given)
        job = ("--entry-class", "OnceJob", *options, "--", *self.arguments)
        return self.type("flink", "move", str(self.jar), *where, *job)

    def type(self, *words):
        """Run a command in a process of its own; returns its status.

        The thread that types restarts the JobManager, as the kernel ends a process with the thread
        that started it.
        """
        output = self.folder / "words"
        self.process = multiprocessing.get_context("fork").Process(
            target=_main, args=(words, output)
        )
        self.process.start()
        while self.process.exitcode is None:
            self.process.join(0.02)
            with suppress(queue.Empty):
                done = self.restarts.get_nowait()
                self.cluster.kill(JOB_MANAGER)
                self.cluster.start(JOB_MANAGER)
                done.set()
        self.words.append(output.read_text())
        return int(self.process.exitcode or 0)

    def advised(self):
        """Words of the command that was advised last; none if there was no advice."""
        matches = ADVICE.findall(self.words[-1])
        return shlex.split(matches[-1])[1:] if matches else []

    def followed(self, status):
        """Type what is advised until nothing is, and count copies and numbers."""
        self.proxy.disturb(-1, "")
        typed = 0
        if status == -signal.SIGKILL:  # it could not advise anything; this is in the how-to
            status, typed = self._type_move("--resume", settle=3), 1
        while status != 0 and typed < MOST_COMMANDS and (words := self.advised()):
            status, typed = self.type(*words), typed + 1
        copies = self.rest.live_jobs()
        if copies:
            with suppress(FlinkError):
                self.rest.wait_running(copies[0], 60)
                tells_more(self.told)
        for job in copies:
            stop(self.rest, job, self._uri("end"))
        seen = Counter(map(int, committed(self.told)))
        lost = max(seen) + 1 - len(seen) if seen else 0
        doubled = sum(seen.values()) - len(seen)
        return Outcome(status, len(copies), lost, doubled, "\n".join(self.words))

    def send(self, number=signal.SIGINT):
        """Send a signal to the command that runs; as Ctrl-C does, if no other is named."""
        if self.process is not None and self.process.pid is not None:
            os.kill(self.process.pid, number)

    def interrupt_twice(self):
        """Press Ctrl-C, and again 0.1 s later."""
        self.send()
        time.sleep(0.1)
        self.send()

    def restart(self):
        """Kill the JobManager, which forgets everything, and start another."""
        done = threading.Event()
        self.restarts.put(done)
        done.wait(60)

    def end(self):
        """Leave no job on the cluster."""
        for job in self.rest.live_jobs():
            with suppress(FlinkError):
                self.rest.cancel(job)


def label(request, body):
    """What a request changes, in words; empty for one that only asks.

    >>> label("DELETE /jars/1_a.jar", b""), label("GET /jobs", b"")
    ('remove a jar', '')
    """
    method, _, path = request.partition(" ")
    if path == "/jars/upload":
        return "upload a jar"
    if method == "DELETE":
        return "remove a jar"
    if path.endswith("/stop"):
        return "stop"
    if path.endswith("/run"):
        document = json.loads(body)
        if document["entryClass"] == SPENT:
            return "spend"
        return "start" if "jobId" in document else "check"
    return "" if method == "GET" else f"{method} {path.partition('?')[0]}"


def nth(wanted, number=1):
    """Whether a request is the one of this number with a label."""
    seen = Counter[str]()

    def is_meant(request, body):
        name = label(request, body)
        seen[name] += 1
        return name == wanted and seen[name] == number

    return is_meant


def _main(words, output):
    """Run a command with its words in a file."""
    with output.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        sys.stdout = os.fdopen(1, "w", buffering=1)
        sys.stderr = os.fdopen(2, "w", buffering=1)
        sys.argv = ["streamplace", *words]
        try:
            main(words)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()


@pytest.fixture(scope="module")
def restless(flink):
    """A cluster whose JobManager may be restarted."""
    with local_cluster(flink, DEVICES, settings=QUICK_TO_MISS) as running:
        yield running


@pytest.fixture
def trial(restless, flink, jobs, tmp_path):
    """A job on it, and a proxy for the commands."""
    restless.wait()
    await_devices(Rest(restless.url), set(DEVICES), 120.0, print)
    with faulty_proxy(restless.url) as proxy:
        made = Trial(restless, flink, jobs, tmp_path / "trial", proxy)
        yield made
        made.end()
    shutil.rmtree(tmp_path / "trial", ignore_errors=True)


def befall(trial, request, number, fault):
    """Disturb one of the requests to come."""
    is_action = " " in fault
    trial.proxy.disturb(nth(request, number), "none" if is_action else fault)
    if is_action:
        what, when = fault.rsplit(" ", 1)
        acts = {
            "killed": lambda: trial.send(signal.SIGKILL),
            "JobManager restarted": trial.restart,
            "interrupted": trial.send,
            "interrupted twice": trial.interrupt_twice,
        }
        setattr(trial.proxy, when, acts[what])
        if what == "killed":
            trial.proxy.fault = "lost"


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("request_", "number"), REQUESTS)
@pytest.mark.slow
def test_one_copy_runs_and_nothing_is_lost_or_doubled(trial, request_, number, fault):
    """Whatever befalls a request of a move."""
    befall(trial, request_, number, fault)
    outcome = trial.followed(trial.move())
    assert (outcome.lost, outcome.doubled) == (0, 0), outcome.words
    assert outcome.copies == 1, outcome.words


def cancel(trial):
    """Cancel what runs."""
    for job in trial.rest.live_jobs():
        trial.rest.cancel(job)


def stop_it(trial):
    """Stop what runs with a savepoint elsewhere."""
    for job in trial.rest.live_jobs():
        stop(trial.rest, job, (trial.folder / "else").as_uri())


def start_copy(trial):
    """Start the job from the savepoint of the move, as Flink's own client does."""
    (saved,) = [*(trial.folder / "saved").glob("savepoint-*")]
    request = trial.request | {"savepointPath": saved.as_uri()}
    trial.start(request)


def break_once(trial):
    """Let the job fail once."""
    (trial.folder / "commands" / "broken once").touch()


@pytest.mark.parametrize(
    ("request_", "act", "copies"),
    [("stop", cancel, 0), ("stop", stop_it, 1), ("start", start_copy, 1)],
)
@pytest.mark.slow
def test_one_copy_runs_when_others_act(trial, request_, act, copies):
    """A cancellation is final; what was stopped or started by others is not started twice."""
    trial.proxy.disturb(nth(request_), "none")
    trial.proxy.before = lambda: act(trial)
    outcome = trial.followed(trial.move())
    assert (outcome.copies, outcome.lost, outcome.doubled) == (copies, 0, 0), outcome.words


@pytest.mark.parametrize(("act", "copies"), [(cancel, 0), (stop_it, 0), (break_once, 1)])
@pytest.mark.slow
def test_one_copy_runs_when_others_act_while_it_is_watched(trial, act, copies):
    """What a user ends stays ended; a job that fails goes back to its last checkpoint."""

    def meddle():
        new = successor(trial.job)
        awaited(lambda: trial.rest.state(new) == "RUNNING", 120)
        trial.rest.wait_running(new, 120)
        tells_more(trial.told)
        act(trial)

    thread = threading.Thread(target=meddle)
    thread.start()
    status = trial.move(settle=30)
    thread.join()
    outcome = trial.followed(status)
    assert (outcome.copies, outcome.lost, outcome.doubled) == (copies, 0, 0), outcome.words
    assert outcome.status != 0


@pytest.mark.slow
def test_a_job_that_fails_again_and_again_starts_elsewhere(trial):
    """From its last checkpoint, as after a try in which it runs out of memory."""
    assert trial.move() == 0, trial.words
    (job,) = trial.rest.live_jobs()
    here = layout_of(trial.rest, job, trial.rest.running_job(job))
    there = Layout({name: ["dev-0"] * len(own) for name, own in here.items()})
    tells_more(trial.told)
    broken = trial.folder / "commands" / "broken"
    broken.touch()
    awaited(lambda: trial.rest.state(job) != "RUNNING")

    def tell(words):
        if words.startswith("starting it"):
            broken.unlink()

    saved = MoveSettings((trial.folder / "saved").as_uri())
    new = FlinkMove(trial.rest, known_program(job), tell, saved).restart(job, there)
    assert layout_of(trial.rest, new.job, trial.rest.running_job(new.job)) == there
    outcome = trial.followed(0)
    assert (outcome.copies, outcome.lost, outcome.doubled) == (1, 0, 0), outcome.words
