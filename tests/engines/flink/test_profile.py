"""Profiles of a job whose truth is known, with a cluster that answers as lazily as Flink does."""

import subprocess
import sys
from typing import Any

import pytest

from streamplace.engines.flink import profile as profiling
from streamplace.engines.flink import sampling
from streamplace.engines.flink.cpu import ThreadTime
from streamplace.engines.flink.profile import profile
from streamplace.engines.flink.rest import FlinkError

NAMES = {"v0": "Source: src", "v1": "split", "v2": "out: Writer"}
READ = {"v0": 0.0, "v1": 100.0, "v2": 250.0}
WRITTEN = {"v0": 100.0, "v1": 250.0, "v2": 0.0}
SIZE = {"v1": 400.0, "v2": 40.0}
CPU = {"v0": 0.01, "v1": 0.2, "v2": 0.05}
MIPS = 1000.0
START = 100.0


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = START

    def monotonic(self) -> float:
        """Seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


class LazyRest:
    """Answers with the counters of the fetch that the look before asked for."""

    def __init__(self, clock: Clock, blocked: float = 0.0) -> None:
        self._clock, self._blocked = clock, blocked
        self._fetched: dict[str, float] = {}

    def job(self, job: str) -> dict[str, Any]:
        """State and vertices."""
        rows = [{"id": v, "name": name, "parallelism": 2} for v, name in NAMES.items()]
        return {"name": "shop", "state": "RUNNING", "vertices": rows}

    def get(self, path: str) -> Any:
        """Plan and metrics."""
        if path.endswith("/plan"):
            inputs = {"v1": ("v0", "HASH"), "v2": ("v1", "FORWARD")}
            nodes: list[dict[str, Any]] = [{"id": v} for v in NAMES]
            for node in nodes[1:]:
                source, ship = inputs[node["id"]]
                node["inputs"] = [{"id": source, "ship_strategy": ship}]
            return {"plan": {"nodes": nodes}}
        vertex = path.split("/")[4]
        at, self._fetched[vertex] = self._fetched.get(vertex, 0.0), self._clock.now
        rates = {
            "numRecordsIn": READ[vertex],
            "numRecordsOut": WRITTEN[vertex],
            "numBytesIn": READ[vertex] * SIZE.get(vertex, 0.0),
            "accumulateBusyTimeMs": 1000 * CPU[vertex],
            "accumulateBackPressuredTimeMs": 1000 * self._blocked,
        }
        rows = [{"id": name, "sum": rate * at} for name, rate in rates.items()]
        return [*rows, {"id": "accumulateIdleTimeMs", "sum": "NaN"}]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The only time that the profiler sees."""
    made = Clock()
    monkeypatch.setattr(sampling, "time", made)
    return made


def threads(clock: Clock) -> dict[tuple[int, str, str], ThreadTime]:
    """Times of the tasks' threads, two subtasks each; the second look comes late."""
    clock.sleep(3.0 if clock.now > START else 1.0)
    return {
        (7, name, str(i)): ThreadTime(CPU[v] * clock.now / 2, clock.now)
        for v, name in NAMES.items()
        for i in (1, 2)
    }


def test_a_profile_is_the_truth(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates, selectivities, payloads, CPU per tuple, parallelism and partitioning."""
    monkeypatch.setattr(profiling, "thread_times", lambda: threads(clock))
    seen = profile(LazyRest(clock), "job", 10)  # type: ignore[arg-type]
    graph = seen.graph(MIPS)
    assert graph.operators.name == ("src", "split", "out")
    assert graph.operators.rate.tolist() == pytest.approx([100, 0, 0])
    assert graph.operators.payload.tolist() == pytest.approx([400, 40, 0])
    assert graph.operators.parallelism.tolist() == [2, 2, 2]
    assert graph.streams.selectivity.tolist() == pytest.approx([1, 2.5])
    assert graph.streams.partitioning == ("hash", "forward")
    per_tuple = [0.01 / 100, 0.2 / 100, 0.05 / 250]
    assert graph.operators.ipt.tolist() == pytest.approx([s * MIPS * 1e6 for s in per_tuple])
    assert seen.doubts == []
    assert "unmeasured" not in graph.attributes


@pytest.mark.parametrize(
    ("threads_of_split", "told"), [(1, "1 threads on this machine"), (4, "4 threads")]
)
def test_threads_that_cannot_be_the_tasks_are_not_taken_for_them(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, threads_of_split: int, told: str
) -> None:
    """A part of them is on other machines, or another job's tasks bear the same name."""
    scarce = threads_of_split == 1

    def seen_threads() -> dict[tuple[int, str, str], ThreadTime]:
        found = threads(clock)
        one, two = ((7, "split", i) for i in "12")
        doubled = {(8, *key[1:]): found[key] for key in (one, two)}
        return {key: t for key, t in found.items() if key != two} if scarce else found | doubled

    monkeypatch.setattr(profiling, "thread_times", seen_threads)
    seen = profile(LazyRest(clock), "job", 10)  # type: ignore[arg-type]
    assert seen.cpu["v1"] == pytest.approx(0.2)
    (doubt,) = seen.doubts
    assert doubt.startswith("ipt of split: from busy time")
    assert told in doubt


def test_operators_of_one_name_are_told(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flink calls operators Map that nobody has named, and no placement can tell them apart."""
    monkeypatch.setitem(NAMES, "v2", "split")
    monkeypatch.setattr(profiling, "thread_times", dict)
    seen = profile(LazyRest(clock), "job", 10)  # type: ignore[arg-type]
    assert seen.graph(MIPS).operators.name == ("src", "split", "split (2)")
    assert [doubt for doubt in seen.doubts if doubt.startswith("split (2): bears another")]


def test_python_processes_are_told(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they take is not in the CPU time of their TaskManager's threads."""
    monkeypatch.setattr(profiling, "thread_times", lambda: threads(clock))
    code = "import time; time.sleep(60)"
    command = [sys.executable, "-c", code, "pyflink.fn_execution.beam.beam_boot"]
    with subprocess.Popen(command) as worker:
        try:
            seen = profile(LazyRest(clock), "job", 10)  # type: ignore[arg-type]
        finally:
            worker.kill()
    assert [doubt for doubt in seen.doubts if "Python" in doubt]


def test_what_is_doubtful_is_told(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Back-pressured sources, and busy time where there are no threads to look at."""
    monkeypatch.setattr(profiling, "thread_times", dict)
    graph = profile(LazyRest(clock, blocked=1.5), "job", 10).graph(MIPS)  # type: ignore[arg-type]
    told = str(graph.attributes["unmeasured"])
    assert "rate of src: back-pressured 75 % of the time" in told
    assert "ipt of split: from busy time" in told
    assert graph.operators.ipt[1] == pytest.approx(0.2 / 100 * MIPS * 1e6)


def test_a_silent_source_is_refused(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph without rates would be no use."""
    monkeypatch.setattr(profiling, "thread_times", dict)
    monkeypatch.setitem(WRITTEN, "v0", 0.0)
    with pytest.raises(FlinkError, match="source 'src' sent nothing"):
        profile(LazyRest(clock), "job", 10).graph(MIPS)  # type: ignore[arg-type]
