"""Servers on loopback that stand where a Flink should: one that answers, and some that do harm."""

import json
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any

JOB = "a" * 32
TASK_MANAGER: dict[str, Any] = {
    "id": "dev-0",
    "path": "pekko.tcp://flink@127.0.0.1:6122/user/rpc/taskmanager_0",
    "totalResource": {"managedMemory": 64, "extendedResources": {"dev-0": 10000.0}},
    "freeResource": {"managedMemory": 64, "extendedResources": {"dev-0": 10000.0}},
    "hardware": {"cpuCores": 2},
    "memoryConfiguration": {"totalProcessMemory": 704643072},
}
ANSWERS: dict[str, Any] = {
    "/taskmanagers": {"taskmanagers": [TASK_MANAGER]},
    "/jobs": {"jobs": [{"id": JOB, "status": "RUNNING"}]},
    f"/jobs/{JOB}": {
        "name": "shop",
        "state": "RUNNING",
        "schedulerType": "Default",
        "vertices": [
            {"id": "v0", "name": "Source: src", "parallelism": 1, "status": "RUNNING"},
            {"id": "v1", "name": "a -> (b, c)", "parallelism": 1, "status": "RUNNING"},
        ],
    },
    f"/jobs/{JOB}/plan": {
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
    f"/jobs/{JOB}/exceptions": {"exceptionHistory": {"entries": [{"stacktrace": "a.B: c"}]}},
    f"/jobs/{JOB}/vertices/v0": {"subtasks": [{"taskmanager-id": "dev-0"}]},
    f"/jobs/{JOB}/vertices/v1": {"subtasks": [{"taskmanager-id": "dev-0"}]},
    "/taskmanagers/dev-0/metrics": [{"id": "Status.JVM.CPU.Time", "value": "5000000"}],
    f"/jobs/{JOB}/vertices/v0/subtasks/metrics": [
        {"id": "Source__src.numRecordsOut", "sum": 5.0},
        {"id": "numRecordsOut", "sum": 5.0},
        {"id": "numBytesOut", "sum": 500.0},
        {"id": "accumulateBusyTimeMs", "sum": "NaN"},
    ],
    f"/jobs/{JOB}/vertices/v1/subtasks/metrics": [
        {"id": "numRecordsIn", "sum": 5.0},
        {"id": "numBytesIn", "sum": 500.0},
        {"id": "accumulateBusyTimeMs", "sum": 100},
    ],
    "/jobmanager/config": [{"key": "jobmanager.scheduler", "value": "default"}],
}
"""What a Flink with one job answers, by path; what it counts, it counts per look."""


@contextmanager
def server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Address of a server that treats every connection as told; gone after the block."""
    over = Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):  # it is closed at the end
                while not over.is_set():
                    connection, _ = listening.accept()
                    Thread(target=treat, args=(connection,), daemon=True).start()

        def treat(connection: socket.socket) -> None:
            with connection, suppress(OSError):  # the other end may have had enough
                connection.settimeout(10)
                answer(connection)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            over.set()
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def request(connection: socket.socket) -> bytes:
    """First lines of a request, up to the empty one."""
    head = b""
    while b"\r\n\r\n" not in head and (more := connection.recv(65536)):
        head += more
    return head


def plainly(status: str, content: bytes, *headers: str) -> bytes:
    """An answer as it should be."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + content


def saying(content: bytes) -> Callable[[socket.socket], None]:
    """Answer every request with these bytes."""

    def answer(connection: socket.socket) -> None:
        request(connection)
        connection.sendall(content)

    return answer


def without_end(head: bytes, more: bytes, every: float = 0.0) -> Callable[[socket.socket], None]:
    """Answer with a head, and then with more and more, until the other end has had enough."""
    over = Event()

    def answer(connection: socket.socket) -> None:
        request(connection)
        connection.sendall(head)
        while not over.wait(every):
            connection.sendall(more)

    return answer


def answering(
    answers: Mapping[str, Any], heads: list[bytes] | None = None
) -> Callable[[socket.socket], None]:
    """Answer with the document of a path, and keep the requests' heads."""
    looks: Counter[str] = Counter()

    def answer(connection: socket.socket) -> None:
        head = request(connection)
        if heads is not None:
            heads.append(head)
        path = head.split()[1].decode().partition("?")[0]
        looks[path] += 1
        if path in answers:
            document = grown(answers[path], looks[path])
            content = plainly("200 OK", json.dumps(document).encode())
        else:
            content = plainly("404 Not Found", b'{"errors": ["a.B: not found\\n\\tat x"]}')
        connection.sendall(content)

    return answer


def grown(document: Any, looks: int) -> Any:
    """Metrics after so many looks; other documents are as they were."""
    if not isinstance(document, list):
        return document
    return [
        row | {"sum": row["sum"] * looks}
        if isinstance(row, dict) and type(row.get("sum")) in (int, float)
        else row
        for row in document
    ]
