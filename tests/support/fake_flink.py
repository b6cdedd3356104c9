"""A fake of Flink's REST interface with the answers of a test, and documents for these.

>>> flink = FakeFlink({"GET /jobs": InTurn({"jobs": []}, failure("a.B: busy", status=503))})
>>> flink.rest.live_jobs()
[]
>>> flink.rest.live_jobs()
Traceback (most recent call last):
streamplace.engines.flink.rest.client.NoAnswer: Flink answers 503: a.B: busy
>>> flink.requests("GET")
['/jobs', '/jobs']
"""

import json
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import httpx

from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.names import resource

JSON = "application/json"


def as_it_is(connection: socket.socket) -> socket.socket:
    """Leave a connection as it is."""
    return connection


@contextmanager
def http_server(
    answer: Callable[[BaseHTTPRequestHandler], None],
    connected: Callable[[socket.socket], socket.socket] = as_it_is,
) -> Iterator[str]:
    """Address of a server that answers every request in this way while the block runs.

    Connections are used as ``connected`` returns them; one that breaks is no error.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        do_POST = do_PATCH = do_DELETE = do_GET

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    class Server(ThreadingHTTPServer):
        def process_request_thread(self, request: Any, client_address: Any) -> None:
            with request, suppress(OSError):
                super().process_request_thread(connected(request), client_address)

        def handle_error(self, request: Any, client_address: Any) -> None:
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

    def __init__(self, *answers: Any) -> None:
        self.left = [*answers]

    def next(self) -> Any:
        """Answer whose turn it is."""
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes that take the place of an answer, whatever they mean; none break the connection off."""

    content: bytes
    more: bytes = b""  # what follows again and again, until the other end has had enough

    def send(self, connection: socket.socket) -> socket.socket:
        """Send them."""
        connection.sendall(self.content)
        while self.more:
            connection.sendall(self.more)
        return connection


def said(content: bytes, status: int = 200, location: str | None = None) -> httpx.Response:
    """An answer that is no document."""
    return httpx.Response(
        status, content=content, headers={"Location": location} if location else {}
    )


