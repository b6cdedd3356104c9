"""A proxy before Flink's REST interface that loses, delays and cuts what it is told to."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

from http_servers import http_server

DELAY_SECONDS = 1.0
Fault = Callable[[], None]
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

    def __init__(self, url: str) -> None:
        self.target = urlsplit(url)
        self.requests: list[str] = []
        self.at: int | str | Meant = -1
        self.fault = ""
        self.before: Fault = lambda: None
        self.after: Fault = lambda: None
        self.silent_until = 0.0
        self.url = ""
        self._lock = threading.Lock()

    def disturb(self, at: int | str | Meant, fault: str) -> None:
        """Disturb one of the requests that come from now on."""
        with self._lock:
            self.requests = []
            self.at, self.fault, self.silent_until = at, fault, 0.0
            self.before = self.after = lambda: None

    def treat(self, handler: BaseHTTPRequestHandler) -> None:
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
                self.silent_until = time.monotonic() + 6
            if self.fault in ("lost", "gone"):
                return
            time.sleep(DELAY_SECONDS if self.fault == "delayed" else 0)
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    def _passed(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, str, bytes]:
        connection = HTTPConnection(self.target.hostname or "", self.target.port, timeout=60)
        try:
            headers = {"Content-Type": handler.headers.get("Content-Type", "application/json")}
            connection.request(handler.command, handler.path, body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers.get("Content-Type", ""), answer.read()
        finally:
            connection.close()


@contextmanager
def faulty_proxy(url: str) -> Iterator[FaultyProxy]:
    """Serve a proxy on this machine while the block runs."""
    proxy = FaultyProxy(url)

    def respond(handler: BaseHTTPRequestHandler) -> None:
        with suppress(OSError, HTTPException):
            proxy.treat(handler)
        handler.close_connection = True

    with http_server(respond) as proxy.url:
        yield proxy
