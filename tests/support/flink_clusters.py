"""A real Flink cluster: what tests do to it, a proxy before it, and jobs that tell results."""

import itertools
import json
import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from command_lines import settings_file
from fake_flink import http_server

from streamplace.flink.layout import Layout
from streamplace.flink.local.session import Flink, find_java
from streamplace.flink.measure.source_lag import source_flow
from streamplace.flink.move.move import RETENTION, FlinkMove
from streamplace.flink.move.savepoints import resumable, stop
from streamplace.flink.move.settling import MoveSettings
from streamplace.flink.pin.apply import apply
from streamplace.flink.program.program import Program
from streamplace.flink.rest.client import ENDED, Rest
from streamplace.flink.rest.plan import layout_of

STEADY_SECONDS = 6.0
"""Three intervals of heartbeats."""
WINDOW, KEYS = 100, 10
"""Numbers in a window of TallyJob, and its keys."""
COUNT, SLOW, FAST = 150_000, 500, 1_000_000
"""Tuples of a watched job, and how many a second while it is watched and when it shall end."""
PARALLELISM = 2
DELAY_SECONDS, SILENT_SECONDS = 1.0, 6.0
TALLY: Layout = Layout(
    {
        "numbers": ["dev-0"],
        "Map": ["dev-1"],
        "KeyedProcess": ["dev-0", "dev-1"],
        "Process": ["dev-0", "dev-1"],
        "Writer": ["dev-0", "dev-1"],
        "TumblingEventTimeWindows": ["dev-1", "dev-1"],
        "tell": ["dev-1", "dev-1"],
        "out": ["dev-0", "dev-0"],
    }
)
"""Where tests put the subtasks of TallyJob."""


def measured_at_once(near, far, seconds):
    """Measurements of a job in the same time, by its threads and from REST alone."""
    far.add(seconds)
    near._sampler = far._sampler
    near._marks.append(near._mark(near._marks[-1]))
    return near.last(), far.last()


def awaited(happens, seconds=90.0):
    """Wait until something happens."""
    deadline = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def come_back(rest, cluster, device):
    """Start a TaskManager that has ended, and wait until the cluster knows the new one for good.

    Heartbeats to the old one, which has the same id, may fail late; Flink then drops the new one.
    """

    def address():
        return {one["id"]: one["path"] for one in rest.task_managers()}.get(device)

    before = address()
    cluster.start(device)
    since = time.monotonic()
    while time.monotonic() - since < STEADY_SECONDS:
        if address() in (None, before):  # the old one may still be listed
            since = time.monotonic()
        time.sleep(0.1)


def await_flow(rest, job):
    """Wait until Flink tells that the sources of a job send something."""
    awaited(lambda: (flow := source_flow(rest, job)) is not None and flow.rate > 0)


