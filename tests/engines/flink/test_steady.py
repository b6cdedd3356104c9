"""Profiles wait until a job is steady, and say how much may still change of one that is not."""

import json
import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lazy_flink import (
    MIPS,
    START,
    Clock,
    LazyFlink,
    Shop,
    Vertex,
    advised,
    rates,
    with_threads,
)
from streamsim import first_use

from streamplace.engines.flink.cpu import limits
from streamplace.engines.flink.cpu.limits import CpuPool, CpuShare
from streamplace.engines.flink.cpu.threads import JavaThread
from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.measure.graph import measured_graph
from streamplace.engines.flink.measure.profile import (
    LEAST_WINDOWS,
    LoadWindow,
    Present,
    Usage,
    profile,
    steady_profile,
    why_unsteady,
    window_of,
)
from streamplace.io.ledger import errors_for, known_errors
from streamplace.model.graph import PROFILE_DRIFT

RATE, COLD, WARM = 3400.0, 52_500.0, 12_800.0
"""Tuples/s of a taxi job, and instructions per tuple of its source, measured cold and warm."""
RECORDED = json.loads((Path(__file__).parent / "recorded_windows.json").read_text())
"""Windows of jobs that were started under a quota, as they were measured."""
STEP = 0.25


class Warming:
    """A job whose source becomes cheaper by a half of what is left every 20 s."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.half_life = clock, 20.0
        self.compilers = 0.58  # their part of the CPU at first; it falls with the source's cost
        self.seen, self.spent, self.compiled = clock.now, 0.0, 0.0
        out = {"Source__trips.numRecordsOut": RATE}
        vertices = {
            "v0": Vertex("Source: trips", rates(0, RATE, 0, RATE * 90, busy=0.2) | out, (), 1),
            "v1": Vertex(
                "sink", rates(RATE, 0, RATE * 90, 0, busy=0.002), [("v0", "REBALANCE")], 1
            ),
        }
        self.flink = LazyFlink(clock, vertices)

    def threads(self, _: int) -> list[JavaThread]:
        """Threads of the only TaskManager, with what they have taken so far."""
        while self.seen < self.clock.now:
            left = 0.5 ** ((self.seen - START) / self.half_life)
            cores = RATE * (WARM + (COLD - WARM) * left) / 1e9
            part = self.compilers * left
            self.spent += STEP * cores
            self.compiled += STEP * cores * part / (1 - part)
            self.seen += STEP
        taken = {
            "Source: trips (1/1)#0": self.spent,
            "sink (1/1)#0": 0.002 * self.seen,
            "C2 CompilerThread0": self.compiled,
        }
        return [JavaThread(i, name, cpu, self.seen) for i, (name, cpu) in enumerate(taken.items())]


@pytest.fixture
def warming(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Warming:
    """A job that has just started."""
    made = Warming(clock)
    with_threads(monkeypatch, made.threads, {"dev-0": 7})
    monkeypatch.setattr(limits, "cpu_pool", lambda process: CpuPool("own", 0.15))
    return made


def test_a_cold_job_is_waited_for(warming: Warming, caplog: pytest.LogCaptureFixture) -> None:
    """The source's cost is that of the warm job, not four times as much; the log says why."""
    caplog.set_level(logging.DEBUG)
    seen = steady_profile(warming.flink.rest, "job", 5.0, 300.0)
    assert 1e9 * seen.cpu["v0"].cores / RATE == pytest.approx(WARM, rel=0.15)
    assert "compilers take" in caplog.text
    assert "its CPU per tuple changed by -" in caplog.text
    assert not any("not steady" in doubt for doubt in seen.doubts)
    assert seen.drift == 0


