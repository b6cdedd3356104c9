"""How pilot learns: it imitates good placements, then what its own answers could have been.

Rollouts are sampled from the policy. At some of their decisions every open device a is tried and
the placement completed greedily, which gives a value Q(a): what this very decision is worth, free
of the luck of the others. The policy then moves towards π(a) · exp(Q(a) / τ), normalised: the best
policy that stays near the present one (an advantage over the mean of the alternatives, as in
equation 4 of the paper, but per decision). Besides, the best placement known is imitated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from streamsim.canonical import canonical
from torch import Tensor

from streamplace.learn.algorithms.worth import mean_entropy, side_by_side, towards_worth
from streamplace.learn.learner import StepReport
from streamplace.learn.models.pilot.alternatives import alternatives
from streamplace.learn.models.pilot.features import PilotFeatures, features_of
from streamplace.learn.models.pilot.memory import LEAST, BestPlacements
from streamplace.learn.models.pilot.module import PilotModule, ProblemBatch, StepBatch
from streamplace.learn.models.pilot.network import PilotNetwork, heads_of, network_of
from streamplace.learn.models.pilot.options import PilotConfig
from streamplace.learn.models.pilot.placing import FEATURES, LOOKS, WALKS, TrainedPilot
from streamplace.learn.models.pilot.rollout import (
    NOTHING,
    PilotHeads,
    RolloutRecord,
    new_record,
    places_after,
    rollouts,
)
from streamplace.learn.models.pilot.variety import elsewhere
from streamplace.learn.parameters import arrays_of
from streamplace.learn.policy_learner import PolicyLearner
from streamplace.learn.registry import LearningTask
from streamplace.model.arrays import Floats, Ints, Longs, Singles
from streamplace.model.problem import Problem


@dataclass(frozen=True, slots=True)
class WeighedRollouts:
    """Rollouts of one problem, and what the loss makes of them."""

    record: RolloutRecord
    chosen: Ints  # [S, T]
    imitation: float  # weight of −log π(rollout)
    worth: Singles  # [S, T, D] of every alternative, relative to the best; NaN where not tried


@dataclass(frozen=True, slots=True)
class StudiedProblem:
    """What was tried on one problem."""

    features: PilotFeatures
    studies: tuple[WeighedRollouts, ...]
    reward: float
    best: float


class PilotLearner(PolicyLearner[PilotConfig]):
    """Pilot on its training problems; see `streamplace.learn.policy_learner`."""

    def __init__(self, task: LearningTask, config: PilotConfig) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(task.seed)
            super().__init__(task, config, PilotModule(config.width, config.rounds))
        self._features = [features_of(problem) for problem in task.training]
        targets = task.targets or [None] * self.n_problems
        placements = [
            None if target is None else _canonical(features, target)
            for features, target in zip(self._features, targets, strict=True)
        ]
        sizes = [(f.level.n_units, len(f.group)) for f in self._features]
        self._best = BestPlacements(
            placements, [self._value(*each) for each in enumerate(placements)], np.array(sizes)
        )
        self.memories = (self._best,)

    @property
    def sizes(self) -> Longs:
        """Units of each training problem."""
        return np.array([features.level.n_units for features in self._features], np.int64)

    def loss(self, rows: Longs, epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Roll out these problems, and weigh what came out."""
        rng, network = np.random.default_rng(seed), network_of(arrays_of(self.module))
        studied = [self._study(row, epoch, rng, network) for row in rows.tolist()]
        loss, entropy = self._loss(studied)
        return loss, StepReport(
            len(rows),
            sum(each.reward for each in studied),
            sum(each.best for each in studied),
            entropy,
        )

    def judged(self, problems: Sequence[Problem], numbers: Sequence[int]) -> list[float]:
        """Reward of the best of a few greedy placements."""
        pilot = TrainedPilot(network_of(arrays_of(self.module)))
        return [float(self.reward(p, pilot.greedy(p, WALKS, LOOKS)).max()) for p in problems]

    def features(self) -> dict[str, Any]:
        """Names of what pilot looks at; it measures in yardsticks, so there is no mean to keep."""
        return {"names": FEATURES}

    def _loss(self, studied: Sequence[StudiedProblem]) -> tuple[Tensor, float]:
        """Loss of what was tried, and the sum over problems of the mean entropy per decision."""
        features, device = [each.features for each in studied], self.task.device
        studies = [(i, study) for i, each in enumerate(studied) for study in each.studies]
        if not studies:
            return 0 * torch.cat([p.flatten() for p in self.module.parameters()]).sum(), 0.0
        batch = ProblemBatch.of(features, device)
        steps = StepBatch.of(
            features, [(i, study.record, study.chosen) for i, study in studies], device
        )
        log_p = self.module(batch, steps)
        taken = log_p.gather(1, steps.chosen[:, None])[:, 0]
        imitation = [np.full(study.chosen.size, study.imitation) for _, study in studies]
        weight = torch.from_numpy(np.concatenate(imitation).astype(np.float32)).to(device)
        worth = side_by_side([study.worth for _, study in studies], log_p.shape[1])
        gain = towards_worth(log_p, torch.from_numpy(worth).to(device), self.config.temperature)
        return gain - (taken * weight).sum(), mean_entropy(log_p, batch.graph[steps.unit])

    def _value(self, row: int, placement: Ints | None) -> float:
        if placement is None:
            return 0.0
        places = placement[None, self._features[row].unit_of]
        return float(self.reward(self.task.training[row], places)[0])

    def _study(
        self, row: int, epoch: int, rng: np.random.Generator, network: PilotNetwork
    ) -> StudiedProblem:
        """Imitate the best known placement of a problem, and study rollouts of it."""
        config, best = self.config, self._best.placements[row]
        problem, features = self.task.training[row], self._features[row]
        imitating = best is not None and epoch < config.warm_up
        home = imitating or rng.random() >= config.variety
        if not home:
            problem, best = elsewhere(problem, rng), None
            features = features_of(problem)
        heads, studies = heads_of(network, features), []
        if best is not None:
            weight = 1.0 if imitating else config.imitation
            studies.append(_imitated(features, heads, best, weight))
        best_reward = float(self._best.rewards[row])
        if imitating:
            luck = np.random.default_rng((row, epoch))  # what is only reported changes nothing else
            chosen, _ = self._sampled(features, heads, luck)
            values = self._values(problem, features, chosen[chosen[:, 0] >= 0])
            reward = float(values.mean()) if len(values) else 0.0
            return StudiedProblem(features, tuple(studies), reward, best_reward)
        study, places, values = self._studied(problem, features, heads, rng)
        if not len(study.chosen):
            return StudiedProblem(features, tuple(studies), 0.0, best_reward)
        if home:
            i = int(np.argmax(values))
            self._best.meet(row, _canonical(features, places[i]), values[i])
            best_reward = float(self._best.rewards[row])
        reward = float(values[: len(study.chosen)].mean())
        return StudiedProblem(features, (*studies, study), reward, best_reward)

    def _studied(
        self, problem: Problem, features: PilotFeatures, heads: PilotHeads, rng: np.random.Generator
    ) -> tuple[WeighedRollouts, Ints, Floats]:
        """Rollouts, alternatives to their decisions, and all placements with their values."""
        chosen, record = self._sampled(features, heads, rng)
        through = chosen[:, 0] >= 0
        record = RolloutRecord(record.devices[through], record.steps[through], record.open[through])
        chosen = chosen[through]
        tried = alternatives(record, chosen, self.config.forks, rng)
        greedy = np.full(tried.given.shape, -1, np.float32)
        ends, _ = rollouts(features, heads, tried.given, greedy, NOTHING)
        through = ends[:, 0] >= 0
        places = places_after(features, np.concatenate([chosen, ends[through]]), 1)
        values = self.reward(problem, places)
        gained = np.zeros(len(ends))
        gained[through] = values[len(chosen) :] / max(float(values.max(initial=0)), LEAST)
        return WeighedRollouts(record, chosen, 0.0, tried.worth(gained)), places, values

    def _sampled(
        self, features: PilotFeatures, heads: PilotHeads, rng: np.random.Generator
    ) -> tuple[Ints, RolloutRecord]:
        """Rollouts in which some decisions are drawn, and what they saw."""
        given = np.full((self.config.samples, len(features.order)), -1, np.int32)
        uniform = rng.random(given.shape, dtype=np.float32)
        uniform[rng.random(given.shape) >= self.config.exploration] = -1
        record = new_record(len(given), features)
        chosen, _ = rollouts(features, heads, given, uniform, record)
        return chosen, record

    def _values(self, problem: Problem, features: PilotFeatures, chosen: Ints) -> Floats:
        return self.reward(problem, places_after(features, chosen, 1))


def _canonical(features: PilotFeatures, placement: Ints) -> Ints:
    """Device of every unit, interchangeable devices numbered in the order of the decisions."""
    place = np.zeros(features.level.n_units, np.int32)
    place[features.unit_of] = placement
    return np.asarray(canonical(place[None], features.order, features.group)[0])


def _imitated(
    features: PilotFeatures, heads: PilotHeads, placement: Ints, weight: float
) -> WeighedRollouts:
    """Follow a placement."""
    given, record = placement[features.order][None], new_record(1, features)
    chosen, _ = rollouts(features, heads, given, np.zeros(given.shape, np.float32), record)
    return WeighedRollouts(record, chosen, weight, np.full(record.open.shape, np.nan, np.float32))
