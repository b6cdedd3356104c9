"""A Flink that answers over HTTP what a test tells it to, and remembers what it was asked."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ScriptedFlink:
    """Answers by method and path; a list answers its elements in turn, the last for ever.

    Attributes
    ----------
    asked
        Method and path of every request, and the document that came with it.
    """

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, Any]] = []
        self.url = ""

    def answer(self, request: str, document: Any) -> tuple[int, Any]:
        """Status and document."""
        self.asked.append((request, document))
        if request not in self.answers:
            return 404, {"errors": ["Not found"]}
        found = self.answers[request]
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        return (400, found) if "errors" in found else (200, found)

    def requests(self, method: str) -> list[str]:
        """Paths that were asked by a method."""
        return [r.partition(" ")[2] for r, _ in self.asked if r.startswith(f"{method} ")]


@contextmanager
def scripted_flink(answers: dict[str, Any]) -> Iterator[ScriptedFlink]:
    """Serve the answers on this machine while the block runs."""
    flink = ScriptedFlink(answers)

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            is_json = self.headers.get("Content-Type") == "application/json"
            document = json.loads(body) if is_json else None
            status, answer = flink.answer(f"{self.command} {self.path}", document)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_DELETE = _answer

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        flink.url = f"http://127.0.0.1:{server.server_port}"
        yield flink
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def task_manager(device: str, devices: list[str], managed: int = 100) -> dict[str, Any]:
    """A TaskManager that is prepared for spreading over some devices, by one group."""
    limits = {f"lim-0-{other}": 1e6 if other == device else 1e12 for other in devices}
    offered = {device: 100.0} | ({"lim-0": 1e6, **limits} if limits else {})
    resources = {"managedMemory": managed, "extendedResources": offered}
    return {
        "id": device,
        "path": f"pekko.tcp://flink@{device}:6122/user/rpc/taskmanager_0",
        "totalResource": resources,
        "freeResource": resources,
        "hardware": {"cpuCores": 2},
        "memoryConfiguration": {},
    }


def healthy(*devices: str) -> dict[str, Any]:
    """Answers of a cluster of these devices on which the job "new" comes up."""
    managers = [task_manager(device, [*devices]) for device in devices]
    return {
        "GET /jobmanager/config": [[{"key": "rest.port", "value": "8081"}]],
        "GET /taskmanagers": {"taskmanagers": managers},
        **{f"GET /taskmanagers/{device}": {"allocatedSlots": []} for device in devices},
        "GET /jobs": {"jobs": []},
        "GET /jobs/overview": {"jobs": []},
        "POST /jars/upload": {"filename": "/tmp/web/jar-1"},
        "POST /jars/jar-1/run": {"jobid": "new"},
        "DELETE /jars/jar-1": {},
        "GET /jobs/new": job("new", "RUNNING", {"map": "RUNNING"}),
    }


def job(name: str, state: str, vertices: dict[str, str]) -> dict[str, Any]:
    """A job's document; vertices with their states."""
    rows = [{"id": v, "name": v, "parallelism": 1, "status": s} for v, s in vertices.items()]
    return {"name": name, "state": state, "schedulerType": "Default", "vertices": rows}
