"""How the policy learns: from good placements, how worse schedules should have been rebuilt.

A schedule is taken, now and then rebuilt by the policy as it is, and all its tasks are decided
about. Some of those before are where the good placement has them, some where the schedule has them,
for a search meets both. What is learned is where the good placement has the task at hand,

    maximise  Σ log π(good device of v | what is seen of v, the schedule, and the tasks before v)

so that the policy says how likely a device is to be right, not only which is likeliest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from streamplace.errors import FormatError
from streamplace.learn.algorithms.worth import mean_entropy
from streamplace.learn.learner import ALL, StepReport
from streamplace.learn.learner import Rows as Some
from streamplace.learn.models.pilot_makespan.module import PilotMakespanModule, Steps
from streamplace.learn.models.pilot_makespan.network import network_of
from streamplace.learn.models.pilot_makespan.options import PilotMakespanConfig
from streamplace.learn.models.pilot_makespan.placing import (
    FEATURES,
    NOISE,
    TrainedPilotMakespan,
    chance,
    first_schedules,
    span,
)
from streamplace.learn.models.pilot_makespan.rollout import Trail, new_record, rollouts
from streamplace.learn.models.pilot_makespan.view import View, before_of, view_of
from streamplace.learn.parameters import arrays_of
from streamplace.learn.registry import Task
from streamplace.model.arrays import Floats, Ints
from streamplace.objectives.makespan.bound import least_makespan
from streamplace.scheduling.insertion import Schedule

Rows = NDArray[np.int64]

JUDGED = 30
"""Samples that the policy is judged by besides what is likeliest."""


@dataclass(frozen=True, slots=True)
class Study:
    """What was seen of one schedule, and where the tasks should have been."""

    record: Trail
    right: Ints  # [1, N] by step
    span: float


class PilotMakespanLearner:
    """The policy on its training problems; see `streamplace.learn.learner.Learner`."""

    def __init__(self, task: Task, config: PilotMakespanConfig) -> None:
        self._task, self._config = task, config
        self._targets = task.targets or (None,) * len(task.training)
        self._views = [view_of(problem) for problem in task.training]
        self._first = [
            [schedule for schedule in first_schedules(view) if schedule.complete]
            for view in self._views
        ]
        self._bounds = [least_makespan(problem) for problem in task.training]
        self._best = np.zeros(len(task.training))
        self.module = PilotMakespanModule(config.width).to(task.device)

    @property
    def n_problems(self) -> int:
        """Number of training problems."""
        return len(self._views)

    @property
    def sizes(self) -> Rows:
        """Tasks of each training problem."""
        return np.array([view.tasks.n_tasks for view in self._views], np.int64)

    def loss(self, rows: Rows, epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Look at schedules of these problems, and tell what should have been decided."""
        rng, policy = np.random.default_rng(seed), self._policy()
        found = [(row, self._study(row, rng, policy)) for row in rows.tolist()]
        studies = [(row, study) for row, study in found if study is not None]
        rewards = np.array([self._bounds[row] / study.span for row, study in studies])
        kept = [row for row, _ in studies]
        self._best[kept] = np.maximum(self._best[kept], rewards)
        best, reward = float(self._best[rows].sum()), float(rewards.sum())
        if not studies:
            nothing = 0 * torch.cat([p.flatten() for p in self.module.parameters()]).sum()
            return nothing, StepReport(len(rows), reward, best, 0.0)
        log_p = self.module(Steps.of([study.record for _, study in studies], self._task.device))
        right = np.concatenate([study.right[0] for _, study in studies]).astype(np.int64)
        taken = log_p.gather(1, torch.from_numpy(right).to(log_p.device)[:, None])[:, 0]
        sizes = [study.right.size for _, study in studies]
        share = np.repeat(1 / np.array(sizes), sizes).astype(np.float32)
        loss = -(taken * torch.from_numpy(share).to(log_p.device)).sum()
        owner = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes)).to(log_p.device)
        entropy = mean_entropy(log_p, owner)
        return loss, StepReport(len(rows), reward, best, entropy)

    def validate(self, rows: Some = ALL) -> Floats:
        """Bound over the makespan of the best of a few schedules of validation problems."""
        policy, looks, rewards = self._policy(), self._config.looks, []
        for i in np.arange(len(self._task.validation))[rows].tolist():
            problem = self._task.validation[i]
            view = view_of(problem)
            tried = policy.schedules(view, first_schedules(view), span, looks, JUDGED, seed=0)
            spans = [span(schedule) for schedule in tried if schedule.complete]
            rewards.append(least_makespan(problem) / min(spans) if spans else 0.0)
        return np.array(rewards)

    def state(self, rows: Some = ALL) -> dict[str, NDArray[Any]]:
        """Best rewards known."""
        return {"best": self._best[rows].copy()}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Some = ALL) -> None:
        """Take back what `state` returned."""
        if state["best"].shape != self._best[rows].shape:
            raise FormatError("the checkpoint: its rewards are of other problems; train anew")
        self._best[rows] = state["best"]

    def spec(self) -> dict[str, Any]:
        """Options and features, which are shares of a schedule's span: there is no mean to keep."""
        return {"config": self._config.model_dump(mode="json"), "features": {"names": FEATURES}}

    def _policy(self) -> TrainedPilotMakespan:
        return TrainedPilotMakespan(network_of(arrays_of(self.module)))

    def _study(
        self, row: int, rng: np.random.Generator, policy: TrainedPilotMakespan
    ) -> Study | None:
        """Look at a schedule of a problem; None where nothing good is known, or rules forbid it."""
        view, target, first = self._views[row], self._targets[row], self._first[row]
        if target is None or not first or not span(first[0]) > 0:
            return None
        schedule = self._met(view, first, rng, policy)
        n = view.tasks.n_tasks
        before = before_of(view.tasks, schedule, NOISE * rng.random() * rng.random(n))
        mixed = np.where(rng.random(n) < rng.random(), target, schedule.place)
        given = mixed[before.order][None].astype(np.int32)
        record = new_record(1, view)
        likeliest = np.full((1, n), -1, np.float32)
        rollouts(view, before, policy.network, given, likeliest, record)
        right = target[before.order][None].astype(np.int32)
        if not record.open[0, np.arange(n), right[0]].all():  # what stays together was torn apart
            return None
        return Study(record, right, span(schedule))

    def _met(
        self,
        view: View,
        first: list[Schedule],
        rng: np.random.Generator,
        policy: TrainedPilotMakespan,
    ) -> Schedule:
        """One of the first schedules, rebuilt a few times."""
        schedule = first[rng.integers(len(first))]
        for _ in range(rng.integers(self._config.rebuilt, endpoint=True)):
            rebuilt = policy.rebuilt(view, schedule, chance(view, rng))
            if rebuilt.complete:
                schedule = rebuilt
        return schedule
