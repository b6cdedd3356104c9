"""Metrics of a watch for Prometheus, on this machine's loopback address."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    disable_created_metrics,
    start_http_server,
)

from streamplace.errors import SettingError
from streamplace.flink.watches import WatchRound

HOST = "127.0.0.1"
PREFIX = "streamplace_watch_"
GAUGES: Mapping[str, tuple[str, Callable[[WatchRound], float]]] = {
    "rate": ("Tuples/s that the sources emit.", lambda facts: facts.rate),
    "arriving": ("Tuples/s that arrive for the sources, as far as known.", lambda f: f.arriving),
    "backlog": ("Tuples that wait for the sources; 0 if unknown.", lambda facts: facts.backlog),
    "held_back": ("1 while a source is held back.", lambda f: float(f.is_limited)),
    "taskmanagers": ("TaskManagers with subtasks of the job.", lambda f: float(f.machines)),
    "last_round_timestamp_seconds": ("Time of the last round.", lambda _: time.time()),
}
CAPACITY = "Tuples/s that the layout carries, with the ends of the interval."
STARTED = "Jobs that replaced another one while this process has watched."


class WatchMetrics:
    """State of a job after the last round of its watch, and counters.

    Examples
    --------
    >>> metrics = WatchMetrics("shop")
    >>> metrics.add(WatchRound("", 0.0, "a", 50.0, 50.0, False, 0.0, 2))
    >>> metrics.registry.get_sample_value("streamplace_watch_rate", {"job": "shop"})
    50.0
    """

    def __init__(self, name: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        self._name, self._job = name, ""
        self._gauges = {
            key: Gauge(PREFIX + key, about, ["job"], registry=registry)
            for key, (about, _) in GAUGES.items()
        }
        self._capacity = Gauge(f"{PREFIX}capacity", CAPACITY, ["job", "end"], registry=registry)
        rounds = Counter(f"{PREFIX}rounds", "Rounds of this process.", ["job"], registry=registry)
        started = Counter(f"{PREFIX}started", STARTED, ["job"], registry=registry)
        self._rounds, self._started = rounds.labels(name), started.labels(name)

    def add(self, facts: WatchRound) -> None:
        """Take in a round."""
        self._rounds.inc()
        self._started.inc(self._job not in ("", facts.job))
        self._job = facts.job
        for key, (_, value_of) in GAUGES.items():
            self._gauges[key].labels(self._name).set(value_of(facts))
        self._capacity.clear()
        for end, rate in zip(("low", "predicted", "high"), facts.carries or (), strict=False):
            self._capacity.labels(self._name, end).set(rate)


@contextmanager
def served(metrics: WatchMetrics, port: int) -> Iterator[int]:
    """Serve metrics under /metrics while the block runs; yield the port, a free one for 0.

    Raises SettingError when the port cannot be used.
    """
    try:
        server, thread = start_http_server(port, HOST, metrics.registry)
    except OSError as error:
        raise SettingError(
            f"port {port} cannot be used for metrics: {error}; give another --metrics port"
        ) from None
    # Otherwise a disconnected client would print a traceback between the rounds.
    server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
