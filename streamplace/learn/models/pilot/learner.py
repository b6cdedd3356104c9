"""Training of pilot: it imitates good placements, then improves its own decisions.

Rollouts are sampled from the policy. At some of their decisions every open device a is tried and
the placement is completed greedily, which gives a value Q(a) of this decision alone, whatever the
later decisions of the rollout were. The policy π then moves towards π(a) · exp(Q(a) / τ),
normalised: the best policy that stays near the present one. Besides, the best placement known is
imitated. A share of the rollouts runs on random clusters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from streamsim.canonical import canonical
from torch import Tensor

from streamplace.errors import FormatError
from streamplace.learn.algorithms.decisions import DecisionRecord, packed
from streamplace.learn.algorithms.memory import RowMemory
from streamplace.learn.learner import ALL, Selection, StepReport
from streamplace.learn.models.pilot.features import PilotFeatures, features_of
from streamplace.learn.models.pilot.module import PilotModule, ProblemBatch, StepBatch
from streamplace.learn.models.pilot.network import PilotNetwork, heads_of, network_of
from streamplace.learn.models.pilot.options import LOOKS, WALKS, PilotConfig
from streamplace.learn.models.pilot.placing import FEATURES, TrainedPilot
from streamplace.learn.models.pilot.rollout import (
    PilotHeads,
    alternatives,
    new_record,
    places_after,
    rollouts,
)
from streamplace.learn.parameters import arrays_of
from streamplace.learn.policy_learner import PolicyLearner, mean_entropy
from streamplace.learn.registry import LearningTask
from streamplace.model.arrays import Floats, Ints, Longs, Singles
from streamplace.model.cluster import Cluster
from streamplace.model.devices import SLOWEST, Devices
from streamplace.model.problem import Problem
from streamplace.model.units import LARGEST


@dataclass(frozen=True, slots=True)
class WeighedRollouts:
    """Rollouts of one problem, and their weights in the loss."""

    record: DecisionRecord
    chosen: Ints  # [S, T]
    imitation: float  # weight of −log π(rollout)
    q_values: Singles  # [S, T, D] of every alternative, relative to the best; NaN where not tried


@dataclass(frozen=True, slots=True)
class StudiedProblem:
    """The rollouts of one problem."""

    features: PilotFeatures
    studies: tuple[WeighedRollouts, ...]
    reward: float
    best: float


class PilotLearner(PolicyLearner[PilotConfig]):
    """Pilot on its training problems; see `streamplace.learn.policy_learner`."""

    def __init__(self, task: LearningTask, config: PilotConfig) -> None:
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
        """Loss of rollouts of these problems."""
        network = network_of(arrays_of(self.module))
        studied = self.studied(rows, seed, lambda row, rng: self._study(row, epoch, rng, network))
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
        return self.for_each(
            lambda problem: float(self.reward(problem, pilot.greedy(problem, WALKS, LOOKS)).max()),
            problems,
        )

    def features(self) -> dict[str, Any]:
        """Names of the features; they are in yardsticks, so no mean or deviation is stored."""
        return {"names": FEATURES}

    def _loss(self, studied: Sequence[StudiedProblem]) -> tuple[Tensor, float]:
        """Loss of the rollouts, and the sum over problems of the mean entropy per decision."""
        features, device = [each.features for each in studied], self.task.device
        studies = [(i, study) for i, each in enumerate(studied) for study in each.studies]
        if not studies:
            return self.no_loss(), 0.0
        batch = ProblemBatch.of(features, device)
        steps = StepBatch.of(
            features, [(i, study.record, study.chosen) for i, study in studies], device
        )
        log_p = self.module(batch, steps)
        taken = log_p.gather(1, steps.chosen[:, None])[:, 0]
        imitation = [np.full(study.chosen.size, study.imitation) for _, study in studies]
        weight = torch.from_numpy(np.concatenate(imitation).astype(np.float32)).to(device)
        q_values = packed([study.q_values for _, study in studies], missing=np.nan)
        gain = towards_q_values(
            log_p, torch.from_numpy(q_values).to(device), self.config.temperature
        )
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
            # generator of its own: what is only reported must not change what is drawn later
            chosen, _ = self._sampled(features, heads, np.random.default_rng((row, epoch)))
            values = self.reward(problem, places_after(features, chosen[chosen[:, 0] >= 0], 1))
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
        record = DecisionRecord(
            record.devices[through], record.steps[through], record.open[through]
        )
        chosen = chosen[through]
        tried = alternatives(record, chosen, self.config.forks, rng)
        greedy = np.full(tried.given.shape, -1, np.float32)
        ends, _ = rollouts(features, heads, tried.given, greedy, new_record(0, features))
        through = ends[:, 0] >= 0
        places = places_after(features, np.concatenate([chosen, ends[through]]), 1)
        values = self.reward(problem, places)
        gained = np.zeros(len(ends))
        gained[through] = values[len(chosen) :] / max(float(values.max(initial=0)), LEAST)
        return WeighedRollouts(record, chosen, 0.0, tried.q_values(gained)), places, values

    def _sampled(
        self, features: PilotFeatures, heads: PilotHeads, rng: np.random.Generator
    ) -> tuple[Ints, DecisionRecord]:
        """Rollouts in which some decisions are drawn, and the inputs of all decisions."""
        given = np.full((self.config.samples, len(features.order)), -1, np.int32)
        uniform = rng.random(given.shape, dtype=np.float32)
        uniform[rng.random(given.shape) >= self.config.exploration] = -1
        record = new_record(len(given), features)
        chosen, _ = rollouts(features, heads, given, uniform, record)
        return chosen, record


def towards_q_values(log_p: Tensor, q_values: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of the policy with π(a) · exp(Q(a) / τ), over decisions with alternatives."""
    tried = ~q_values.isnan().all(1)
    now, gain = log_p[tried], q_values[tried].nan_to_num(0.0)
    better = (now.detach() + gain / temperature).softmax(-1)
    return -(better * now.masked_fill(now == -torch.inf, 0.0)).sum()


