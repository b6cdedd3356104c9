"""A fake of Flink's REST interface with the answers of a test, which records all requests.

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
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler
from typing import Any, Self

from http_servers import as_it_is, http_server

from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.transport import JSON, HttpAnswer, Request


class InTurn:
    """Answers that are given one after the other; the last one stays."""

    def __init__(self, *answers: Any) -> None:
        self.left = [*answers]

    def next(self) -> Any:
        """Answer whose turn it is."""
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes that take the place of an answer, whatever they mean; none break the connection off.

    Attributes
    ----------
    more
        What follows again and again, until the other end has had enough.
    every
        Seconds between two of these.
    """

    content: bytes
    more: bytes = b""
    every: float = 0.0

    def send(self, connection: socket.socket) -> socket.socket:
        """Send them."""
        connection.sendall(self.content)
        while self.more:
            time.sleep(self.every)
            connection.sendall(self.more)
        return connection


def said(content: bytes, status: int = 200, location: str | None = None) -> HttpAnswer:
    """An answer that is no document."""
    return HttpAnswer(status, content, location)


def failure(*errors: str, status: int = 400) -> HttpAnswer:
    """An error that Flink answers."""
    return said(json.dumps({"errors": errors}).encode(), status)


NOT_FOUND = failure("a.B: not found\n\tat x", status=404)


class FakeFlink:
    """A JobManager's REST interface: over loopback while it is served, or within this process.

    Where nobody listens any more, after the block in which it is served, connections are refused.

    Parameters
    ----------
    answers
        Method and path, as in ``"GET /jobs"``, → a document, an `HttpAnswer` (see `failure`),
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
        return _RestWithin(self)

    def _respond(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        document = json.loads(body) if handler.headers["Content-Type"] == JSON else None
        self.headers.append(handler.headers)
        answer = self.answer(f"{handler.command} {handler.path}", document)
        if isinstance(answer, Raw):
            handler.close_connection = True
            answer.send(handler.connection)
            return
        status, content, location = _spoken(answer)
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(status)
        handler.send_header("Connection", "close")
        handler.send_header("Content-Length", str(len(content)))
        if location is not None:
            handler.send_header("Location", location)
        handler.end_headers()
        handler.wfile.write(content)


class _RestWithin(Rest):
    """A client that asks a fake Flink of this process."""

    def __init__(self, flink: FakeFlink) -> None:
        super().__init__("http://flink:8081")
        self._flink = flink

    def _exchange(self, request: Request) -> HttpAnswer:
        document = None if request.document is None else json.loads(request.document)
        return _spoken(self._flink.answer(f"{request.method} {request.path}", document))


def _spoken(answer: Any) -> HttpAnswer:
    if isinstance(answer, HttpAnswer):
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
