"""A watched job in a simulated cluster: what its layouts carry, and what the model says of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import exp, inf
from typing import Any

import pytest

from streamplace.control.policy import POLICIES, MakePolicy
from streamplace.engines.flink.constants import UNLIKE
from streamplace.engines.flink.decide.improving import Trial
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.sources import SourceFlow
from streamplace.engines.flink.move.saving import CheckpointTotals
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.watch import rounds as passing
from streamplace.engines.flink.watch.deciding import Guards, LayoutOption, RateJudge, WatchChoice
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.modelling import JobModel
from streamplace.engines.flink.watch.rounds import JobLook, JobRounds
from streamplace.io.store import Store
from streamplace.io.watches import MOVED, WatchDecision, WatchRound, utc_now
from streamplace.model.intervals import RateInterval

DEVICES = ("dev-0", "dev-1", "dev-2")
ONE, TWO, THREE = "dev-0 dev-0 dev-0", "dev-0 dev-0 dev-1", "dev-0 dev-1 dev-2"
"""Names of layouts: the devices of the subtasks of the only operator."""
CARRIES = {ONE: 100.0, TWO: 200.0, THREE: 300.0}
NOON = datetime(2026, 5, 4, 12, 30)


@dataclass
class Scene:
    """A job of one operator that is watched: its cluster, what measures it, and what moves it.

    Attributes
    ----------
    offered
        Tuples/s that arrive.
    factors
        Layout → what the model predicts, relative to what it carries. While the job is held back,
        predictions are scaled to its rate, and the model may contradict that.
    reports
        Whether its sources report what waits for them.
    takes
        Seconds that a measurement takes.
    broken
        Raised by the next looks; then by measurements and moves, for as long as they are there.
    ends
        What comes of its moves.
    lasting
        Layout → what it sustains, as a multiple of what its sources read; 1 for the others.
    """

    log: WatchLog
    carries: Mapping[str, float] = field(default_factory=lambda: CARRIES)
    offered: float | Callable[[float], float] = 50.0
    factors: Mapping[str, float] = field(default_factory=dict)
    reports: bool = False
    takes: float = 0.0
    broken: list[Exception] = field(default_factory=list)
    unmeasured: Exception | None = None
    unmoved: Exception | None = None
    ends: str = MOVED
    is_counted: bool = True
    lasting: Mapping[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    where: str = ONE
    now: float = 0.0
    backlog: float = 0.0
    number: int = 0
    measured: int = 0
    hour: datetime = NOON
    visited: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    @property
    def job(self) -> str:
        """Its id, which changes with every move."""
        return f"job{self.number}"

    @property
    def arriving(self) -> float:
        """Tuples/s that arrive now."""
        return self.offered(self.now) if callable(self.offered) else self.offered

    @property
    def rate(self) -> float:
        """Tuples/s that its sources emit."""
        carried = self.carries[self.where]
        return carried if self.backlog > 0 else min(carried, self.arriving)

    def passes_time(self, seconds: float, *, runs: bool = True) -> None:
        """Let time pass, in which the job runs or not."""
        carried = self.carries[self.where] if runs else 0.0
        self.backlog = max(0.0, self.backlog + (self.arriving - carried) * seconds)
        self.now += seconds

    def look_at(self, *_: Any) -> JobLook:
        """Look at the job."""
        if self.broken:
            raise self.broken.pop(0)
        usual: dict[str, Any] = {
            "is_limited": self.rate < self.arriving or self.backlog > 0,
            "backlog": self.backlog if self.reports else None,
            "layout": Layout({"map": self.where.split()}),
            "checkpoints": CheckpointTotals(5, 0),
            "managers": frozenset(DEVICES),
        }
        return JobLook(self.job, self.rate, **(usual | self.facts))

    def model(self, _: str, __: object, ___: object, trials: Sequence[Trial]) -> JobModel:
        """Measure the job, and predict its layouts."""
        is_limited = self.rate < self.arriving or self.backlog > 0
        self.measured += 1
        self.passes_time(self.takes)
        if self.unmeasured is not None:
            raise self.unmeasured
        here = self.factors.get(self.where, 1.0) if is_limited else 1.0
        is_wrong = abs(here - 1) > 0.2
        options = {}
        for name, rate in self.carries.items():
            value = self.factors.get(name, 1.0) / here * rate
            best = inf if is_wrong else 1.1 * value * exp(UNLIKE / (1 + len(trials)))
            layout = Layout({"map": name.split()})
            moves = layout.number_moved_from(Layout({"map": self.where.split()}))
            carries = RateInterval(0.9 * value, value, 1.1 * value)
            options[name] = LayoutOption(layout, carries, optimistic=best, moves=moves)
        present = options.pop(self.where)
        others = [
            replace(one, is_counted=self.is_counted or one.machines >= present.machines)
            for one in options.values()
        ]
        lasting = self.lasting.get(self.where, 1.0)
        return JobModel(present, tuple(others), (1, 2, 3), "the CPU of dev-0", lasting=lasting)

    def carry_out(self, job: str, here: LayoutOption, choice: WatchChoice) -> str:
        """Move the job, or fail."""
        assert choice.target is not None
        if self.unmoved is not None:
            raise self.unmoved
        self.visited.append(" ".join(choice.target.layout["map"]))
        has_moved = self.ends == MOVED
        after = f"job{self.number + has_moved}"
        decision = WatchDecision(
            utc_now(),
            "return" if choice.returns else "move",
            job,
            after,
            {"map": [*choice.target.layout["map"]]},
            (here.machines, choice.target.machines),
            choice.words,
        )
        self.log.end(self.log.begin(decision), decision, self.ends, "", after)
        self.passes_time(2.0, runs=False)
        if has_moved:
            self.number, self.where = self.number + 1, self.visited[-1]
        return after

    def note_rate(self, decision: WatchDecision, flow: SourceFlow) -> None:
        """Write what was measured after a move."""
        self.log.note_rate(decision, flow.rate)

    def rounds(
        self,
        policy: str | MakePolicy = "ds2",
        acts: bool = True,
        every: float = 60.0,
        **guards: Any,
    ) -> JobRounds:
        """Rounds of one process."""
        make = POLICIES[policy].make if isinstance(policy, str) else policy
        made = JobRounds(
            Rest("http://localhost:1"),
            self.log,
            RateJudge(make, every),
            Guards(**guards),
            self.model,
            self if acts else None,  # type: ignore[arg-type]
            self.told.append,
            lambda: self.now,
            lambda: self.hour + timedelta(seconds=self.now),
        )
        made.recall()
        return made

    def passes(self, rounds: JobRounds, number: int = 1, **facts: Any) -> list[str]:
        """Pass rounds a minute apart, after some facts have changed; return what they told."""
        for name, value in facts.items():
            setattr(self, name, value)
        before = len(self.told)
        for _ in range(number):
            assert rounds.is_due
            rounds.pass_round(self.job)
            self.passes_time(rounds.judge.seconds)
        return self.told[before:]

    @property
    def seen(self) -> list[WatchRound]:
        """Rounds that were recorded."""
        return self.log.rounds(9999)

    @property
    def decisions(self) -> list[WatchDecision]:
        """Decisions that were recorded."""
        return [*self.log.decisions.values()]


def scene_of(monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A job that nobody has watched yet."""
    told: list[str] = []
    made = Scene(WatchLog.claimed(Store.usual(), "job0", "shop", told.append), told=told)
    monkeypatch.setattr(passing, "look_at", made.look_at)
    return made
