"""A fake of Flink's REST interface: it answers what a test says, or counts what a job does.

>>> flink = FakeFlink({"GET /jobs": InTurn({"jobs": []}, failure("a.B: busy", status=503))})
>>> flink.rest.live_jobs()
[]
>>> flink.rest.live_jobs()
Traceback (most recent call last):
streamplace.flink.rest.client.NoAnswer: Flink answers 503: a.B: busy
>>> flink.requests("GET")
['/jobs', '/jobs']
"""

import json
import math
import sys
import threading
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

import httpx

from streamplace.engines.names import resource
from streamplace.flink.cpu import limits
from streamplace.flink.cpu import threads as cpu
from streamplace.flink.cpu.charging import JavaThread
from streamplace.flink.engine import FlinkEngine
from streamplace.flink.layout import Layout
from streamplace.flink.measure import cluster as clusters
from streamplace.flink.measure import profile as profiling
from streamplace.flink.measure import windows
from streamplace.flink.program.submission import ClusterJar
from streamplace.flink.rest.client import Rest
from streamplace.flink.watch.deciding import LayoutOption
from streamplace.model.defaults import FLINK_HEADROOM
from streamplace.model.prediction_intervals import RateInterval
from streamplace.placers.registry import Budget
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.problem import PlannerSettings

JSON = "application/json"


def as_it_is(connection):
    """Leave a connection as it is."""
    return connection


@contextmanager
def http_server(answer, connected=as_it_is):
    """Address of a server that answers every request in this way while the block runs.

    Connections are used as ``connected`` returns them; one that breaks is no error.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            answer(self)

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

        def log_message(self, *_):
            """Keep quiet."""

    class Server(ThreadingHTTPServer):
        def process_request_thread(self, request, client_address):
            with request, suppress(OSError):
                super().process_request_thread(connected(request), client_address)

        def handle_error(self, request, client_address):
            if not isinstance(sys.exception(), OSError):
                super().handle_error(request, client_address)

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class InTurn:
    """Answers that are given one after the other; the last one stays."""

    def __init__(self, *answers):
        self.left = [*answers]

    def next(self):
        """Answer whose turn it is."""
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes that take the place of an answer, whatever they mean; none break the connection off."""

    content: bytes
    more: bytes = b""  # what follows again and again, until the other end has had enough

    def send(self, connection):
        """Send them."""
        connection.sendall(self.content)
        while self.more:
            connection.sendall(self.more)
        return connection


def said(content, status=200, location=None):
    """An answer that is no document."""
    return httpx.Response(
        status, content=content, headers={"Location": location} if location else {}
    )


def failure(*errors, status=400):
    """An error that Flink answers."""
    return said(json.dumps({"errors": errors}).encode(), status)


NOT_FOUND = failure("a.B: not found\n\tat x", status=404)


