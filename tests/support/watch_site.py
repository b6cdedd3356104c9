"""A job on TaskManagers that a watch starts and stops by a command of the user."""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from watched_jobs import plan, quick_store

from streamplace.control.policy import POLICIES
from streamplace.engines.flink.move.move import MovePlan
from streamplace.engines.flink.move.outcomes import FlinkMoved
from streamplace.engines.flink.move.state import CheckpointTotals
from streamplace.engines.flink.pin.pinning import Vectors
from streamplace.engines.flink.rest.job_ids import successor
from streamplace.engines.flink.watch import acting
from streamplace.engines.flink.watch import rounds as passing
from streamplace.engines.flink.watch.acting import WatchMover
from streamplace.engines.flink.watch.judging import Guards, RateJudge
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.look import JobLook
from streamplace.engines.flink.watch.machines import MachineCommand, Machines
from streamplace.engines.flink.watch.plans import JobModel, NewDevices
from streamplace.engines.flink.watch.rounds import JobRounds
from streamplace.io.watch_store import WatchStore

FIRST = "a" * 32
CALLS = 'echo "$@" >> "$0.calls"\n'


@dataclass
class Site:
    """A job on TaskManagers, and a command that writes down its arguments.

    Attributes
    ----------
    slots
        TaskManager → jobs with slots on it.
    used
        TaskManagers that the job runs on.
    """

    script: Path
    store: WatchStore
    slots: dict[str, list[str]]
    used: list[str]
    told: list[str] = field(default_factory=list)
    now: float = 10_000.0
    job: str = FIRST
    rate: float = 50.0
    facts: dict[str, Any] = field(default_factory=dict)
    at_most: int = 3

    def does(self, body: str) -> None:
        """Give the command another end."""
        self.script.write_text(f"#!/bin/sh\n{CALLS}{body}")
        self.script.chmod(0o755)

    def runs_on(self, number: int) -> None:
        """Let the job run on so many TaskManagers, the only ones."""
        self.used = [f"dev-{i}" for i in range(number)]
        self.slots = {name: [self.job] for name in self.used}

    @property
    def calls(self) -> list[str]:
        """Arguments with which the command was run."""
        file = Path(f"{self.script}.calls")
        return file.read_text().splitlines() if file.exists() else []

    @property
    def decisions(self) -> list[tuple[str, str]]:
        """Kinds and states of all decisions."""
        return [(one.kind, one.state) for one in self.store.records(9)[0].decisions]

    def task_managers(self) -> list[dict[str, str]]:
        """TaskManagers of the cluster, as Flink answers."""
        return [{"id": name} for name in self.slots]

    def holders(self, device: str) -> list[str]:
        """Jobs with slots on a TaskManager."""
        return self.slots[device]

    def look_at(self, *_: Any) -> JobLook:
        """The job as it is now."""
        usual: dict[str, Any] = {
            "is_limited": False,
            "backlog": None,
            "layout": {"map": self.used},
            "shape": {"map": 3},
            "checkpoints": CheckpointTotals(5, 0),
            "managers": frozenset(self.slots),
        }
        return JobLook(self.job, self.rate, **(usual | self.facts))

    def model(self, seen: JobLook) -> JobModel:
        """Plans on one, two and three TaskManagers, of which some may have to be started."""
        there = sorted(self.slots)
        new = NewDevices("dev-0", ("dev-0 (new)", "dev-0 (new 2)")[: self.at_most - len(there)])
        order = [*there, *new.names]
        plans = tuple(plan(*order[:number]) for number in range(1, len(order) + 1))
        level = seen.machines - 1
        return JobModel(seen.job, "shop", plans, level, plan(*self.used), "the CPU", new)

    def plan(self, job: str, vectors: Vectors) -> MovePlan:
        """Whatever is placed fits."""
        return MovePlan(job, {"map": [*self.used]}, {"map": [*vectors["map"]]})

    def run(self, moved: MovePlan) -> FlinkMoved:
        """Start the job elsewhere."""
        self.used, self.job = moved.after["map"], successor(moved.job)
        assert set(self.used) <= self.slots.keys()
        for device, jobs in self.slots.items():
            own = [self.job] if device in self.used else []
            self.slots[device] = [one for one in jobs if one != moved.job] + own
        return FlinkMoved(self.job, 1.5, "file:///s/1")

    def rounds(self, seconds: float = 90.0, spares: tuple[str, ...] = (), **guards: Any) -> Any:
        """Rounds of one process."""
        rest: Any = self
        move: Any = SimpleNamespace(plan=self.plan, run=self.run, rest=self)
        log = WatchLog.claimed(self.store, self.job, "shop", self.told.append)
        command = MachineCommand.of(str(self.script), seconds)
        machines = Machines(rest, log, command, self.told.append, spares, lambda: self.now)
        mover = WatchMover(move, log, self.told.append, left=machines.leave)
        made = JobRounds(
            rest,
            log,
            RateJudge(POLICIES["ds2"].make, 60.0),
            Guards(**guards),
            self.model,
            mover,
            self.told.append,
            60.0,
            lambda: self.now,
            lambda: datetime(2026, 5, 4, 12, 30),
            machines=machines,
        )
        made.recall()
        return made

    def passes(self, rounds: JobRounds, number: int = 1) -> list[str]:
        """Pass rounds a minute apart; return what they told."""
        before = len(self.told)
        for _ in range(number):
            while rounds.is_due:
                self.job = rounds.pass_round(self.job)
            self.now += 60
        return self.told[before:]


def made_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A job on the only TaskManager."""
    made = Site(tmp_path / "machines", quick_store(tmp_path), {"dev-0": [FIRST]}, ["dev-0"])
    made.does("")
    monkeypatch.setattr(passing, "look_at", made.look_at)
    monkeypatch.setattr(acting, "chain_states", lambda *_: {})
    monkeypatch.setattr(acting, "source_flow", lambda *_: None)
    return made
