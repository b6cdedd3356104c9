"""Training of the policy that rebuilds schedules, from good placements; and its network in torch.

A first schedule is drawn, sometimes rebuilt by the present policy, and all its tasks are decided
again. The tasks before the present one are partly on their devices in the good placement and partly
on those in the schedule, since a search meets both. The label is the present task's device in the
good placement,

    maximise  Σ log π(good device of v | features of v, the schedule, and the tasks before v)

so that the policy learns how likely every device is to be right, not only which is likeliest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from streamplace.learn.algorithms.kernels import DecisionRecord, joined, weights_of
from streamplace.learn.learner import StepReport
from streamplace.learn.learner_base import (
    BestRewards,
    PolicyLearner,
    among_open,
    log_probabilities,
    mean_entropy,
)
from streamplace.learn.models.pilot_makespan.features import (
    PilotMakespanFeatures,
    TaskDeviceFeature,
    features_of,
    previous_of,
)
from streamplace.learn.models.pilot_makespan.model import PilotMakespanConfig
from streamplace.learn.models.pilot_makespan.placing import (
    FEATURES,
    NOISE,
    TrainedPilotMakespan,
    chance,
    first_schedules,
    span,
)
from streamplace.learn.models.pilot_makespan.rollouts import (
    PilotMakespanNetwork,
    maps_of,
    recorded_rollouts,
)
from streamplace.learn.parameters import LinearMaps, arrays_of
from streamplace.learn.registry import LearningTask
from streamplace.model.arrays import Ints, Longs
from streamplace.model.problem import Problem
from streamplace.objectives.makespan import least_makespan
from streamplace.scheduling.insertion import ListSchedule

N_SAMPLES = 30
"""Samples of a validation, besides the likeliest schedules."""
FORESIGHT = -10.0
"""Initial weight of the feature that the foresight heuristic minimises."""
OUT_STD = 0.1
"""Initial deviation of the last layer's weights."""


@dataclass(frozen=True, slots=True)
class JudgedSchedule:
    """Inputs of the decisions about one schedule, and the right device of every task."""

    record: DecisionRecord
    right: Ints  # [1, N] by step
    span: float


class PilotMakespanLearner(PolicyLearner[PilotMakespanConfig]):
    """The policy on its training problems; see `streamplace.learn.learner_base`."""

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
        """Cross-entropy of the decisions about schedules of these problems with the good ones."""
        policy = self._policy()
        all_studies = self.studied(rows, seed, lambda row, rng: self._study(row, rng, policy))
        pairs = zip(rows.tolist(), all_studies, strict=True)
        studies = [(row, study) for row, study in pairs if study is not None]
        rewards = np.array([_reward(self._bounds[row], study.span) for row, study in studies])
        for (row, _), value in zip(studies, rewards.tolist(), strict=True):
            self._best.update(row, value)
        best, reward = float(self._best.rewards[rows].sum()), float(rewards.sum())
        if not studies:
            return self.no_loss(), StepReport(len(rows), reward, best, 0.0, 0)
        decisions = joined([study.record for _, study in studies])
        log_p = self.module(*map(self.tensor, decisions))
        right = np.concatenate([study.right[0] for _, study in studies]).astype(np.int64)
        taken = log_p.gather(1, self.tensor(right)[:, None])[:, 0]
        sizes = [study.right.size for _, study in studies]
        share = np.repeat(1 / np.array(sizes), sizes).astype(np.float32)
        loss = -(taken * self.tensor(share)).sum()
        entropy = mean_entropy(log_p, self.tensor(np.repeat(np.arange(len(sizes)), sizes)))
        return loss, StepReport(len(rows), reward, best, entropy, len(studies))

    def judged(self, problems: Sequence[Problem], numbers: Sequence[int]) -> list[float]:
        """Bound over the makespan of the best of a few schedules."""
        policy, sweeps = self._policy(), self.config.sweeps

        def reward(problem: Problem) -> float:
            features = features_of(problem)
            first = first_schedules(features)
            schedules = policy.schedules(features, first, span, sweeps, N_SAMPLES, seed=0)
            spans = [span(schedule) for schedule in schedules if schedule.complete]
            return _reward(least_makespan(problem), min(spans)) if spans else 0.0

        return self.for_each(reward, problems)

    def features(self) -> dict[str, Any]:
        """Names of the features: shares of a schedule's span, which need no scale."""
        return {"names": FEATURES}

    def _policy(self) -> TrainedPilotMakespan:
        return TrainedPilotMakespan(weights_of(PilotMakespanNetwork, arrays_of(self.module)))

    def _study(
        self, row: int, rng: np.random.Generator, policy: TrainedPilotMakespan
    ) -> JudgedSchedule | None:
        """Decide about a schedule; None if no good placement is known or the rules forbid it."""
        features, target, first = self._features[row], self._targets[row], self._first[row]
        if target is None or not first or not span(first[0]) > 0:
            return None
        schedule = self._drawn(features, first, rng, policy)
        n = features.tasks.n_tasks
        before = previous_of(features.tasks, schedule, NOISE * rng.random() * rng.random(n))
        mixed = np.where(rng.random(n) < rng.random(), target, schedule.place)
        fixed = mixed[before.order][None].astype(np.int32)
        likeliest = np.full((1, n), -1, np.float32)
        _, _, record = recorded_rollouts(features, before, policy.network, fixed, likeliest)
        right = target[before.order][None].astype(np.int32)
        if not record.open[0, np.arange(n), right[0]].all():  # colocated tasks were separated
            return None
        return JudgedSchedule(record, right, span(schedule))

    def _drawn(
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


def _reward(bound: float, makespan: float) -> float:
    """Bound over the makespan; 1 where tasks and transfers take no time."""
    return bound / makespan if makespan > 0 else 1.0


class PilotMakespanModule(LinearMaps):
    """The policy, as in `rollouts`."""

    def __init__(self, width: int) -> None:
        super().__init__(maps_of(width))
        with torch.no_grad():
            self.linear("out").weight.normal_(std=OUT_STD)
            skip = self.linear("skip").weight.zero_()
            skip[0, TaskDeviceFeature.FINISH_AND_WAY_TO_THE_END] = FORESIGHT

    def forward(self, devices: Tensor, steps: Tensor, is_open: Tensor) -> Tensor:
        """Log-probabilities [P, D] of decisions; -inf where a device was not open."""
        first = (self.linear("device")(devices) + self.linear("step")(steps)[:, None]).relu()
        second = among_open(first, is_open, self.linear("own"), self.linear("mean"))
        return log_probabilities(self.linear("out")(second) + self.linear("skip")(devices), is_open)