class FakeFlink:
    """A JobManager's REST interface: over loopback while it is served, or within this process.

    Where nobody listens any more, after the block in which it is served, connections are refused.

    Parameters
    ----------
    answers
        Method and path, as in ``"GET /jobs"``, → a document, a response (see `failure`),
        `Raw` bytes, some of these `InTurn`, or a function that returns one of them. A path without
        its query stands for all queries. Sums of metrics grow by themselves with every look.
    otherwise
        What everything else is answered.

    Attributes
    ----------
    asked
        Method and path of every request, and the document that came with it.
    headers
        Of every request that came over a connection.
    url
        Where it is served.
    """

    def __init__(self, answers=None, otherwise=NOT_FOUND):
        self.answers = {} if answers is None else answers
        self.otherwise = otherwise
        self.asked: list[tuple[str, Any]] = []
        self.headers: list[Message] = []
        self.url = ""
        self._looks: Counter[str] = Counter()

    def requests(self, method):
        """Paths that were asked by a method."""
        return [r.partition(" ")[2] for r, _ in self.asked if r.startswith(f"{method} ")]

    def answer(self, request, document=None):
        """Answer to a request by method and path, which is remembered."""
        self.asked.append((request, document))
        key = request if request in self.answers else request.partition("?")[0]
        self._looks[key] += 1
        answer = self.answers.get(key, self.otherwise)
        while callable(answer) or isinstance(answer, InTurn):
            answer = answer.next() if isinstance(answer, InTurn) else answer()
        return _grown(answer, self._looks[key])

    @contextmanager
    def served(self, connected=as_it_is):
        """Answer over connections to this machine while the block runs.

        Parameters
        ----------
        connected
            What is done with each connection first, such as to encrypt it.
        """
        with http_server(self._respond, connected) as self.url:
            yield self

    @property
    def rest(self):
        """A client that needs no connection."""
        rest = Rest("http://flink:8081")
        vars(rest)["_client"] = self
        return rest

    @contextmanager
    def stream(self, method, _, *, content, extensions, **more):
        """Answer to a request of that client."""
        document = None if content is None else json.loads(content)
        yield spoken(self.answer(f"{method} {extensions['target'].decode()}", document))

    def _respond(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        document = json.loads(body) if handler.headers["Content-Type"] == JSON else None
        self.headers.append(handler.headers)
        answer = self.answer(f"{handler.command} {handler.path}", document)
        if isinstance(answer, Raw):
            handler.close_connection = True
            answer.send(handler.connection)
            return
        sent = spoken(answer)
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(sent.status_code)
        handler.send_header("Connection", "close")
        handler.send_header("Content-Length", str(len(sent.content)))
        if "Location" in sent.headers:
            handler.send_header("Location", sent.headers["Location"])
        handler.end_headers()
        handler.wfile.write(sent.content)


def spoken(answer):
    """What is sent as an answer."""
    if isinstance(answer, httpx.Response):
        return answer
    return said(json.dumps(answer, ensure_ascii=False).encode(errors="surrogatepass"))


def _grown(document, looks):
    """Metrics after so many looks; other documents are as they were."""
    if not isinstance(document, list):
        return document
    return [
        row | {"sum": row["sum"] * looks}
        if isinstance(row, dict) and type(row.get("sum")) in (int, float)
        else row
        for row in document
    ]


def task_manager(device, devices=(), *, pins=True):
    """A TaskManager that is prepared for spreading over some devices, by one group, or for none."""
    limits = {f"lim-0-{other}": 1e6 if other == device else 1e12 for other in devices}
    offered = {resource(device): 100.0} | ({"lim-0": 1e6, **limits} if limits else {})
    resources = {"managedMemory": 100} | ({"extendedResources": offered} if pins else {})
    return {
        "id": device,
        "path": f"pekko.tcp://flink@{device}:6122/user/rpc/taskmanager_0",
        "totalResource": resources,
        "freeResource": resources,
        "hardware": {"cpuCores": 2},
        "memoryConfiguration": {},
    }


def job(name, state, vertices):
    """A job's document; vertices with their states."""
    rows = [{"id": v, "name": v, "parallelism": 1, "status": s} for v, s in vertices.items()]
    return {"name": name, "state": state, "schedulerType": "Default", "vertices": rows}


def jobs(states):
    """The list of all jobs, by their ids."""
    return {"jobs": [{"id": name, "status": state} for name, state in states.items()]}


def config(settings):
    """Settings of a JobManager."""
    return [{"key": key, "value": value} for key, value in settings.items()]


def failed_by(stack_trace):
    """Exceptions of a job that has failed once."""
    return {"exceptionHistory": {"entries": [{"stacktrace": stack_trace}]}}


def healthy(*devices):
    """Answers of a cluster of these devices on which the job "new" comes up."""
    managers = [task_manager(device, [*devices]) for device in devices]
    return {
        "GET /jobmanager/config": config({"rest.port": "8081"}),
        "GET /taskmanagers": {"taskmanagers": managers},
        **{f"GET /taskmanagers/{device}": {"allocatedSlots": []} for device in devices},
        "GET /jobs": jobs({}),
        "POST /jars/upload": {"filename": "/tmp/web/jar-1"},
        "POST /jars/jar-1/run": {"jobid": "new"},
        "DELETE /jars/jar-1": {},
        "GET /jobs/new": job("new", "RUNNING", {"map": "RUNNING"}),
    }


KEPT = {"externalization": {"enabled": True, "delete_on_cancellation": False}}
"""A job's policy by which its checkpoints outlive it."""
DELETED = {"externalization": {"enabled": True, "delete_on_cancellation": True}}
"""One by which they outlive its failure, but not that it is cancelled."""

JOB = "a" * 32
TASK_MANAGER = task_manager("dev-0", []) | {
    "path": "pekko.tcp://flink@127.0.0.1:6122/user/rpc/taskmanager_0",
    "memoryConfiguration": {"totalProcessMemory": 704643072},
}
ANSWERS: dict[str, Any] = {
    "GET /taskmanagers": {"taskmanagers": [TASK_MANAGER]},
    "GET /jobs": jobs({JOB: "RUNNING"}),
    f"GET /jobs/{JOB}": {
        "name": "shop",
        "state": "RUNNING",
        "schedulerType": "Default",
        "vertices": [
            {"id": "v0", "name": "Source: src", "parallelism": 1, "status": "RUNNING"},
            {"id": "v1", "name": "a -> (b, c)", "parallelism": 1, "status": "RUNNING"},
        ],
        "plan": {
            "nodes": [
                {"id": "v0", "description": "Source: src<br/>"},
                {
                    "id": "v1",
                    "description": "a<br/>:- b<br/>+- c<br/>",
                    "inputs": [{"id": "v0", "ship_strategy": "HASH"}],
                },
            ]
        },
    },
    f"GET /jobs/{JOB}/exceptions": failed_by("a.B: c"),
    f"GET /jobs/{JOB}/vertices/v0": {"subtasks": [{"taskmanager-id": "dev-0"}]},
    f"GET /jobs/{JOB}/vertices/v1": {"subtasks": [{"taskmanager-id": "dev-0"}]},
    "GET /taskmanagers/dev-0/metrics": [{"id": "Status.JVM.CPU.Time", "value": "5000000"}],
    f"GET /jobs/{JOB}/vertices/v0/subtasks/metrics": [
        {"id": "Source__src.numRecordsOut", "sum": 5.0},
        {"id": "numRecordsOut", "sum": 5.0},
        {"id": "numBytesOut", "sum": 500.0},
        {"id": "accumulateBusyTimeMs", "sum": 5},
    ],
    f"GET /jobs/{JOB}/vertices/v1/subtasks/metrics": [
        {"id": "numRecordsIn", "sum": 5.0},
        {"id": "numBytesIn", "sum": 500.0},
        {"id": "accumulateBusyTimeMs", "sum": 100},
    ],
    "GET /jobmanager/config": config({"jobmanager.scheduler": "default"}),
}
"""What a Flink with one job answers; what it counts, it counts per look."""


UNKNOWN = failure("Could not find Flink job (…)", status=404)
UNDER_WAY = {"status": {"id": "IN_PROGRESS"}}
"""Of a savepoint."""


def savepoint_at(path):
    """A savepoint that is complete."""
    return {"status": {"id": "COMPLETED"}, "operation": {"location": path}}


def no_savepoint(stack_trace):
    """One that has failed."""
    failed = {"failure-cause": {"stack-trace": stack_trace}}
    return {"status": {"id": "COMPLETED"}, "operation": failed}


def checkpoints(number=0, /, **latest):
    """How many a job has completed, and the latest ones by their kind; for a path, a file's."""
    rows = {k: {"external_path": row} if isinstance(row, str) else row for k, row in latest.items()}
    return {"counts": {"completed": number}, "latest": {"completed": None} | rows}


def stopped(path, number=8):
    """The savepoint with which a job was stopped, in its place among checkpoints."""
    return {"id": number, "external_path": path, "checkpoint_type": "SYNC_SAVEPOINT"}


def on_devices(name, tasks, status=""):
    """Answers on where the subtasks of a job run, and in which state if that is given."""
    more = {"status": status} if status else {}
    return {
        f"GET /jobs/{name}/vertices/{task}": {
            "subtasks": [{"taskmanager-id": device, **more} for device in devices]
        }
        for task, devices in tasks.items()
    }


def cluster_jar(rest, name):
    """A jar that is on the cluster."""
    return ClusterJar(rest, Path(name), name)


def layout_option(devices, rate, **facts):
    """A layout of one operator that should carry a rate, or a tenth less or more."""
    carries = RateInterval(0.9 * rate, rate, 1.1 * rate)
    return LayoutOption(Layout({"map": devices}), carries, **facts)


def write_program(folder):
    """Write a jar with a main class, and the Flink from which it is submitted, into a folder."""
    with zipfile.ZipFile(folder / "job.jar", "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Main-Class: Job\r\n")
    (folder / "lib").mkdir()
    (folder / "lib" / "flink-dist-2.3.0.jar").touch()


START, MIPS = 100.0, 1000.0


class Clock:
    """Time that passes only while somebody sleeps, and then at least so many seconds."""

    def __init__(self, now=START, least=0.0):
        self.now, self.least = now, least

    def monotonic(self):
        """Seconds."""
        return self.now

    def sleep(self, seconds):
        """Let time pass."""
        self.now += max(seconds, self.least)


def with_threads(patch, threads, processes):
    """Let TaskManagers be processes of this machine with these threads."""
    for module in (windows, clusters):
        patch.setattr(module, "processes_of", lambda rest: processes)
    patch.setattr(profiling, "runs_python", lambda: False)
    patch.setattr(cpu, "java_threads", threads)
    patch.setattr(cpu, "named_threads", lambda process, names: [])


def read_threads(patch, flink, cores, pool):
    """Let TaskManager i be process i of this machine, whose threads take so many cores each."""

    def threads(process):
        now, used = flink.clock.now, enumerate(cores(process).items(), 1)
        return [JavaThread(n, name, own * now, now) for n, (name, own) in used]

    with_threads(patch, threads, {device: i for i, device in enumerate(flink.devices)})
    patch.setattr(limits, "cpu_pool", pool)


@dataclass
class Vertex:
    """A task, what it does per second, and where its input comes from."""

    name: str
    # Metric → change per second, or what is counted by a time; a text stays as it is.
    rates: Mapping[str, float | str | Callable[[float], float]]
    inputs: Sequence[tuple[str, str]] = ()  # sender and how it sends, such as ("v0", "HASH")
    parallelism: int = 2
    tree: str = ""  # what the plan shows of it
    # Parts of its tuples that its subtasks read, or send if it is a source; empty if Flink does not
    # say.
    shares: Sequence[float] = ()
    waits: float = 0.0  # part of the time in which each subtask waits for input
    # Metric → change per second of the subtask with the largest value.
    most: Mapping[str, float] = field(default_factory=dict)
    ends: float = math.inf  # when it has finished, from which on Flink reports no metrics of it
    # Number of its subtasks whose metrics Flink has fetched by a time; None if it does not say.
    told: Callable[[float], int] | None = None
    lags: Sequence[Callable[[float], float]] = ()  # what waits for each subtask of a source by then
    offsets: Mapping[str, float] = field(default_factory=dict)  # metric → offset of a partition
    group: str = ""  # id of its slot sharing group, if that is told


@dataclass
class LazyFlink(FakeFlink):
    """Answers with the counters of the fetch that the look before asked for."""

    clock: Clock
    vertices: dict[str, Vertex]
    # States of the job, one for each time that it is looked at; the last one stays.
    states: list[str] = field(default_factory=lambda: ["RUNNING"])
    fetched: dict[str, float] = field(default_factory=dict)
    devices: Sequence[str] = ("dev-0",)  # subtask i runs on number i modulo their number
    # Cores of TaskManagers that say so; None for all of them, which take what they are busy.
    process_cpu: Mapping[str, float] | None = field(default_factory=dict)
    # TaskManager → thread → part of its dumps in which it is on a core; others permit no dumps.
    on_core: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    # TaskManager → texts of the gauges of its reporter by a time.
    gauges: Mapping[str, Callable[[float], Sequence[str]]] = field(default_factory=dict)
    dumped: Counter[str] = field(default_factory=Counter)  # number of dumps by TaskManager
    # Vertex → metric → what was counted before the clock began.
    counted: dict[str, dict[str, float]] = field(default_factory=dict)
    duration: int = 0  # milliseconds since the job's start
    settings: dict[str, str] = field(default_factory=dict)  # of the JobManager
    facts: dict[str, Any] = field(default_factory=dict)  # what else the job's document says
    key_groups: int = 0  # the maximum parallelism of its vertices, if that is told
    job: str = "job"  # its id
    pins: bool = True  # whether jobs can be pinned to its TaskManagers
    memory: int = 0  # bytes of each TaskManager, if they are told
    # What it says otherwise of a subtask, by its task and number.
    otherwise_of: Callable[[Vertex, int], dict[str, Any]] = lambda vertex, i: {}

    def __post_init__(self):
        super().__init__(
            {
                "GET /jobs": jobs({self.job: "RUNNING"}),
                f"GET /jobs/{self.job}/exceptions": failed_by(
                    "java.lang.RuntimeException: the reason\n\tat somewhere"
                ),
                f"GET /jobs/{self.job}/checkpoints": checkpoints(
                    1, completed={"end_to_end_duration": 2000}
                ),
                "GET /jars": {"files": []},
                "GET /config": {"flink-version": "2.3.0"},
            }
        )

    def answer(self, request, document=None):
        """Answer to a request; what no test has set follows from the job."""
        found = super().answer(request, document)
        return self._answer(request.partition(" ")[2]) if found is self.otherwise else found

    def _answer(self, path):
        if path == "/jobmanager/config":
            return config(self.settings)
        if path == "/taskmanagers":
            told = {"totalProcessMemory": self.memory} if self.memory else {}
            made = [task_manager(device, [], pins=self.pins) for device in self.devices]
            return {"taskmanagers": [row | {"memoryConfiguration": told} for row in made]}
        if path.endswith("/thread-dump"):
            return self._dump(path.split("/")[2])
        if path.startswith("/taskmanagers/"):
            return self._of_process(path.split("/")[2], unquote(path.partition("get=")[2]))
        if path.endswith("/subtasktimes"):
            return self.otherwise
        if "/metrics" in path and "/subtasks/" not in path:
            return self._by_subtask(path.split("/")[4], unquote(path.partition("get=")[2]))
        if "/metrics" in path:
            return self._metrics(path.split("/")[4], unquote(path.partition("get=")[2]))
        if "/vertices/" in path:
            return {"subtasks": self._subtasks(self.vertices[path.rpartition("/")[2]])}
        if path != f"/jobs/{self.job}":
            return self.otherwise
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        facts = {"name": "shop", "state": state, "duration": self.duration}
        vertices, nodes = map(self._vertex, self.vertices), map(self._node, self.vertices)
        return facts | {"vertices": [*vertices], "plan": {"nodes": [*nodes]}} | self.facts

    def _subtasks(self, vertex):
        """Subtasks, dealt out in turn; each is as busy as its vertex in the mean."""
        busy = vertex.rates.get("accumulateBusyTimeMs", 0.0)
        if not isinstance(busy, str):
            busy = _counted(busy, self.clock.now) / vertex.parallelism
        return [
            {
                "subtask": i,
                "attempt": 0,
                "taskmanager-id": self.devices[i % len(self.devices)],
                "metrics": {"accumulated-busy-time": busy} | self._read(vertex, i),
            }
            | self.otherwise_of(vertex, i)
            for i in range(vertex.parallelism)
        ]

    def _read(self, vertex, subtask):
        rate = vertex.rates.get("numRecordsIn" if vertex.inputs else "numRecordsOut", 0.0)
        if not vertex.shares or not isinstance(rate, int | float):
            return {}
        number = vertex.shares[subtask] * rate * self.clock.now
        counts = {"read-records": number} if vertex.inputs else {"write-records": number}
        times = {"idle": vertex.waits, "backpressured": 0.0}
        spent = {f"accumulated-{kind}-time": 1e3 * t * self.clock.now for kind, t in times.items()}
        return counts | spent

    def _dump(self, device):
        """Dump in which threads are on a core as often as they are, evenly over time."""
        if device not in self.on_core:
            return failure("forbidden", status=403)
        number, rows = self.dumped[device], []
        self.dumped[device] += 1
        for i, (name, part) in enumerate(self.on_core[device].items()):
            works = math.floor((number + 1) * part) > math.floor(number * part)
            top = "A.work(A.java:1)" if works else "sun.nio.ch.EPoll.wait(Native Method)"
            text = f'"{name}" Id={i} RUNNABLE\n\tat java.base@17/{top}\n\tat B.run(B.java:2)\n\n'
            rows.append({"threadName": name, "stringifiedThreadInfo": text})
        return {"threadInfos": rows}

    def _of_process(self, device, wanted):
        cpu = self._busy() if self.process_cpu is None else self.process_cpu
        at = 10 * (self.clock.now // 10)  # Flink fetches them every ten seconds
        texts = self.gauges[device](at) if device in self.gauges else []
        values = {f"Status.JVM.CPU.streamplace{i}": text for i, text in enumerate(texts)}
        if device in cpu:
            values["Status.JVM.CPU.Time"] = str(round(cpu[device] * self.clock.now * 1e9))
        if not wanted:
            return [{"id": name} for name in values]
        return [{"id": name, "value": values[name]} for name in wanted.split(",")]

    def _busy(self):
        """TaskManager → busy seconds per second of its subtasks."""
        cores = dict.fromkeys(self.devices, 0.0)
        for vertex in self.vertices.values():
            busy = vertex.rates.get("accumulateBusyTimeMs", 0.0)
            for i in range(vertex.parallelism if isinstance(busy, int | float) else 0):
                device = self.devices[i % len(self.devices)]
                cores[device] += float(busy) / 1000 / vertex.parallelism
        return cores

    def _by_subtask(self, v, wanted):
        vertex, names = self.vertices[v], wanted.split(",")
        if not wanted:
            return [{"id": name} for name in vertex.offsets]
        lags = dict(zip(names, vertex.lags, strict=False))
        known = {name: lag(self.clock.now) for name, lag in lags.items()} | vertex.offsets
        return [{"id": name, "value": str(known[name])} for name in names if name in known]

    def _node(self, v):
        inputs = [{"id": u, "ship_strategy": ship} for u, ship in self.vertices[v].inputs]
        return {"id": v, "description": self.vertices[v].tree, "inputs": inputs}

    def _vertex(self, v):
        vertex = self.vertices[v]
        status = "FINISHED" if self.clock.now >= vertex.ends else "RUNNING"
        facts = {"name": vertex.name, "parallelism": vertex.parallelism}
        more = {"maxParallelism": self.key_groups, "slotSharingGroupId": vertex.group}
        return {"id": v, "status": status, **facts, **{k: x for k, x in more.items() if x}}

    def _metrics(self, v, wanted):
        rates = self.vertices[v].rates
        if self.clock.now >= self.vertices[v].ends:
            return []
        if not wanted:
            return [{"id": name} for name in rates]
        if not set(wanted.split(",")) <= rates.keys():
            return []  # as Flink does
        at, self.fetched[v] = self.fetched.get(v, 0.0), self.clock.now
        before, told = self.counted.get(v, {}), self.vertices[v].told
        number = self.vertices[v].parallelism if told is None else told(at)
        part = number / self.vertices[v].parallelism
        sums = {
            name: rate
            if isinstance(rate, str)
            else part * (_counted(rate, at) + before.get(name, 0.0))
            for name, rate in rates.items()
        }
        means = {name: one / number for name, one in sums.items() if not isinstance(one, str)}
        largest = self.vertices[v].most
        return [
            {"id": name, "sum": sums[name]}
            | ({"max": _counted(largest[name], at)} if name in largest else {})
            | ({"avg": means[name]} if told and name in means else {})
            for name in wanted.split(",")
        ]


def _counted(rate, at):
    return rate(at) if callable(rate) else rate * at


def rates(read=0, wrote=0, read_bytes=0, wrote_bytes=0, **more):
    """Metrics of a task; ``busy`` and ``blocked`` are seconds per second."""
    return {
        "numRecordsIn": read,
        "numRecordsOut": wrote,
        "numBytesIn": read_bytes,
        "numBytesOut": wrote_bytes,
        "accumulateBusyTimeMs": 1000 * more.get("busy", 0.0),
        "accumulateBackPressuredTimeMs": 1000 * more.get("blocked", 0.0),
    }


def made_threads(vertices, cpu, now, delay=MappingProxyType({})):
    """Threads of all tasks, in order; each has its part of the CPU and run delay of its task."""
    threads = []
    for v, vertex in vertices.items():
        part = now / vertex.parallelism
        for i in range(vertex.parallelism):
            name = f"{vertex.name} ({i + 1}/{vertex.parallelism})#0"
            times = cpu[v] * part, now, delay.get(v, math.nan) * part
            threads.append(JavaThread(len(threads) + 1, name, *times))
    return threads


CPU = {"v0": 0.01, "v1": 0.2, "v2": 0.05}
OFFERS = Catalogue.of([Offer("small", 0.1), Offer("large", 0.25, cores=2)], overhead=1e-6)
SETTINGS = PlannerSettings(FLINK_HEADROOM, budget=Budget(None, 5_000))


def source(name, rate, size=0.0, pending=None, **activity):
    """A source that emits tuples of so many bytes at a rate, and may report what waits for it."""
    told = {f"Source__{name}.numRecordsOut": rate, f"Source__{name}.pendingRecords": pending}
    told = {metric: value for metric, value in told.items() if value is not None}
    return Vertex(f"Source: {name}", rates(0, rate, 0, rate * size, **activity) | told)


def shop_vertices(blocked=0.0, pending=None):
    """A source, which may report what waits for it, a splitter and a sink."""
    split = rates(100, 250, 100 * 400, 250 * 40, busy=CPU["v1"])
    return {
        "v0": source("src", 100, 400, pending, busy=CPU["v0"], blocked=blocked),
        "v1": Vertex("split", split, [("v0", "HASH")]),
        "v2": Vertex("out", rates(250, 0, 250 * 40, 0, busy=CPU["v2"]), [("v1", "REBALANCE")]),
    }


def application(shop, name="count", number=3, memory=0, slots="2", **settings):
    """The job of `shop` as an application of stock Flink on so many pods of two cores."""
    usual = {
        "execution.target": "kubernetes-application",
        "kubernetes.cluster-id": name,
        "kubernetes.namespace": "flink",
        "$internal.flink.version": "v2_3",
        "parallelism.default": "2",
        "taskmanager.numberOfTaskSlots": slots,
    }
    devices = tuple(f"{name}-{i}" for i in range(number))
    facts = {"schedulerType": "Default", "name": name}
    return shop(settings=usual | settings, devices=devices, facts=facts, memory=memory, pins=False)


def writing_shop(clock, blocked=0.0):
    """A pipeline of a source, a splitter and a sink that is called as sinks are."""
    vertices = shop_vertices(blocked)
    vertices["v2"].name, vertices["v2"].inputs = "out: Writer", [("v1", "FORWARD")]
    return LazyFlink(clock, vertices)


def advised(flink, rate="2x", machines=OFFERS, program=None, **facts):
    """Advice on the job of a cluster, by an engine with these facts."""
    engine = FlinkEngine(flink.rest, **facts)
    return engine.advise("job", rate, machines, SETTINGS, program=program)
