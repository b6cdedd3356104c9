"""Profiles wait until a job is warm, and refuse one that does not become it."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lazy_flink import MIPS, START, Clock, LazyFlink, Vertex, rates, with_threads

from streamplace.engines.flink.cpu import limits
from streamplace.engines.flink.cpu.flight_recorder import Stacks
from streamplace.engines.flink.cpu.limits import CpuPool, CpuShare
from streamplace.engines.flink.cpu.threads import JavaThread
from streamplace.engines.flink.measure import job_windows
from streamplace.engines.flink.measure.consistency import Present, Usage
from streamplace.engines.flink.measure.constant_loads import LoadWindow
from streamplace.engines.flink.measure.graph import measured_graph
from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.measure.sampling import PATIENCE_SECONDS
from streamplace.engines.flink.measure.steady import (
    MOST_MIX,
    UnsteadyJob,
    Warmth,
    rates_vary,
    warm_profile,
)
from streamplace.engines.flink.measure.warm_windows import (
    BUSY,
    LEAST_BUSY_WINDOWS,
    LEAST_WINDOWS,
    MOST_CHANGE,
    Series,
    change_of,
    drift_over,
    judged,
)
from streamplace.engines.flink.measure.warm_windows import WARM as NO_DRIFT
from streamplace.engines.flink.rest.plan import FlinkTask
from streamplace.io.ledger import errors_for, known_errors
from streamplace.model.graph import PROFILE_DRIFT

RATE, COLD, WARM = 3400.0, 52_500.0, 12_800.0
"""Tuples/s of a taxi job, and instructions per tuple of its source, measured cold and warm."""
RECORDED = json.loads((Path(__file__).parent / "recorded_windows.json").read_text())
"""Windows of jobs that were started under a quota, as they were measured."""
STEP = 0.25
TASKS = [FlinkTask(name, name, name, 1, (name,)) for name in ("v0", "v1")]


class Warming:
    """A job whose source becomes cheaper by a half of what is left every 20 s.

    Attributes
    ----------
    compilers
        Part of the CPU that compilers take at the start; it falls with the cost of the source.
    least
        Part that they take however long the job runs.
    """

    def __init__(self, clock: Clock, compilers: float = 0.58, half_life: float = 20.0) -> None:
        self.clock, self.compilers, self.half_life, self.least = clock, compilers, half_life, 0.0
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
            part = max(self.compilers * left, self.least)
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


def windows(
    costs: Sequence[float], tuples: Sequence[float] | None = None, compilers: float = 0.0
) -> list[LoadWindow]:
    """Windows of ten seconds of an operator with these costs, and of another that takes little."""
    numbers = [RATE] * len(costs) if tuples is None else tuples
    return [
        LoadWindow(10.0, {"v0": n, "v1": n}, {"v0": cost * n, "v1": 0.01 * cost * n}, compilers)
        for cost, n in zip(costs, numbers, strict=True)
    ]


def test_a_cold_job_is_waited_for(warming: Warming) -> None:
    """The source's cost is that of the warm job, not four times as much; progress is told."""
    told: list[str] = []
    seen = warm_profile(warming.flink.rest, "job", Warmth(10.0, 300.0), tell=told.append)
    assert 1e9 * seen.cpu["v0"].cores / RATE == pytest.approx(WARM, rel=0.05)
    assert "compilers take 49% of the CPU of the TaskManagers" in told[0]
    assert any("of operator 'trips' per tuple changed by -" in text for text in told)
    assert told[-1].endswith("until it was warm")
    assert not any("not warm" in doubt for doubt in seen.doubts)


