"""Metrics of a watch for Prometheus, on this machine's loopback address."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from prometheus_client import CollectorRegistry, Metric, start_http_server
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from streamplace.errors import SettingError
from streamplace.io.watch_store import WatchRound

HOST = "127.0.0.1"
PREFIX = "streamplace_watch_"


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
            yield self._gauge("rate", "Tuples/s that the sources emit.", seen.rate)
            about = "Tuples/s that arrive for the sources, as far as known."
            yield self._gauge("arriving", about, seen.arriving)
            about = "Tuples that wait for the sources; 0 if unknown."
            yield self._gauge("backlog", about, seen.backlog)
            about = "1 while back-pressure holds a source back."
            yield self._gauge("held_back", about, float(seen.is_limited))
            about = "TaskManagers with subtasks of the job."
            yield self._gauge("taskmanagers", about, float(seen.machines))
            about = "Tuples/s that the layout carries, with the ends of the interval."
            capacity = GaugeMetricFamily(f"{PREFIX}capacity", about, labels=["job", "end"])
            ends = {"low": seen.low, "predicted": seen.value, "high": seen.high}
            for end, rate in ends.items():
                if rate is not None:
                    capacity.add_metric([self._name, end], rate)
            yield capacity
            about = "Time of the last round."
            yield self._gauge("last_round_timestamp_seconds", about, at)
        yield self._counter("rounds", "Rounds of this process.", rounds)
        about = "Jobs that this process has seen take the place of another."
        yield self._counter("started", about, started)

    def _gauge(self, name: str, about: str, value: float) -> Metric:
        family = GaugeMetricFamily(PREFIX + name, about, labels=["job"])
        family.add_metric([self._name], value)
        return family

    def _counter(self, name: str, about: str, value: int) -> Metric:
        family = CounterMetricFamily(PREFIX + name, about, labels=["job"])
        family.add_metric([self._name], value)
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
