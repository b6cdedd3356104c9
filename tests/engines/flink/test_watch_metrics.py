"""Metrics of a watch, as Prometheus reads them."""

import socket
import struct
import time
from dataclasses import replace
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from streamplace.engines.flink.watch.metrics import WatchMetrics, served
from streamplace.errors import SettingError
from streamplace.io.watch_store import WatchRound

ROUND = WatchRound("2026-05-04T10:00:00", 60.0, "a", 50.0, 55.0, True, 7.0, 2, 90.0, 100.0, 110.0)


def test_metrics_are_served_on_loopback_alone() -> None:
    """A job that took the place of another is counted; a name may contain anything."""
    metrics = WatchMetrics('a "b"\n\\', lambda: 1234.0)
    with served(metrics, 0) as port:
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert "streamplace_watch_rounds_total" in (first := answer.read().decode())
        assert "streamplace_watch_rate" not in first
        metrics.add(ROUND)
        metrics.add(replace(ROUND, job="b", is_limited=False))
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            lines = answer.read().decode().splitlines()
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"http://127.0.0.1:{port}/")
        with (
            pytest.raises(SettingError, match=f"port {port} cannot be used"),
            served(metrics, port),
        ):
            pass
    job = r'job="a \"b\"\n\\"'
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert values == {
        f"streamplace_watch_rate{{{job}}}": "50.0",
        f"streamplace_watch_arriving{{{job}}}": "55.0",
        f"streamplace_watch_backlog{{{job}}}": "7.0",
        f"streamplace_watch_held_back{{{job}}}": "0.0",
        f"streamplace_watch_taskmanagers{{{job}}}": "2.0",
        f'streamplace_watch_capacity{{{job},end="low"}}': "90.0",
        f'streamplace_watch_capacity{{{job},end="predicted"}}': "100.0",
        f'streamplace_watch_capacity{{{job},end="high"}}': "110.0",
        f"streamplace_watch_rounds_total{{{job}}}": "2.0",
        f"streamplace_watch_started_total{{{job}}}": "1.0",
        f"streamplace_watch_last_round_timestamp_seconds{{{job}}}": "1234.0",
    }
    assert sum(line.startswith("# TYPE") for line in lines) == 9


def test_a_client_that_breaks_off_is_not_told_of(capfd: pytest.CaptureFixture[str]) -> None:
    """On stderr are the rounds; and others are answered."""
    with served(WatchMetrics("shop"), 0) as port:
        client = socket.create_connection(("127.0.0.1", port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost:")
        client.close()  # with a reset
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert answer.status == 200
        time.sleep(0.2)
    assert capfd.readouterr().err == ""
