"""Metrics of a watch for Prometheus, on this machine's loopback address."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

from streamplace.errors import SettingError
from streamplace.io.watch_store import WatchRound

HOST = "127.0.0.1"
CONTENT = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "streamplace_watch_"
REQUEST_SECONDS = 10.0
"""Time limit for a client that connects and asks nothing."""
_KINDS: Mapping[str, tuple[str, str]] = {
    "rate": ("gauge", "Tuples/s that the sources emit."),
    "arriving": ("gauge", "Tuples/s that arrive for the sources, as far as known."),
    "backlog": ("gauge", "Tuples that wait for the sources; 0 if unknown."),
    "held_back": ("gauge", "1 while back-pressure holds a source back."),
    "taskmanagers": ("gauge", "TaskManagers with subtasks of the job."),
    "capacity": ("gauge", "Tuples/s that the layout carries, with the ends of the interval."),
    "rounds_total": ("counter", "Rounds of this process."),
    "started_total": ("counter", "Jobs that this process has seen take the place of another."),
    "last_round_timestamp_seconds": ("gauge", "Time of the last round."),
}


class WatchMetrics:
    r"""State after the last round as the text that Prometheus reads.

    Parameters
    ----------
    name
        Name of the job.
    clock
        Time of day in seconds.

    Examples
    --------
    >>> metrics = WatchMetrics('the "shop"', lambda: 60.0)
    >>> metrics.add(WatchRound("", 0.0, "a", 50.0, 50.0, False, 0.0, 2))
    >>> print(metrics.text().splitlines()[2])
    streamplace_watch_rate{job="the \"shop\""} 50.0
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.time) -> None:
        self._name, self._clock = name, clock
        self._lock = Lock()
        self._last: WatchRound | None = None
        self._rounds, self._started, self._at = 0, 0, 0.0

    def add(self, seen: WatchRound) -> None:
        """Take in a round."""
        with self._lock:
            self._started += self._last is not None and self._last.job != seen.job
            self._rounds, self._last, self._at = self._rounds + 1, seen, self._clock()

    def text(self) -> str:
        """All metrics; before the first round, the counters alone."""
        with self._lock:
            rows = [*self._rows()]
        lines: list[str] = []
        for name, (kind, about) in _KINDS.items():
            own = [(labels, value) for one, labels, value in rows if one == name]
            if own:
                lines += [f"# HELP {PREFIX}{name} {about}", f"# TYPE {PREFIX}{name} {kind}"]
            lines += [f"{PREFIX}{name}{{{self._labels(labels)}}} {value}" for labels, value in own]
        return "\n".join(lines) + "\n"

    def _rows(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        yield "rounds_total", {}, float(self._rounds)
        yield "started_total", {}, float(self._started)
        seen = self._last
        if seen is None:
            return
        yield "rate", {}, seen.rate
        yield "arriving", {}, seen.arriving
        yield "backlog", {}, seen.backlog
        yield "held_back", {}, float(seen.is_limited)
        yield "taskmanagers", {}, float(seen.machines)
        yield "last_round_timestamp_seconds", {}, self._at
        for end, rate in (("low", seen.low), ("predicted", seen.value), ("high", seen.high)):
            if rate is not None:
                yield "capacity", {"end": end}, rate

    def _labels(self, more: Mapping[str, str]) -> str:
        pairs = {"job": self._name, **more}.items()
        return ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs)


@contextmanager
def served(metrics: WatchMetrics, port: int) -> Iterator[int]:
    """Serve metrics under /metrics while the block runs; yields the port, which 0 leaves open.

    Raises SettingError when the port cannot be used.
    """

    class Handler(BaseHTTPRequestHandler):
        timeout = REQUEST_SECONDS

        def do_GET(self) -> None:
            found = self.path.partition("?")[0] == "/metrics"
            content = (metrics.text() if found else "see /metrics\n").encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", CONTENT)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: stderr has the rounds."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Say nothing of clients that break off."""

    try:
        server = Server((HOST, port), Handler)
    except OSError as error:
        raise SettingError(f"port {port} cannot be used for metrics: {error}") from None
    with server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def _escaped(text: str) -> str:
    """Value of a label in the format of Prometheus."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
