"""Profiles wait until a job is warm, and refuse one that does not become it."""

import pytest
from lazy_flink import Clock, LazyRest, Vertex, rates

from streamplace.engines.flink import warm
from streamplace.engines.flink.consistency import Present, Usage
from streamplace.engines.flink.constant_loads import LoadWindow
from streamplace.engines.flink.plan import JobPlan
from streamplace.engines.flink.profile import JobProfile, profile
from streamplace.engines.flink.rest import Rest
from streamplace.engines.flink.sampling import PATIENCE_SECONDS
from streamplace.engines.flink.steady import UnsteadyJob
from streamplace.engines.flink.task_cpu import TaskCpu
from streamplace.engines.flink.warm import Warmth, change_of, warm_profile, why_cold, window_of

RATE, COLD, WARM = 3400.0, 52_500.0, 12_800.0
"""Tuples/s of a taxi job, and instructions per tuple of its source, measured cold and warm."""


class Warming:
    """Profiles of a job whose source becomes cheaper by a half of what is left every 20 s.

    Attributes
    ----------
    compilers
        Part of the CPU that compilers take at the start; it falls with the cost of the source.
    """

    def __init__(self, clock: Clock, compilers: float = 0.58, half_life: float = 20.0) -> None:
        self.clock, self.compilers, self.half_life = clock, compilers, half_life
        self.start = clock.now
        out = {"Source__trips.numRecordsOut": RATE}
        vertices = {
            "v0": Vertex("Source: trips", rates(0, RATE, 0, RATE * 90, busy=0.2) | out),
            "v1": Vertex("sink", rates(RATE, 0, RATE * 90, 0, busy=0.002), [("v0", "REBALANCE")]),
        }
        self.rest = LazyRest(clock, vertices)

    def profile(
        self, rest: Rest, job: str, seconds: float, managers: object, plan: JobPlan
    ) -> JobProfile:
        """A profile of the next window."""
        left = 0.5 ** ((self.clock.now - self.start) / self.half_life)
        seen = profile(rest, job, seconds, (), plan)
        cores = RATE * (WARM + (COLD - WARM) * left) / 1e9
        object.__setattr__(seen, "cpu", {"v0": TaskCpu(cores), "v1": TaskCpu(0.002)})
        part = self.compilers * left
        kinds = {"tasks": cores, "compilers": cores * part / (1 - part)}
        usage = {"dev-0": Usage(1.0, kinds, 0.0)}
        object.__setattr__(seen, "present", Present({}, usage, 0.0))
        return seen


@pytest.fixture
def warming(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Warming:
    """A job that has just started."""
    made = Warming(clock)
    monkeypatch.setattr(warm, "profile", made.profile)
    return made


def test_a_cold_job_is_waited_for(warming: Warming) -> None:
    """The source's cost is that of the warm job, not four times as much; progress is told."""
    told: list[str] = []
    seen = warm_profile(warming.rest, "job", Warmth(10.0), tell=told.append)
    cost = seen.cpu["v0"].cores / RATE * 1e9
    assert cost == pytest.approx(WARM, rel=0.05)
    assert "compilers take 58% of the CPU of the TaskManagers" in told[0]
    assert any("of operator 'trips' per tuple changed by -" in text for text in told)
    assert told[-1].endswith("until it was warm")
    assert not any("not warm" in doubt for doubt in seen.doubts)


def test_a_job_that_stays_cold_is_refused(warming: Warming) -> None:
    """Unless a cold profile is accepted, which is doubted."""
    warming.half_life = 1e9
    with pytest.raises(UnsteadyJob, match=r"not warm after \d+ s: compilers take .*--accept-cold"):
        warm_profile(warming.rest, "job", Warmth(10.0, 60.0))
    seen = warm_profile(warming.rest, "job", Warmth(10.0, 60.0, accept_cold=True))
    assert any("the job was not warm after" in doubt for doubt in seen.doubts)


def test_no_patience_is_one_window(warming: Warming) -> None:
    """For those who know what they do."""
    began = warming.clock.now
    warm_profile(warming.rest, "job", Warmth(10.0, 0.0, accept_cold=True))
    assert warming.clock.now - began <= 10 + PATIENCE_SECONDS


@pytest.mark.parametrize("height", [1.0, 1e-6])
def test_changes_are_told_from_noise(height: float) -> None:
    """A step, a slope; neither noise around a level nor a small steady drift."""
    assert change_of([height * v for v in (5.0, 5.02, 2.0, 2.01)]) == pytest.approx(-0.86, abs=0.02)
    assert change_of([height * v for v in (1.0, 1.1, 1.21, 1.3)]) > 0.2
    assert change_of([height * v for v in (1.0, 1.1, 0.95, 1.04)]) == 0
    assert abs(change_of([height * v for v in (1.0, 1.01, 1.02, 1.03)])) < warm.MOST_CHANGE
    assert change_of([0.0] * 4) == 0


def test_what_is_taken_per_second_is_its_mean(
    warming: Warming, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A committer that reads three messages in the last window, and one in all others."""
    messages = iter((1.0, 1.0, 1.0, 1.0, 3.0))

    def window(*asked: object) -> JobProfile:
        seen = warming.profile(*asked)  # type: ignore[arg-type]
        object.__setattr__(seen, "tuples", {"v0": RATE, "v1": next(messages)})
        return seen

    warming.compilers, warming.half_life = 0.0, 1e-3
    monkeypatch.setattr(warm, "profile", window)
    seen = warm_profile(warming.rest, "job", Warmth(10.0))
    assert seen.cpu["v1"].cores == pytest.approx(0.002)
    assert seen.constant["v1"] == pytest.approx(0.002)


def test_compilers_of_an_idle_machine_are_not_waited_for(warming: Warming) -> None:
    """A hundredth of a core is much of what a small job takes, and says nothing of it."""
    seen = profile(warming.rest, "job", 5)
    for tasks, compilers, part in ((0.05, 0.015, 0.0), (0.05, 0.03, 0.375), (0.9, 0.03, 0.032)):
        usage = {"dev-0": Usage(1.0, {"tasks": tasks, "compilers": compilers}, 0.0)}
        object.__setattr__(seen, "present", Present({}, usage, 0.0))
        assert window_of(seen).compilers == pytest.approx(part, abs=0.001)


def test_operators_that_take_little_may_change(warming: Warming) -> None:
    """As do committers, which read nothing for a while."""
    plan = warming.rest
    tasks = profile(plan, "job", 5).tasks
    windows = [
        LoadWindow(10.0, {"v0": RATE, "v1": RATE}, {"v0": 1.0, "v1": 0.01 * 2**n}) for n in range(4)
    ]
    assert why_cold(tasks, windows) is None
    windows = [one._replace(tuples={"v0": RATE, "v1": 0.0}) for one in windows]
    assert why_cold(tasks, windows) is None