def test_what_still_changes_is_part_of_the_profile(warming: Warming) -> None:
    """The patience is over while the source still becomes cheaper: its rates are less certain."""
    warming.half_life, warming.compilers = 40.0, 0.1
    seen = steady_profile(warming.flink.rest, "job", 10.0, 40.0)
    assert 0.1 < seen.drift < 1
    graph = measured_graph(seen, MIPS)
    assert graph.attributes[PROFILE_DRIFT] == pytest.approx(seen.drift, rel=0.01)
    assert any("intervals allow for that" in doubt for doubt in seen.doubts)
    errors, least = errors_for(graph), known_errors()
    assert errors is not None
    assert errors.low * (1 + seen.drift) == pytest.approx(least.low, rel=0.01)


def test_no_patience_is_one_window(warming: Warming) -> None:
    """For those who know what they do."""
    began = warming.clock.now
    steady_profile(warming.flink.rest, "job", 10.0, 0.0)
    assert warming.clock.now - began < 12


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: row["job"])
def test_recorded_jobs_are_steady_only_once_they_cost_what_they_cost_in_the_end(row: Any) -> None:
    """RIoT on quotas of 0.18 core: its source takes 50 µs per tuple at first, and 8 at the end.

    For a minute its cost hardly falls, while compilers take most of the CPU.
    """
    sent, taken = ([one[fact][0] for one in row["windows"]] for fact in ("tuples", "cores"))
    seen = [
        LoadWindow(one["seconds"], rate, sum(one["cores"]), one["compilers"] or 0.0)
        for one, rate in zip(row["windows"], sent, strict=True)
    ]
    costs = [cores / rate for cores, rate in zip(taken, sent, strict=True)]
    for last in range(LEAST_WINDOWS, len(seen) + 1):
        if not why_unsteady(seen[last - LEAST_WINDOWS : last]):
            assert costs[last - 1] < 1.3 * np.median(costs[-6:])


def test_rates_are_those_of_all_windows_in_which_the_job_was_warm(warming: Warming) -> None:
    """A window operator that emits every 8 s, which one window of ten sees once or twice."""
    emitted = dict(warming.flink.vertices["v1"].rates)
    emitted["numRecordsOut"] = lambda now: 0.1 * RATE * 8 * math.floor(now / 8)
    warming.flink.vertices["v1"].rates = emitted
    warming.flink.vertices["v2"] = Vertex(
        "out", emitted | {"numRecordsIn": emitted["numRecordsOut"]}, [("v1", "HASH")], 1
    )
    warming.compilers, warming.half_life = 0.0, 1e-3
    seen = steady_profile(warming.flink.rest, "job", 10.0)
    assert len(seen.windows) == LEAST_WINDOWS
    assert 1e9 * seen.cpu["v0"].cores / RATE == pytest.approx(WARM, rel=0.05)
    assert seen.activity["v0"].seconds >= LEAST_WINDOWS * 9.5
    assert measured_graph(seen, MIPS).streams.selectivity[1] == pytest.approx(0.1, rel=0.1)


def test_compilers_of_an_idle_machine_are_not_waited_for(warming: Warming) -> None:
    """A hundredth of a core is much of what a small job takes, and says nothing of it."""
    seen = profile(warming.flink.rest, "job", 5)
    for tasks, compilers, part in ((0.05, 0.015, 0.0), (0.05, 0.03, 0.375), (0.9, 0.03, 0.032)):
        usage = {"dev-0": Usage(CpuShare(1.0), {"tasks": tasks, "compilers": compilers})}
        object.__setattr__(seen, "present", Present({}, usage, 0.0))
        assert window_of(seen).compilers == pytest.approx(part, abs=0.001)


@pytest.mark.parametrize(
    "measure", [lambda flink: FlinkEngine(flink.rest).measure("job", 10.0), advised]
)
def test_kernels_are_compiled_before_a_job_is_measured(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, measure: Callable[[LazyFlink], Any]
) -> None:
    """They would take CPU from the job, and be measured with it."""
    flink, asked = shop(), list[list[str]]()
    monkeypatch.setattr(first_use, "prepare", lambda: asked.append(flink.requests("GET")))
    measure(flink)
    assert not any("metrics" in path for path in asked[0])
