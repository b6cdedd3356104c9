"""``flink watch`` as a command: looking, its end, metrics, and refusals."""

import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from fake_flink import FakeFlink, InTurn, healthy, job, jobs
from watched_jobs import OLD

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.move.savepoints import CheckpointTotals
from streamplace.engines.flink.rest.client import successor
from streamplace.engines.flink.watch import log, modelling, rounds
from streamplace.engines.flink.watch import watch as watching
from streamplace.engines.flink.watch.deciding import LayoutOption
from streamplace.engines.flink.watch.metrics import WatchMetrics, served
from streamplace.engines.flink.watch.modelling import JobModel
from streamplace.engines.flink.watch.rounds import JobLook
from streamplace.io.store import Store
from streamplace.io.watches import (
    MOVED,
    WatchDecision,
    WatchRound,
    read_records,
    utc_now,
)
from streamplace.model.intervals import RateInterval

HERE = LayoutOption(Layout({"map": ["dev-0", "dev-0"]}), RateInterval(90.0, 100.0, 110.0))
MORE = LayoutOption(Layout({"map": ["dev-0", "dev-1"]}), RateInterval(180.0, 200.0, 220.0), moves=1)
MODEL = JobModel(HERE, (MORE,), (1, 2), "the CPU of dev-0")
RUNNING, ENDED = job("shop", "RUNNING", {"map": "RUNNING"}), job("shop", "CANCELED", {})


@pytest.fixture
def flink(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeFlink]:
    """A job on one of two TaskManagers that is held back there, and is cancelled then."""
    counts, managers = CheckpointTotals(1, 0), frozenset(["dev-0", "dev-1"])
    look = JobLook(OLD, 104.0, True, None, HERE.layout, counts, managers)
    monkeypatch.setattr(rounds, "look_at", lambda *_: look)
    monkeypatch.setattr(modelling.JobModeller, "__call__", lambda *_: MODEL)
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.01)
    answers: dict[str, Any] = healthy("dev-0", "dev-1") | {
        f"GET /jobs/{OLD}": InTurn(*[RUNNING] * 4, ENDED),
        f"GET /jobs/{OLD}/vertices/map": {"subtasks": [{"taskmanager-id": "dev-0"}]},
        "GET /jobs": jobs({OLD: "RUNNING"}),
    }
    with FakeFlink(answers).served() as answering:
        yield answering


def test_a_watch_without_options_looks_and_changes_nothing(run: Callable, flink: FakeFlink) -> None:
    """It needs neither the jar nor a Flink on this machine."""
    answer = run("flink", "watch", "--rest", flink.url, "--policy", "ds2")
    assert (answer.status, answer.out) == (0, ""), answer.err
    first, second, last = answer.err.splitlines()
    state = "104 tuples/s on 1 TaskManager, held back"
    assert first.endswith(f"  {state}; it is measured, and the next round comes afterwards")
    assert f"  {state}; it carries 104 tuples/s (measured); a move would pay: it falls" in second
    assert second.endswith("at 124.8 tuples/s; dev-0, dev-1 should carry 200 tuples/s (180 to 220)")
    assert last == f"job {OLD} is CANCELED"
    assert {request.partition(" ")[0] for request, _ in flink.asked} == {"GET"}
    (record,) = read_records(Store.usual())
    assert (record.name, record.job, len(record.rounds)) == ("shop", OLD, 1)
    assert record.rounds[0].capacity == pytest.approx((0.97 * 104.0, 180.0))
    assert record.decisions == ()