class Recompiled(Warming):
    """A warm job whose tuples cost half as much again for 80 s after stacks are first sampled."""

    recorded, is_started = math.inf, False

    def threads(self, number: int) -> list[JavaThread]:
        """Threads of the only TaskManager, whose compilers take little."""
        cost = 1.5 if self.recorded < self.clock.now <= self.recorded + 80.0 else 1.0
        self.spent += (self.clock.now - self.seen) * RATE * WARM * cost / 1e9
        self.seen = self.clock.now
        names = ["Source: trips (1/1)#0", "sink (1/1)#0"]
        names += ["JFR Recorder Thread"] if self.is_started else []
        spent = dict(zip(names, (self.spent, 0.002 * self.seen, 0.0), strict=False))
        return [JavaThread(i, name, cpu, self.seen) for i, (name, cpu) in enumerate(spent.items())]

    @contextmanager
    def sampled(self, processes: Mapping[str, int]) -> Iterator[Callable[[], Stacks]]:
        """Sample stacks, which discards all code where that is new."""
        if processes and not self.is_started:
            self.recorded = min(self.recorded, self.clock.now)
        yield dict


@pytest.fixture
def recompiled(warming: Warming, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Recompiled:
    """A job that was warm before its stacks were sampled."""
    made = Recompiled(clock)
    with_threads(monkeypatch, made.threads, {"dev-0": 7})
    monkeypatch.setattr(job_windows, "sampled_stacks", made.sampled)
    monkeypatch.setattr(job_windows, "why_unsampled", lambda processes: "")
    return made


def test_code_that_sampling_discards_is_waited_for(recompiled: Recompiled) -> None:
    """It costs as much in every window until then, and compilers take little."""
    told: list[str] = []
    seen = warm_profile(recompiled.flink.rest, "job", Warmth(10.0, 300.0), tell=told.append)
    assert 1e9 * seen.cpu["v0"].cores / RATE == pytest.approx(WARM, rel=0.1)
    assert any("48% more CPU than before stacks were sampled" in text for text in told)


def test_code_that_is_still_discarded_widens_intervals(recompiled: Recompiled) -> None:
    """Whatever the windows say, which do not differ."""
    seen = warm_profile(recompiled.flink.rest, "job", Warmth(10.0, 60.0))
    assert seen.drift.level == pytest.approx(0.48, abs=0.03)


def test_a_recorder_that_runs_already_discards_nothing(recompiled: Recompiled) -> None:
    """No window is spent on what a tuple took before."""
    recompiled.is_started = True
    began = recompiled.clock.now
    seen = warm_profile(recompiled.flink.rest, "job", Warmth(10.0, 300.0))
    assert recompiled.clock.now - began < 10 * (LEAST_WINDOWS + 1)
    assert 1e9 * seen.cpu["v0"].cores / RATE == pytest.approx(WARM, rel=0.01)


def test_what_still_changes_is_part_of_the_profile(warming: Warming) -> None:
    """The patience is over while the source still becomes cheaper: its rates are less certain.

    It has no load per second: its tuples become cheaper while it reads more of them, and a line
    through that has a constant.
    """
    warming.half_life, warming.compilers = 40.0, 0.3
    told: list[str] = []
    seen = warm_profile(warming.flink.rest, "job", Warmth(10.0, 90.0), tell=told.append)
    costs = [COLD * 0.5 ** (t / 40) + WARM * (1 - 0.5 ** (t / 40)) for t in (30.0, 90.0)]
    assert seen.drift.level == pytest.approx((costs[0] - costs[1]) / np.mean(costs), rel=0.3)
    assert seen.drift.mix < 0.1
    assert len(seen.windows) == LEAST_BUSY_WINDOWS
    graph = measured_graph(seen, MIPS)
    assert graph.attributes[PROFILE_DRIFT] == pytest.approx(seen.drift.level, rel=0.01)
    assert "what still changes widens the intervals of predictions" in told[-1]
    assert any("intervals allow for that" in doubt for doubt in seen.doubts)
    errors, least = errors_for(graph, ledger=Path("none")), known_errors()
    assert errors is not None
    assert errors.low * (1 + seen.drift.level) == pytest.approx(least.low, rel=0.01)
    rising = [
        window._replace(tuples={**window.tuples, "v0": (1 + i) * RATE}, cores=seen.windows[0].cores)
        for i, window in enumerate(seen.windows)
    ]
    cold = replace(seen, windows=rising)
    assert cold.constant["v0"] == 0
    assert replace(cold, drift=NO_DRIFT).constant["v0"] > 0


def test_parts_that_change_are_told_from_a_job_that_becomes_cheaper() -> None:
    """What two layouts are compared by is how CPU is divided; both are the same here at first."""
    falling = 0.5 ** np.arange(6.0)
    alike, apart = ([1.0, part] for part in (1.0, 0.1))
    for others, mix in ((alike, 0.0), (apart, 0.4)):
        second = np.linspace(*others, 6)
        rows = [
            LoadWindow(10.0, {"v0": RATE, "v1": RATE}, {"v0": cost, "v1": cost * part})
            for cost, part in zip(falling, second, strict=True)
        ]
        drift = drift_over(TASKS, rows)
        assert drift.level > 2
        assert drift.mix >= mix if mix else drift.mix < 1e-6
    assert drift_over(TASKS, rows[:3]).mix == math.inf
    unknown = [row._replace(cores=dict.fromkeys(row.cores, 0.0)) for row in rows]
    assert drift_over(TASKS, unknown).mix == math.inf


def test_a_job_that_stays_cold_is_refused(warming: Warming) -> None:
    """Unless a cold profile is accepted, which is doubted."""
    warming.half_life = 1e9
    with pytest.raises(UnsteadyJob, match=r"not warm after \d+ s: compilers take .*--accept-cold"):
        warm_profile(warming.flink.rest, "job", Warmth(10.0, 60.0))
    seen = warm_profile(warming.flink.rest, "job", Warmth(10.0, 60.0, accept_cold=True))
    assert any("the job was not warm after" in doubt for doubt in seen.doubts)


def test_no_patience_is_one_window(warming: Warming) -> None:
    """For those who know what they do."""
    began = warming.clock.now
    warm_profile(warming.flink.rest, "job", Warmth(10.0, 0.0, accept_cold=True))
    assert warming.clock.now - began <= 10 + PATIENCE_SECONDS


@pytest.mark.parametrize("height", [1.0, 1e-6])
def test_changes_are_told_from_noise(height: float) -> None:
    """A step, a slope; neither noise around a level nor a small steady drift."""

    def change(*values: float) -> float:
        n = len(values)
        return change_of(Series(height * np.array(values), np.ones(n), 10.0 * np.arange(n)))

    assert change(5.0, 5.02, 2.0, 2.01) == pytest.approx(-0.86, abs=0.02)
    assert change(1.0, 1.1, 1.21, 1.3) > 0.2
    assert change(1.0, 1.1, 0.95, 1.04) == 0
    assert abs(change(1.0, 1.01, 1.02, 1.03)) < MOST_CHANGE
    assert change(0.0, 0.0, 0.0, 0.0) == 0


def test_a_job_beside_busy_compilers_is_warm_where_its_cost_is_proven_to_stay() -> None:
    """After six windows of ten seconds, not of one; more noise takes more windows."""
    for seconds, number in ((10.0, 6), (1.0, 9)):
        rows = [one._replace(seconds=seconds) for one in windows([1.0, 1.01] * 20, None, 0.08)]
        first = next(n for n in range(1, 40) if judged(TASKS, rows[:n]).is_warm)
        assert first == number
    rng = np.random.default_rng(0)
    noisy = windows((1 + 0.1 * rng.standard_normal(40)).tolist(), None, 0.08)
    first = next(n for n in range(1, 40) if judged(TASKS, noisy[:n]).is_warm)
    assert first > 2 * LEAST_BUSY_WINDOWS
    verdict = judged(TASKS, windows([1.0] * 6, None, 0.08))
    assert verdict.windows == 6
    assert verdict.reason.startswith("compilers take 8% of the CPU of the TaskManagers, but")
    assert not judged(TASKS, windows([1.0] * 40, None, BUSY)).is_warm


@pytest.mark.parametrize("half_life", [10.0, 20.0, 40.0])
def test_beside_busy_compilers_full_machines_do_not_hide_a_cost_that_falls(
    half_life: float,
) -> None:
    """The CPU per second is that of the quota, while the cost of a tuple falls."""
    rng = np.random.default_rng(1)
    times = 10.0 * np.arange(40)
    costs = (WARM + (COLD - WARM) * 0.5 ** (times / half_life)) / 1e9
    costs *= 1 + 0.03 * rng.standard_normal(len(costs))
    rows = windows(costs.tolist(), (0.18 / costs).tolist(), 0.08)
    verdicts = [judged(TASKS, rows[:n]) for n in range(1, len(rows) + 1)]
    first = next(n for n, verdict in enumerate(verdicts) if verdict.is_warm)
    last = rows[first + 1 - verdicts[first].windows : first + 1]
    pooled = sum(one.cores["v0"] for one in last) / sum(one.tuples["v0"] for one in last)
    assert 1e9 * pooled == pytest.approx(WARM, rel=0.06)


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: row["job"])
def test_recorded_cold_jobs_are_not_warm(row: Any) -> None:
    """RIoT on quotas of 0.18 core: its source takes 50 µs per tuple at first, and 8 at the end.

    For a minute its cost hardly falls. Even if compilers took little, that proves nothing.
    """
    names = row["operators"]
    tasks = [FlinkTask(name, name, name, 4, (name,)) for name in names]
    facts = ("seconds", "tuples", "cores", "compilers")
    seen = []
    for one in row["windows"]:
        seconds, tuples, cores, compilers = (one[fact] for fact in facts)
        by_name = [dict(zip(names, values, strict=True)) for values in (tuples, cores)]
        seen.append(LoadWindow(seconds, *by_name, compilers))
    mixes = [drift_over(tasks, seen[n - 6 : n]).mix for n in range(6, len(seen) + 1)]
    assert max(mixes) < 2 * 0.13 < MOST_MIX
    little = [one._replace(compilers=0.08) for one in seen]
    for number in range(1, len(seen) + 1):
        assert not judged(tasks, seen[:number]).is_warm
        assert not judged(tasks, little[:number]).is_warm


