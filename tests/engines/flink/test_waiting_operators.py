"""Operators whose subtasks are limited by waiting and not by CPU."""

import os
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from lazy_flink import (
    CPU,
    MIPS,
    START,
    Clock,
    LazyFlink,
    Vertex,
    advised,
    made_threads,
    rates,
    shop_maker,
    with_threads,
    writing_shop,
)

from streamplace.engines.flink.cpu import threads as cpus
from streamplace.engines.flink.cpu.threads import JavaThread, spent_between, threads_again
from streamplace.engines.flink.measure import cluster as clusters
from streamplace.engines.flink.measure import profile as profiling
from streamplace.engines.flink.measure.graph import measured_graph
from streamplace.engines.flink.measure.profile import JobProfile, profile
from streamplace.model.graph import CONSISTENCY_ERROR

Looked = Callable[..., JobProfile]
"""Profiles the shop, from the seconds per second of its splitter and of other threads."""
Read = Callable[..., None]
"""Sets the seconds per second of the threads of a job: of its splitter, and for garbage."""


def shop(clock: Clock, busy: float) -> LazyFlink:
    """The shop, whose splitter reads 100 tuples/s with two subtasks, which are that busy."""
    flink = writing_shop(clock)
    split = flink.vertices["v1"]
    split.rates = {**split.rates, "accumulateBusyTimeMs": 1000 * busy}
    return flink


@pytest.fixture
def read(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Lets the threads of a job be read, in one process of this machine."""

    def tell(
        flink: LazyFlink, cpu: float = CPU["v1"], delay: float = 0.0, garbage: float = 0.0
    ) -> None:
        def seen(process: int) -> list[JavaThread]:
            clock.sleep(3.0 if clock.now > START else 1.0)
            own = {**dict.fromkeys(flink.vertices, 0.01), **CPU, "v1": cpu}
            delays = {**dict.fromkeys(flink.vertices, 0.0), "v1": delay}
            part = garbage / 2 * clock.now
            collector = JavaThread(0, "VM Thread", part, clock.now, delay=part)
            return [*made_threads(flink.vertices, own, clock.now, delays), collector]

        monkeypatch.setattr(cpus, "java_threads", seen)

    with_threads(monkeypatch, lambda process: [], {"dev-0": 7})
    return tell


@pytest.fixture
def looked(clock: Clock, read: Read) -> Looked:
    """Profiles the shop, whose threads can be read."""

    def look(*, busy: float, flink: LazyFlink | None = None, **times: float) -> JobProfile:
        job = flink or shop(clock, busy)
        read(job, **times)
        return profile(job.rest, "job", 10)

    return look


def limits(seen: JobProfile) -> list[float]:
    """Limits of the subtasks of all operators of a profile; 0 for none."""
    return measured_graph(seen, MIPS).operators.max_rate.tolist()


def notes(seen: JobProfile) -> list[str]:
    """What a profile tells about limits of subtasks."""
    measured_graph(seen, MIPS)
    return [doubt for doubt in seen.doubts if doubt.startswith("max_rate of ")]


@pytest.mark.parametrize(
    ("cpu", "busy", "delay", "garbage", "limit", "part"),
    [
        # two subtasks are busy for 0.8 s/s with 100 tuples/s
        (0.1, 0.8, 0.0, 0.0, 125, 88),
        # each is stopped while the only collector runs, or waits for a core
        (0.1, 0.8, 0.0, 0.3, 0, None),
        # waiting for a core is not waiting for something else, nor a part of what a tuple takes
        (0.2, 2.0, 1.7, 0.0, 0, None),
        (0.2, 2.0, 1.0, 0.0, 100, 40),
        # what limits is most of the busy time
        (0.45, 1.0, 0.0, 0.0, 100, 55),
        (0.55, 1.0, 0.0, 0.0, 0, None),
        (0.01, 0.2, 0.0, 0.0, 0, None),  # locks, or counters that are read late
    ],
)
def test_an_operator_that_waits_has_the_rate_of_a_subtask_that_is_always_busy(
    looked: Looked,
    cpu: float,
    busy: float,
    delay: float,
    garbage: float,
    limit: float,
    part: int | None,
) -> None:
    seen = looked(busy=busy, cpu=cpu, delay=delay, garbage=garbage)
    assert limits(seen) == [0, limit, 0]
    told = (
        f"max_rate of split: it waits {part} % of its busy time for something other than CPU: a "
        f"subtask reads at most {limit} tuples/s"
    )
    assert notes(seen) == ([] if part is None else [told])


def test_sources_and_what_works_per_checkpoint_have_no_limit(looked: Looked, clock: Clock) -> None:
    """Some sources are busy while they wait for input, or for what limits their rate.

    A committer reads a message per second, and waits for what it commits to.
    """
    flink = shop(clock, 0.2)
    source, sink = flink.vertices["v0"], flink.vertices["v2"]
    source.rates = {**source.rates, "accumulateBusyTimeMs": 2000.0}
    sink.rates = {**sink.rates, "numRecordsOut": 250.0, "numBytesOut": 150.0}
    reads = rates(0.5, 0, 0.5 * 300, 0, busy=1.5)
    flink.vertices["v3"] = Vertex("out: Committer", reads, [("v2", "FORWARD")])
    assert not any(limits(looked(busy=0.2, flink=flink)))


def test_operators_that_wait_for_python_have_no_limit(
    looked: Looked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they wait for is CPU, of other processes."""
    monkeypatch.setattr(profiling, "runs_python", lambda: True)
    seen = looked(busy=2.0, cpu=0.1)
    assert not any(limits(seen))
    assert notes(seen) == []


def test_a_thread_that_could_always_run_has_waited_for_a_core_when_it_did_not() -> None:
    """Two processes that never sleep share a core."""
    core = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, [{core}]); os.write(1, b'up')\nwhile True: pass"
    command = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, stdout=pipe) as one,
        subprocess.Popen(command, stdout=pipe) as other,
    ):
        try:
            for process in (one, other):
                assert process.stdout is not None
                assert process.stdout.read(2) == b"up"
            first = threads_again(one.pid, {one.pid: "spins"})
            time.sleep(1.0)
            (load,) = spent_between(first, threads_again(one.pid, {one.pid: "spins"}))
        finally:
            one.kill()
            other.kill()
    assert load.delay > 0.2
    assert load.cores + load.delay == pytest.approx(1.0, abs=0.1)
    assert load.wakes < 5


