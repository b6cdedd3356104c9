"""How the policy learns: from good placements, how worse schedules should have been rebuilt.

A schedule is taken, now and then rebuilt by the policy as it is, and all its tasks are decided
about. Some of those before are where the good placement has them, some where the schedule has them,
for a search meets both. What is learned is where the good placement has the task at hand,

    maximise  Σ log π(good device of v | what is seen of v, the schedule, and the tasks before v)

so that the policy says how likely a device is to be right, not only which is likeliest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from streamplace.learn.algorithms.memory import BestRewards
from streamplace.learn.algorithms.worth import mean_entropy
from streamplace.learn.learner import StepReport
from streamplace.learn.models.pilot_makespan.features import (
    PilotMakespanFeatures,
    before_of,
    features_of,
)
from streamplace.learn.models.pilot_makespan.module import PilotMakespanModule, ScheduleSteps
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
from streamplace.learn.models.pilot_makespan.rollout import ScheduleRecord, new_record, rollouts
from streamplace.learn.parameters import arrays_of
from streamplace.learn.policy_learner import PolicyLearner
from streamplace.learn.registry import LearningTask
from streamplace.model.arrays import Ints, Longs
from streamplace.model.problem import Problem
from streamplace.objectives.makespan.bound import least_makespan
from streamplace.scheduling.insertion import ListSchedule

JUDGED = 30
"""Samples that the policy is judged by besides what is likeliest."""


@dataclass(frozen=True, slots=True)
class JudgedSchedule:
    """What was seen of one schedule, and where the tasks should have been."""

    record: ScheduleRecord
    right: Ints  # [1, N] by step
    span: float


class PilotMakespanLearner(PolicyLearner[PilotMakespanConfig]):
    """The policy on its training problems; see `streamplace.learn.policy_learner`."""

    def __init__(self, task: LearningTask, config: PilotMakespanConfig) -> None:
        super().__init__(task, config, PilotMakespanModule(config.width))
        self._targets = task.targets or (None,) * self.n_problems
        self._features = [features_of(problem) for problem in task.training]
        self._first = [
            [schedule for schedule in first_schedules(features) if schedule.complete]
            for features in self._features
        ]
        self._bounds = [least_makespan(problem) for problem in task.training]
        self._best = BestRewards(self.n_problems)
        self.memories = (self._best,)

    def loss(self, rows: Longs, epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Look at schedules of these problems, and tell what should have been decided."""
        rng, policy = np.random.default_rng(seed), self._policy()
        pairs = [(row, self._study(row, rng, policy)) for row in rows.tolist()]
        studies = [(row, study) for row, study in pairs if study is not None]
        rewards = np.array([self._bounds[row] / study.span for row, study in studies])
        for (row, _), value in zip(studies, rewards.tolist(), strict=True):
            self._best.meet(row, value)
        best, reward = float(self._best.rewards[rows].sum()), float(rewards.sum())
        if not studies:
            nothing = 0 * torch.cat([p.flatten() for p in self.module.parameters()]).sum()
            return nothing, StepReport(len(rows), reward, best, 0.0)
        log_p = self.module(
            ScheduleSteps.of([study.record for _, study in studies], self.task.device)
        )
        right = np.concatenate([study.right[0] for _, study in studies]).astype(np.int64)
        taken = log_p.gather(1, torch.from_numpy(right).to(log_p.device)[:, None])[:, 0]
        sizes = [study.right.size for _, study in studies]
        share = np.repeat(1 / np.array(sizes), sizes).astype(np.float32)
        loss = -(taken * torch.from_numpy(share).to(log_p.device)).sum()
        owner = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes)).to(log_p.device)
        entropy = mean_entropy(log_p, owner)
        return loss, StepReport(len(rows), reward, best, entropy)

    def judged(self, problems: Sequence[Problem], numbers: Sequence[int]) -> list[float]:
        """Bound over the makespan of the best of a few schedules."""
        policy, looks, rewards = self._policy(), self.config.looks, []
        for problem in problems:
            features = features_of(problem)
            first = first_schedules(features)
            schedules = policy.schedules(features, first, span, looks, JUDGED, seed=0)
            spans = [span(schedule) for schedule in schedules if schedule.complete]
            rewards.append(least_makespan(problem) / min(spans) if spans else 0.0)
        return rewards

    def features(self) -> dict[str, Any]:
        """Names of what the policy looks at: shares of a schedule's span, which have no scale."""
        return {"names": FEATURES}

    def _policy(self) -> TrainedPilotMakespan:
        return TrainedPilotMakespan(network_of(arrays_of(self.module)))

    def _study(
        self, row: int, rng: np.random.Generator, policy: TrainedPilotMakespan
    ) -> JudgedSchedule | None:
        """Look at a schedule of a problem; None where nothing good is known, or rules forbid it."""
        features, target, first = self._features[row], self._targets[row], self._first[row]
        if target is None or not first or not span(first[0]) > 0:
            return None
        schedule = self._met(features, first, rng, policy)
        n = features.tasks.n_tasks
        before = before_of(features.tasks, schedule, NOISE * rng.random() * rng.random(n))
        mixed = np.where(rng.random(n) < rng.random(), target, schedule.place)
        given = mixed[before.order][None].astype(np.int32)
        record = new_record(1, features)
        likeliest = np.full((1, n), -1, np.float32)
        rollouts(features, before, policy.network, given, likeliest, record)
        right = target[before.order][None].astype(np.int32)
        if not record.open[0, np.arange(n), right[0]].all():  # what stays together was torn apart
            return None
        return JudgedSchedule(record, right, span(schedule))

    def _met(
        self,
        features: PilotMakespanFeatures,
        first: list[ListSchedule],
        rng: np.random.Generator,
        policy: TrainedPilotMakespan,
    ) -> ListSchedule:
        """One of the first schedules, rebuilt a few times."""
        schedule = first[rng.integers(len(first))]
        for _ in range(rng.integers(self.config.rebuilt, endpoint=True)):
            rebuilt = policy.rebuilt(features, schedule, chance(features, rng))
            if rebuilt.complete:
                schedule = rebuilt
        return schedule
