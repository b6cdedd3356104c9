"""A job whose looks are told, watched by rounds on a fake clock."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest
from watched_jobs import plan

from streamplace.control.policy import POLICIES, MakePolicy
from streamplace.engines.flink.move.saving import CheckpointTotals
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.watch import rounds as passing
from streamplace.engines.flink.watch.judging import Guards, RateJudge
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.look import JobLook
from streamplace.engines.flink.watch.plans import JobModel, WatchPlan
from streamplace.engines.flink.watch.rounds import JobRounds
from streamplace.io.store import Store
from streamplace.io.watch_store import MOVED, WatchDecision, WatchRound, utc_now

DEVICES = ("dev-0", "dev-1", "dev-2")
PLANS = (plan("dev-0"), plan("dev-0", "dev-1"), plan(*DEVICES))


def look(rate: float, machines: int = 1, job: str = "job", **facts: Any) -> JobLook:
    """A job that emits a rate on some TaskManagers."""
    usual: dict[str, Any] = {
        "is_limited": False,
        "backlog": None,
        "layout": PLANS[machines - 1].layout,
        "shape": {"map": 1},
        "checkpoints": CheckpointTotals(5, 0),
        "managers": frozenset(DEVICES),
    }
    return JobLook(job, rate, **(usual | facts))


@dataclass
class Scene:
    """A watched job on a clock of its own.

    Attributes
    ----------
    looks
        What is seen, one after the other; errors are raised.
    plans
        Layouts that it may have.
    takes
        Seconds that a measurement takes.
    meanwhile
        What is seen after a measurement; None for the same as before.
    unmeasured
        Why it cannot be measured.
    kept
        What sources send that keep up while others are held back.
    ends
        What comes of its moves; after one that has not failed, it is another job.
    """

    log: WatchLog
    looks: list[JobLook | Exception] = field(default_factory=list)
    plans: tuple[WatchPlan, ...] = PLANS
    told: list[str] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    measured: int = 0
    now: float = 1000.0
    hour: int = 12
    failure: Exception | None = None
    takes: float = 0.0
    meanwhile: JobLook | None = None
    unmeasured: Exception | None = None
    kept: float = 0.0
    ends: str = MOVED

    def look_at(self, *_: Any) -> JobLook:
        """Next look."""
        seen = self.looks.pop(0)
        if isinstance(seen, Exception):
            raise seen
        return seen

    def model(self, seen: JobLook) -> JobModel:
        """What a measurement finds, after which the job is looked at again."""
        self.measured += 1
        self.now += self.takes
        if self.unmeasured is not None:
            raise self.unmeasured
        self.looks.insert(0, self.meanwhile or seen)
        level, kept = seen.machines - 1, self.kept * seen.is_limited
        present = self.plans[level]
        return JobModel(seen.job, "shop", self.plans, level, present, "the CPU of dev-0", kept=kept)

    def carry_out(self, model: JobModel, target: WatchPlan, reason: str) -> str:
        """Move the job, or fail."""
        if self.failure is not None:
            raise self.failure
        self.moves.append(target.machines)
        job = f"{model.job}+" if self.ends == MOVED else model.job
        layout: dict[str, list[str] | str] = {"map": [*target.devices]}
        machines = (model.present.machines, target.machines)
        decision = WatchDecision(
            utc_now(), "move", model.job, job, layout, machines, "", *target.carries
        )
        self.log.end(self.log.begin(decision), decision, self.ends, "", job)
        return job

    def rounds(
        self, policy: str | MakePolicy = "ds2", acts: bool = True, **guards: Any
    ) -> JobRounds:
        """Rounds of one process."""
        make = POLICIES[policy].make if isinstance(policy, str) else policy
        made = JobRounds(
            Rest("http://localhost:1"),
            self.log,
            RateJudge(make, 60.0),
            Guards(**guards),
            self.model,
            self if acts else None,  # type: ignore[arg-type]
            self.told.append,
            60.0,
            lambda: self.now,
            lambda: datetime(2026, 5, 4, self.hour, 30),
        )
        made.recall()
        return made

    def passes(self, rounds: JobRounds, *looks: JobLook | Exception) -> list[str]:
        """Pass rounds a minute apart; return what they told."""
        self.looks, before = [*looks], len(self.told)
        for _ in looks:
            assert rounds.is_due
            rounds.pass_round("job")
            self.now += 60
        return self.told[before:]

    @property
    def seen(self) -> list[WatchRound]:
        """Rounds that were recorded."""
        return self.log.rounds(999)

    @property
    def decisions(self) -> list[WatchDecision]:
        """Decisions that were recorded."""
        return [*self.log.decisions.values()]


def scene_of(monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A job that nobody has watched yet."""
    told: list[str] = []
    made = Scene(WatchLog.claimed(Store.usual(), "job", "shop", told.append), told=told)
    monkeypatch.setattr(passing, "look_at", made.look_at)
    return made