def test_a_profile_predicts_what_an_operator_that_waits_holds_the_job_to(
    looked: Looked, clock: Clock
) -> None:
    """A subtask reads 50 tuples/s while it is busy all the time; CPU would carry far more."""
    flink = shop(clock, 2.0)
    source = flink.vertices["v0"]
    source.rates = {**source.rates, "accumulateBackPressuredTimeMs": 1500.0}
    graph = measured_graph(looked(busy=2.0, cpu=0.1, flink=flink), MIPS)
    assert graph.attributes[CONSISTENCY_ERROR] == pytest.approx(0.0, abs=0.05)


def test_advice_on_a_job_that_waits_adds_subtasks_and_no_cpu(
    clock: Clock, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job carries half of the rate because two subtasks wait; the model agrees with that."""
    monkeypatch.setattr(clusters, "processes_of", lambda rest: {})
    flink = shop_maker(clock)(blocked=1.5, devices=("dev-0",), process_cpu={"dev-0": 0.26})
    split = flink.vertices["v1"]
    split.rates = {**split.rates, "accumulateBusyTimeMs": 2000.0}
    read(flink, cpu=0.1)
    advice = advised(flink, "200")
    assert advice.plan.graph.operators["split"].parallelism >= 4
    assert any(note.startswith("max_rate of split: it waits 95 %") for note in advice.notes)
    assert not any("all costs count" in note for note in advice.notes)