def failure(*errors: str, status: int = 400) -> httpx.Response:
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

    def __init__(self, answers: dict[str, Any] | None = None, otherwise: Any = NOT_FOUND) -> None:
        self.answers = {} if answers is None else answers
        self.otherwise = otherwise
        self.asked: list[tuple[str, Any]] = []
        self.headers: list[Message] = []
        self.url = ""
        self._looks: Counter[str] = Counter()

    def requests(self, method: str) -> list[str]:
        """Paths that were asked by a method."""
        return [r.partition(" ")[2] for r, _ in self.asked if r.startswith(f"{method} ")]

    def answer(self, request: str, document: Any = None) -> Any:
        """Answer to a request by method and path, which is remembered."""
        self.asked.append((request, document))
        key = request if request in self.answers else request.partition("?")[0]
        self._looks[key] += 1
        answer = self.answers.get(key, self.otherwise)
        while callable(answer) or isinstance(answer, InTurn):
            answer = answer.next() if isinstance(answer, InTurn) else answer()
        return _grown(answer, self._looks[key])

    @contextmanager
    def served(
        self, connected: Callable[[socket.socket], socket.socket] = as_it_is
    ) -> Iterator[Self]:
        """Answer over connections to this machine while the block runs.

        Parameters
        ----------
        connected
            What is done with each connection first, such as to encrypt it.
        """
        with http_server(self._respond, connected) as self.url:
            yield self

    @property
    def rest(self) -> Rest:
        """A client that needs no connection."""
        rest = Rest("http://flink:8081")
        vars(rest)["_client"] = self
        return rest

    def request(
        self, method: str, _: str, *, content: bytes | None, extensions: Any, **more: Any
    ) -> httpx.Response:
        """Answer to a request of that client."""
        document = None if content is None else json.loads(content)
        return _spoken(self.answer(f"{method} {extensions['target'].decode()}", document))

    def _respond(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        document = json.loads(body) if handler.headers["Content-Type"] == JSON else None
        self.headers.append(handler.headers)
        answer = self.answer(f"{handler.command} {handler.path}", document)
        if isinstance(answer, Raw):
            handler.close_connection = True
            answer.send(handler.connection)
            return
        spoken = _spoken(answer)
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(spoken.status_code)
        handler.send_header("Connection", "close")
        handler.send_header("Content-Length", str(len(spoken.content)))
        if "Location" in spoken.headers:
            handler.send_header("Location", spoken.headers["Location"])
        handler.end_headers()
        handler.wfile.write(spoken.content)


def _spoken(answer: Any) -> httpx.Response:
    if isinstance(answer, httpx.Response):
        return answer
    return said(json.dumps(answer, ensure_ascii=False).encode(errors="surrogatepass"))


def _grown(document: Any, looks: int) -> Any:
    """Metrics after so many looks; other documents are as they were."""
    if not isinstance(document, list):
        return document
    return [
        row | {"sum": row["sum"] * looks}
        if isinstance(row, dict) and type(row.get("sum")) in (int, float)
        else row
        for row in document
    ]


def task_manager(device: str, devices: list[str], managed: int = 100) -> dict[str, Any]:
    """A TaskManager that is prepared for spreading over some devices, by one group."""
    limits = {f"lim-0-{other}": 1e6 if other == device else 1e12 for other in devices}
    offered = {resource(device): 100.0} | ({"lim-0": 1e6, **limits} if limits else {})
    resources = {"managedMemory": managed, "extendedResources": offered}
    return {
        "id": device,
        "path": f"pekko.tcp://flink@{device}:6122/user/rpc/taskmanager_0",
        "totalResource": resources,
        "freeResource": resources,
        "hardware": {"cpuCores": 2},
        "memoryConfiguration": {},
    }


def job(name: str, state: str, vertices: dict[str, str]) -> dict[str, Any]:
    """A job's document; vertices with their states."""
    rows = [{"id": v, "name": v, "parallelism": 1, "status": s} for v, s in vertices.items()]
    return {"name": name, "state": state, "schedulerType": "Default", "vertices": rows}


def jobs(states: Mapping[str, str]) -> dict[str, Any]:
    """The list of all jobs, by their ids."""
    return {"jobs": [{"id": name, "status": state} for name, state in states.items()]}


def config(settings: Mapping[str, str]) -> list[dict[str, str]]:
    """Settings of a JobManager."""
    return [{"key": key, "value": value} for key, value in settings.items()]


def failed_by(stack_trace: str) -> dict[str, Any]:
    """Exceptions of a job that has failed once."""
    return {"exceptionHistory": {"entries": [{"stacktrace": stack_trace}]}}


def healthy(*devices: str) -> dict[str, Any]:
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
    },
    f"GET /jobs/{JOB}/plan": {
        "plan": {
            "nodes": [
                {"id": "v0", "description": "Source: src<br/>"},
                {
                    "id": "v1",
                    "description": "a<br/>:- b<br/>+- c<br/>",
                    "inputs": [{"id": "v0", "ship_strategy": "HASH"}],
                },
            ]
        }
    },
    f"GET /jobs/{JOB}/exceptions": failed_by("a.B: c"),
    f"GET /jobs/{JOB}/vertices/v0": {"subtasks": [{"taskmanager-id": "dev-0"}]},
    f"GET /jobs/{JOB}/vertices/v1": {"subtasks": [{"taskmanager-id": "dev-0"}]},
    "GET /taskmanagers/dev-0/metrics": [{"id": "Status.JVM.CPU.Time", "value": "5000000"}],
    f"GET /jobs/{JOB}/vertices/v0/subtasks/metrics": [
        {"id": "Source__src.numRecordsOut", "sum": 5.0},
        {"id": "numRecordsOut", "sum": 5.0},
        {"id": "numBytesOut", "sum": 500.0},
        {"id": "accumulateBusyTimeMs", "sum": "NaN"},
    ],
    f"GET /jobs/{JOB}/vertices/v1/subtasks/metrics": [
        {"id": "numRecordsIn", "sum": 5.0},
        {"id": "numBytesIn", "sum": 500.0},
        {"id": "accumulateBusyTimeMs", "sum": 100},
    ],
    "GET /jobmanager/config": config({"jobmanager.scheduler": "default"}),
}
"""What a Flink with one job answers; what it counts, it counts per look."""