def flink_run(flink, folder, url, *words):
    """Submit a job by Flink's own command, in a folder that gets its configuration."""
    (folder / "config.yaml").write_text("rest.address: 127.0.0.1\n")
    java = [find_java(), *flink.java_options(), "-cp", ":".join(map(str, flink.jars))]
    run = ("run", "-d", "-m", url.removeprefix("http://"), *words)
    done = subprocess.run(
        [*java, "org.apache.flink.client.cli.CliFrontend", *run],
        env={**os.environ, "FLINK_CONF_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr


Meant = Callable[[str, bytes], bool]


class FaultyProxy:
    """Passes requests on, and disturbs the one that it is told to.

    Attributes
    ----------
    requests
        Method and path of every request, in the order in which they came.
    at
        Number of the request that is disturbed, or how the first such request ends, or whether one
        is meant whose words come with its document.
    fault
        ``cut``: the request does not reach Flink; ``lost``: its answer does not come back;
        ``delayed``: both take a second; ``gone``: its answer is lost, and nothing is answered for
        some seconds more.
    before, after
        Are called before that request is passed on, and before its answer is.
    """

    def __init__(self, url):
        self.target, self.url = urlsplit(url), ""
        self.at: int | str | Meant = -1
        self._lock = threading.Lock()
        self.disturb(-1, "")

    def disturb(self, at, fault):
        """Disturb one of the requests that come from now on."""
        with self._lock:
            self.requests: list[str] = []
            self.at, self.fault, self.silent_until = at, fault, 0.0
            self.before: Callable[[], None] = lambda: None
            self.after: Callable[[], None] = lambda: None

    def treat(self, handler):
        """Pass a request on, or not."""
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        with self._lock:
            request = f"{handler.command} {handler.path}"
            if isinstance(self.at, str):
                is_meant = request.endswith(self.at)
            elif callable(self.at):
                is_meant = self.at(request, body)
            else:
                is_meant = len(self.requests) == self.at
            if is_meant:
                self.at = -1
            self.requests.append(request)
            is_silent = time.monotonic() < self.silent_until
        if is_silent or (is_meant and self.fault == "cut"):
            return
        if is_meant:
            self.before()
            time.sleep(DELAY_SECONDS if self.fault == "delayed" else 0)
        status, kind, content = self._passed(handler, body)
        if is_meant:
            self.after()
            if self.fault == "gone":
                self.silent_until = time.monotonic() + SILENT_SECONDS
            if self.fault in ("lost", "gone"):
                return
            time.sleep(DELAY_SECONDS if self.fault == "delayed" else 0)
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    def _passed(self, handler, body):
        connection = HTTPConnection(self.target.hostname or "", self.target.port, timeout=60)
        try:
            headers = {"Content-Type": handler.headers.get("Content-Type", "application/json")}
            connection.request(handler.command, handler.path, body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers.get("Content-Type", ""), answer.read()
        finally:
            connection.close()


@contextmanager
def faulty_proxy(url):
    """Serve a proxy on this machine while the block runs."""
    proxy = FaultyProxy(url)

    def respond(handler):
        with suppress(OSError, HTTPException):
            proxy.treat(handler)
        handler.close_connection = True

    with http_server(respond) as proxy.url:
        yield proxy


def pipeline(*parallelism, rate=100):
    """Graph for the job of known costs: operators op0 → op1 → … of these parallelisms."""
    operators = [{"name": f"op{i}", "parallelism": p} for i, p in enumerate(parallelism)]
    operators[0]["rate"] = rate
    pairs = itertools.pairwise(operators)
    streams = [{"from": u["name"], "to": v["name"], "partitioning": "rebalance"} for u, v in pairs]
    return {"name": "pipeline", "operators": operators, "streams": streams}


def posted(rest, jar, entry, *arguments, **more):
    """Id of a job that is submitted as others do, by its main class."""
    request = {"entryClass": entry, "programArgsList": [*arguments], **more}
    return str(rest.post(f"/jars/{rest.upload(jar)}/run", request)["jobid"])


def submitted(rest, jar, entry, *arguments, settings=None):
    """Id of such a job, of which every subtask runs."""
    job = posted(rest, jar, entry, *arguments, flinkConfiguration=dict(settings or {}))
    rest.wait_running(job)
    return job


def mover(rest, program, folder, tell=lambda _: None):
    """What moves a job by savepoints in a folder, and does not watch it afterwards."""
    saved = (folder / "saved").as_uri()
    return FlinkMove(rest, program, tell, MoveSettings(saved, settle=0.0))


def chained(chaining, backend):
    """Settings of a job whose operators are chained, or not, and keep their state somewhere."""
    return {"pipeline.operator-chaining.enabled": chaining, "state.backend.type": backend}


def committed(folder):
    """Lines that a job has told for good in a folder."""
    files = (path for path in folder.rglob("*") if path.name[0] not in "._")
    texts = (path.read_text() for path in files if path.is_file())
    return [line for text in texts for line in text.splitlines()]


def tells_more(folder):
    """Wait until a job has told something more for good."""
    before = len(committed(folder))
    awaited(lambda: len(committed(folder)) > before, 120)


def spread_job(path, rest, job, devices, step):
    """Write a placement by which no operators or subtasks that are neighbours are together."""
    assignment, parallelism = {}, {}
    for i, (name, now) in enumerate(layout_of(rest, job, rest.job(job)).items()):
        number = len(now)
        names = [f"{name}#{k}" for k in range(number)] if number > 1 else [name]
        for k, subtask in enumerate(names):
            assignment[subtask] = devices[(i + step + k * (1 + step)) % len(devices)]
        if number > 1:
            parallelism[name] = number
    path.write_text(json.dumps({"assignment": assignment, "parallelism": parallelism}))
    return str(path)


@dataclass(frozen=True, slots=True)
class Watched:
    """A job of the tests' jar on a cluster: started as others do, moved, and finished.

    Attributes
    ----------
    before
        Its first arguments.
    settings
        That it is started with.
    """

    rest: Rest
    jar: Path
    folder: Path
    entry: str
    before: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)

    def arguments(self, per_second):
        """What the job is told."""
        return [*self.before, str(COUNT), str(per_second), self.folder.as_uri()]

    def start(self, per_second, savepoint=None):
        """Submit it as others do; returns its id."""
        given = {"parallelism": PARALLELISM, "flinkConfiguration": dict(self.settings)}
        more = {"savepointPath": savepoint} if savepoint else {}
        arguments = self.arguments(per_second)
        return posted(self.rest, self.jar, self.entry, *arguments, **given, **more)

    def tells_more(self):
        """Wait until it has told something more."""
        tells_more(self.folder)

    def finished(self, job):
        """Everything that a job has told when it has come to its end."""
        assert self.rest.wait(job, ENDED, 120) == "FINISHED", self.rest.failure(job)
        return sorted(committed(self.folder))

    def resumed(self, job):
        """Everything that it tells when it is stopped and goes on, as it was first started."""
        path = stop(self.rest, job, f"{self.folder.as_uri()}-saved")
        return self.finished(self.start(FAST, path))

    def move(self, run, *options, settings):
        """Move it by the command; returns its new id."""
        more = [word for pair in settings.items() for word in ("-D", "=".join(pair))]
        given = settings_file(self.folder.parent, settle=0, seconds=2)
        place = ("--rest", self.rest.url, *given)
        saved = ("--savepoints", f"{self.folder.as_uri()}-saved", "-p", str(PARALLELISM))
        job = ("--entry-class", self.entry, *more, *options)
        command = ("flink", "move", str(self.jar), *place, *saved, *job)
        answer = run(*command, "--", *self.arguments(SLOW))
        assert answer.status == 0, answer.err
        moved: str = answer.out.strip()
        assert self.rest.live_jobs() == [moved]
        return moved


@dataclass(frozen=True)
class Tally:
    """TallyJob, which checks itself: every key as often as it must be, every window whole."""

    rest: Rest
    flink: Flink
    jar: Path
    folder: Path
    rate: str = "500"

    def __post_init__(self):
        self.told.mkdir()

    @property
    def told(self):
        """Folder of what it tells."""
        return self.folder / "told"

    def program(self, settings=None, jar=None, **more):
        """The job with settings, by its jar if no other is given."""
        arguments = (str(self.told), self.rate)
        return Program(jar or self.jar, "TallyJob", arguments, settings=settings or {}, **more)

    def retained(self):
        """The job with checkpoints that outlive it, and restarts without end."""
        settings = {
            "execution.checkpointing.interval": "300 ms",
            "execution.checkpointing.dir": (self.folder / "checkpoints").as_uri(),
            RETENTION: "RETAIN_ON_CANCELLATION",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "10000",
            "restart-strategy.fixed-delay.delay": "500 ms",
        }
        return self.program(settings)

    def start(self, settings=None):
        """Submit it as others do, and wait until it tells something; returns its id."""
        arguments = self.program().arguments
        job = submitted(self.rest, self.jar, "TallyJob", *arguments, settings=settings)
        self.tells_more()
        return job

    def place(self, program, layout):
        """Id of the job when it runs where it is placed, and has saved its state."""
        job = apply(self.rest, program, layout)
        awaited(lambda: resumable(self.rest, job) is not None)
        return job

    def lines(self, kind):
        """Numbers that it told."""
        texts = (path.read_text() for path in self.told.glob(f"{kind}-*"))
        rows = [line.split() for text in texts for line in text.splitlines()]
        return [[int(word) for word in row] for row in rows]

    def tells_more(self, rounds=3):
        """Wait until it has told so many windows more of each key."""
        wanted = len(self.lines("windows")) + rounds * KEYS
        awaited(lambda: len(self.lines("windows")) >= wanted)

    def check_counts(self):
        """Every key was seen as often as it must have been."""
        assert all(seen == due for seen, due in self.lines("counts"))

    def check_windows(self):
        """Every window was told once, with all of its tuples, however often it was started."""
        windows = self.lines("windows")
        assert {number for _, _, number in windows} == {WINDOW // KEYS}
        found = Counter((key, first // WINDOW) for key, first, _ in windows)
        last = {key: max(n for k, n in found if k == key) for key in range(KEYS)}
        assert found == {(key, n): 1 for key in range(KEYS) for n in range(last[key] + 1)}

    def ends(self, job):
        """Stop it: everything adds up."""
        stop(self.rest, job, self.folder.as_uri())
        self.check_counts()
        self.check_windows()