def test_windows_with_little_data_count_little() -> None:
    """They say nothing of the cost of a tuple, and there must be enough of the others."""
    costs, tuples = [9.0, 1.0, 1.0, 7.0, 1.0, 1.0, 1.0], [1.0, 1e3, 1e3, 1.0, 1e3, 1e3, 1e3]
    assert judged(TASKS, windows(costs, tuples, 0.08)).is_warm
    few = judged(TASKS, windows(costs, [1e3, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 0.08))
    assert not few.is_warm
    assert few.reason.endswith("operator 'v0' had little data in most windows")
    silent = [0.0, 1e3, 1e3, 0.0, 1e3, 1e3, 1e3]
    rows = windows(costs, silent, 0.08)
    assert judged(TASKS, rows).is_warm
    assert not judged(TASKS, windows([5.0, *[1.0] * 4], [10.0, *[1.0] * 4])).is_warm


def test_a_job_is_not_waited_for_because_of_compilers_alone(warming: Warming) -> None:
    """They take 8 % for good; the profile is that of the warm job, and says so."""
    warming.least, warming.half_life = 0.08, 5.0
    seen = warm_profile(warming.flink.rest, "job", Warmth(10.0))
    assert 1e9 * seen.cpu["v0"].cores / RATE == pytest.approx(WARM, rel=0.05)
    assert warming.clock.now - START < 120
    assert len(seen.windows) >= LEAST_BUSY_WINDOWS
    assert any("8% of the CPU of the TaskManagers, but the CPU per" in d for d in seen.doubts)


def test_rates_are_those_of_all_windows_in_which_the_job_was_warm(warming: Warming) -> None:
    """A window operator that emits every 25 s, and one window of ten seconds sees it or not."""
    emitted = dict(warming.flink.vertices["v1"].rates)
    emitted["numRecordsOut"] = lambda now: 0.1 * RATE * 25 * math.floor(now / 25)
    warming.flink.vertices["v1"].rates = emitted
    warming.flink.vertices["v2"] = Vertex(
        "out", emitted | {"numRecordsIn": emitted["numRecordsOut"]}, [("v1", "HASH")], 1
    )
    warming.compilers, warming.half_life = 0.0, 1e-3
    seen = warm_profile(warming.flink.rest, "job", Warmth(10.0))
    assert len(seen.windows) == LEAST_WINDOWS
    assert seen.activity["v0"].seconds >= LEAST_WINDOWS * 9.5
    assert measured_graph(seen, MIPS).streams.selectivity[1] == pytest.approx(0.1, rel=0.1)


def test_what_is_taken_per_second_is_its_mean(warming: Warming) -> None:
    """A committer that reads three messages in the last window, and one in all others."""
    messages = rates(0.0, 0, RATE * 90, 0, busy=0.002)
    messages["numRecordsIn"] = lambda now: now + 30 * (now > START + 40)
    warming.flink.vertices["v1"].rates = messages
    warming.compilers, warming.half_life = 0.0, 1e-3
    seen = warm_profile(warming.flink.rest, "job", Warmth(10.0))
    assert seen.cpu["v1"].cores == pytest.approx(0.002)
    assert seen.constant["v1"] == pytest.approx(0.002)


@pytest.mark.parametrize(
    ("counted", "varies"),
    [
        (lambda now: RATE * now, False),
        (lambda now: RATE * (now + 0.004 * now * (now - START)), False),  # it becomes faster
        (lambda now: RATE * (now + 2 * math.sin(math.pi * now / 30)), True),
        (lambda now: RATE / 1e4 * (now + 2 * math.sin(math.pi * now / 30)), False),  # few tuples
    ],
)
def test_a_rate_with_bursts_is_told_from_one_that_rises(
    warming: Warming, counted: Callable[[float], float], *, varies: bool
) -> None:
    """Each window counts some of the minute in which the rate swings."""
    warming.compilers = 0.0
    source = warming.flink.vertices["v0"]
    sent = {"numRecordsOut": counted, "Source__trips.numRecordsOut": counted}
    source.rates = {**source.rates, **sent}
    assert rates_vary(warm_profile(warming.flink.rest, "job", Warmth(10.0, 60.0))) is varies


def test_compilers_of_an_idle_machine_are_not_waited_for(warming: Warming) -> None:
    """A hundredth of a core is much of what a small job takes, and says nothing of it."""
    seen = profile(warming.flink.rest, "job", 5)
    for tasks, compilers, part in ((0.05, 0.015, 0.0), (0.05, 0.03, 0.375), (0.9, 0.03, 0.032)):
        usage = {"dev-0": Usage(CpuShare(1.0), {"tasks": tasks, "compilers": compilers}, 0.0)}
        object.__setattr__(seen, "present", Present({}, usage, 0.0))
        assert seen.as_window().compilers == pytest.approx(part, abs=0.001)


def test_operators_that_take_little_may_change() -> None:
    """As do committers, which read nothing for a while."""
    little = [
        LoadWindow(10.0, {"v0": RATE, "v1": RATE}, {"v0": 1.0, "v1": 0.005 * 2**n})
        for n in range(LEAST_WINDOWS)
    ]
    assert judged(TASKS, little).is_warm
    assert judged(TASKS, [one._replace(tuples={"v0": RATE, "v1": 0.0}) for one in little]).is_warm