def _canonical(features: PilotFeatures, placement: Ints) -> Ints:
    """Device of every unit, interchangeable devices numbered in the order of the decisions."""
    place = np.zeros(features.level.n_units, np.int32)
    place[features.unit_of] = placement
    return np.asarray(canonical(place[None], features.order, features.group)[0])


def _imitated(
    features: PilotFeatures, heads: PilotHeads, placement: Ints, weight: float
) -> WeighedRollouts:
    """Rollout that follows a placement."""
    given, record = placement[features.order][None], new_record(1, features)
    chosen, _ = rollouts(features, heads, given, np.zeros(given.shape, np.float32), record)
    return WeighedRollouts(record, chosen, weight, np.full(record.open.shape, np.nan, np.float32))


LEAST = 1e-9
"""Smallest gain in reward that replaces a placement."""


class BestPlacements(RowMemory):
    """Devices of all units of every problem, None as long as there is no placement."""

    def __init__(
        self, placements: Sequence[Ints | None], rewards: Sequence[float], sizes: Longs
    ) -> None:
        self.placements = list(placements)
        self._sizes = sizes  # [P, 2] units and devices of every problem
        self.rewards: Floats = np.array(rewards, np.float64)
        super().__init__({"best": self.rewards})

    def meet(self, row: int, placement: Ints, reward: float) -> None:
        """Remember a placement that is better than the best so far."""
        if reward > self.rewards[row] + LEAST:
            self.rewards[row], self.placements[row] = reward, placement

    def state(self, rows: Selection = ALL) -> dict[str, NDArray[Any]]:
        """Rewards, and the placements one after the other."""
        chosen = [self.placements[i] for i in np.arange(len(self.placements))[rows].tolist()]
        parts = [np.empty(0, np.int32) if part is None else part for part in chosen]
        ends = np.cumsum([len(part) for part in parts])
        return {**super().state(rows), "known": np.concatenate(parts), "ends": ends}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Selection = ALL) -> None:
        """Restore the arrays of `state`."""
        places, ends, best = state["known"], state["ends"], state["best"]
        numbers, (units, devices) = np.arange(len(self.placements))[rows], self._sizes[rows].T
        sizes = np.diff(ends, prepend=0)
        fits = (
            best.shape == ends.shape == units.shape
            and bool(((sizes == 0) | (sizes == units)).all())
            and ends[-1] == len(places)
            and bool(((places >= 0) & (places < np.repeat(devices, sizes))).all())
        )
        if not fits:
            raise FormatError(
                "the checkpoint: its placements belong to other problems; train again"
            )
        super().restore(state, rows)
        for i, part in zip(numbers.tolist(), np.split(places, ends[:-1]), strict=True):
            self.placements[i] = part.copy() if len(part) else None


FEWEST, MOST = 2, 5
UNEVEN = 0.5
"""Share of the random clusters whose devices and links differ among themselves."""
SPREAD = 2.0
"""Speeds and bandwidths lie between the usual ones divided and multiplied by this."""


def elsewhere(problem: Problem, rng: np.random.Generator) -> Problem:
    """Put the same graph on a random cluster of two to five devices; constraints are dropped.

    Every device has all tags that operators require.
    """
    usual = problem.cluster.devices
    bandwidth = problem.cluster.bandwidth_bps
    between = bandwidth[~np.eye(len(bandwidth), dtype=bool)]
    n = int(rng.integers(FEWEST, MOST, endpoint=True))
    mips = np.full(n, usual.speed.mean()) * _factors(rng, 1)
    wires = np.full((n, n), between.mean() if len(between) else 1e9) * _factors(rng, 1)
    if rng.random() < UNEVEN:
        mips *= _factors(rng, n)
        wires *= _factors(rng, (n, n))
    cores = int(np.median(usual.cores))
    tags = frozenset().union(*problem.graph.operators.requires)
    names = [f"d{i}" for i in range(n)]
    devices = Devices(
        names, mips=mips.clip(SLOWEST, LARGEST), cores=np.full(n, cores), tags=[tags] * n
    )
    wires = wires.clip(SLOWEST, LARGEST)
    return Problem(problem.graph, Cluster(devices, wires, np.zeros((n, n))))


def _factors(rng: np.random.Generator, size: int | tuple[int, int]) -> np.ndarray:
    """Factors between 1 / SPREAD and SPREAD, their logarithms uniform."""
    return np.exp(rng.uniform(-np.log(SPREAD), np.log(SPREAD), size))
