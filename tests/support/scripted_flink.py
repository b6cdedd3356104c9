"""A Flink that answers over HTTP what a test tells it to, and remembers what it was asked."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from http_servers import http_server


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
        answer = self.answers[request]
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        return (400, answer) if "errors" in answer else (200, answer)

    def requests(self, method: str) -> list[str]:
        """Paths that were asked by a method."""
        return [r.partition(" ")[2] for r, _ in self.asked if r.startswith(f"{method} ")]


@contextmanager
def scripted_flink(answers: dict[str, Any]) -> Iterator[ScriptedFlink]:
    """Serve the answers on this machine while the block runs."""
    flink = ScriptedFlink(answers)

    def respond(handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        is_json = handler.headers.get("Content-Type") == "application/json"
        document = json.loads(body) if is_json else None
        status, answer = flink.answer(f"{handler.command} {handler.path}", document)
        content = json.dumps(answer).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    with http_server(respond) as flink.url:
        yield flink


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