def test_options_that_cannot_be_meant_are_refused_before_anything_is_looked_at(
    refusal: Callable, flink: FakeFlink
) -> None:
    """By the name of the option."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for options, told in {
            ("--apply", "--not-between", "8-18"): "--not-between is '8-18'; it must be two times",
            ("--apply", "--not-between", "08:00Z-18:00Z"): "two times of this machine's clock",
            ("--policy", "magic"): "magic",
            ("--metrics", str(port)): f"port {port} cannot be used for metrics",
            ("--apply",): "name its jar and arguments",
        }.items():
            assert told in refusal("flink", "watch", "--rest", flink.url, *options), options
    assert read_records(Store.usual()) == [] or not read_records(Store.usual())[0].rounds


def test_a_watch_of_a_job_that_the_adaptive_scheduler_runs_is_refused(
    refusal: Callable, flink: FakeFlink
) -> None:
    """Also if it only looks: no plan could ever be carried out."""
    flink.answers[f"GET /jobs/{OLD}"] = RUNNING | {"schedulerType": "Adaptive"}
    for options in ((), ("--apply",), ("--spare", "dev-1")):
        told = refusal("flink", "watch", "--rest", flink.url, *options)
        assert f"job {OLD} cannot be watched: the scheduler is Adaptive, which ignores" in told
        assert "or leave its parallelism to Flink's autoscaler" in told


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_watch_ends_in_order_however_it_is_asked_to(
    run: Callable, flink: FakeFlink, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    """As by systemd or 'docker stop', so that a move that is under way is undone first."""

    def ignored(*_: Any) -> None:
        raise AssertionError("the signal interrupts nothing")

    def asked(*_: Any) -> None:
        os.kill(os.getpid(), how)
        time.sleep(5)

    before = signal.signal(how, ignored)
    try:
        monkeypatch.setattr(watching.Watch, "run", asked)
        answer = run("flink", "watch", "--rest", flink.url)
        assert signal.getsignal(how) is ignored
    finally:
        signal.signal(how, before)
    assert (answer.status, answer.out) == (0, ""), answer.err
    assert answer.err == "stopped watching; the job keeps running\n"


@pytest.mark.parametrize("state", ["RUNNING", "RESTARTING"])
def test_a_job_that_the_watch_has_moved_is_not_where_the_given_placement_says(
    run: Callable, flink: FakeFlink, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: str
) -> None:
    """The same command is given again after the watch was killed."""
    seen: list[Any] = []
    monkeypatch.setattr(watching.Watch, "run", lambda _, *placed: seen.append(placed))
    new, layout = successor(OLD), {"map": ["dev-0"]}
    own = log.WatchLog.claimed(Store.usual(), OLD, "shop", print)
    decision = WatchDecision(utc_now(), "move", OLD, new, {**layout}, (1, 1), "")
    own.end(own.begin(decision), MOVED, "", new)
    flink.answers |= {
        f"GET /jobs/{OLD}": job("shop", "FINISHED", {}),
        f"GET /jobs/{new}": job("shop", state, {"map": "RUNNING"}),
        f"GET /jobs/{new}/vertices/map": {"subtasks": [{"taskmanager-id": "dev-0"}]},
        "GET /jobs": jobs({OLD: "FINISHED", new: state}),
    }
    (tmp_path / "p.json").write_text('{"assignment": {"map": "dev-1"}}')
    for given in (("--job", OLD), ()):
        answer = run("flink", "watch", "--rest", flink.url, "--placement", "p.json", *given)
        assert answer.status == 0, answer.err
    assert seen == [(new, Layout(layout))] * 2


ROUND = WatchRound("2026-05-04T10:00:00", 60.0, "a", 50.0, 55.0, True, 7.0, 2, 90.0, 100.0, 110.0)


def test_metrics_are_served_on_loopback_alone() -> None:
    """A job that took the place of another is counted; a name may contain anything."""
    metrics = WatchMetrics('a "b"\n\\')
    with served(metrics, 0) as port:
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert "streamplace_watch_rounds_total" in (first := answer.read().decode())
        assert "streamplace_watch_rate{" not in first
        metrics.add(ROUND)
        metrics.add(replace(ROUND, job="b", is_limited=False))
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=")
            lines = answer.read().decode().splitlines()
    job = r'job="a \"b\"\n\\"'
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(values.pop(f"streamplace_watch_last_round_timestamp_seconds{{{job}}}")) > 1e9
    assert values == {
        f"streamplace_watch_rate{{{job}}}": "50.0",
        f"streamplace_watch_arriving{{{job}}}": "55.0",
        f"streamplace_watch_backlog{{{job}}}": "7.0",
        f"streamplace_watch_held_back{{{job}}}": "0.0",
        f"streamplace_watch_taskmanagers{{{job}}}": "2.0",
        f'streamplace_watch_capacity{{end="low",{job}}}': "90.0",
        f'streamplace_watch_capacity{{end="predicted",{job}}}': "100.0",
        f'streamplace_watch_capacity{{end="high",{job}}}': "110.0",
        f"streamplace_watch_rounds_total{{{job}}}": "2.0",
        f"streamplace_watch_started_total{{{job}}}": "1.0",
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
