"""Metrics of a watch for Prometheus, on this machine's loopback address."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from prometheus_client import CollectorRegistry, Metric, start_http_server
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from streamplace.errors import SettingError
from streamplace.io.watches import WatchRound

HOST = "127.0.0.1"
PREFIX = "streamplace_watch_"
GAUGES: dict[str, tuple[str, Callable[[WatchRound], float]]] = {
    "rate": ("Tuples/s that the sources emit.", lambda seen: seen.rate),
    "arriving": ("Tuples/s that arrive for the sources, as far as known.", lambda s: s.arriving),
    "backlog": ("Tuples that wait for the sources; 0 if unknown.", lambda seen: seen.backlog),
    "held_back": ("1 while a source is held back.", lambda seen: float(seen.is_limited)),
    "taskmanagers": ("TaskManagers with subtasks of the job.", lambda seen: float(seen.machines)),
}
CAPACITY = "Tuples/s that the layout carries, with the ends of the interval."
LAST = "Time of the last round."
STARTED = "Jobs that this process has seen take the place of another."


class WatchMetrics(Collector):
    """State after the last round, which Prometheus collects.

    Parameters
    ----------
    name
        Name of the job.
    clock
        Time of day in seconds.

    Examples
    --------
    >>> metrics = WatchMetrics("shop")
    >>> metrics.add(WatchRound("", 0.0, "a", 50.0, 50.0, False, 0.0, 2))
    >>> metrics.registry.get_sample_value("streamplace_watch_rate", {"job": "shop"})
    50.0
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.time) -> None:
        self._name, self._clock = name, clock
        self._lock = Lock()
        self._last: WatchRound | None = None
        self._rounds, self._started, self._at = 0, 0, 0.0
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def add(self, seen: WatchRound) -> None:
        """Take in a round."""
        with self._lock:
            self._started += self._last is not None and self._last.job != seen.job
            self._rounds, self._last, self._at = self._rounds + 1, seen, self._clock()

    def collect(self) -> Iterator[Metric]:
        """All metrics; before the first round, the counters alone."""
        with self._lock:
            seen, rounds, started, at = self._last, self._rounds, self._started, self._at
        if seen is not None:
            for name, (about, value_of) in GAUGES.items():
                yield self._of(GaugeMetricFamily, name, about, value_of(seen))
            yield self._of(GaugeMetricFamily, "last_round_timestamp_seconds", LAST, at)
            capacity = GaugeMetricFamily(f"{PREFIX}capacity", CAPACITY, labels=["job", "end"])
            ends = {"low": seen.low, "predicted": seen.value, "high": seen.high}
            for end, rate in ends.items():
                if rate is not None:
                    capacity.add_metric([self._name, end], rate)
            yield capacity
        yield self._of(CounterMetricFamily, "rounds", "Rounds of this process.", rounds)
        yield self._of(CounterMetricFamily, "started", STARTED, started)

    def _of(self, kind: Any, name: str, about: str, value: float) -> Metric:
        family: Metric = kind(PREFIX + name, about, labels=["job"])
        family.add_metric([self._name], value)  # type: ignore[attr-defined]
        return family


@contextmanager
def served(metrics: WatchMetrics, port: int) -> Iterator[int]:
    """Serve metrics under /metrics while the block runs; yields the port, which 0 leaves open.

    Raises SettingError when the port cannot be used.
    """
    try:
        server, thread = start_http_server(port, HOST, metrics.registry)
    except OSError as error:
        raise SettingError(f"port {port} cannot be used for metrics: {error}") from None
    # A traceback of a client that breaks off would stand among the rounds.
    server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
