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
from streamsim import _core
from torch import Tensor

from streamplace.learn.algorithms.kernels import DecisionRecord, joined, packed
from streamplace.learn.learner import ALL, Selection, StepReport
from streamplace.learn.learner_base import (
    PolicyLearner,
    RowMemory,
    among_open,
    log_probabilities,
    mean_entropy,
)
from streamplace.learn.models.pilot.features import PilotFeatures, features_of
from streamplace.learn.models.pilot.model import ROLLOUTS, SWEEPS, PilotConfig
from streamplace.learn.models.pilot.placing import FEATURES, TrainedPilot
from streamplace.learn.models.pilot.rollouts import (
    PilotHeads,
    PilotNetwork,
    alternatives,
    heads_of,
    maps_of,
    network_of,
    places_after,
    recorded_rollouts,
    rollouts,
)
from streamplace.learn.parameters import LinearMaps, arrays_of
from streamplace.learn.registry import LearningTask
from streamplace.model.arrays import Floats, Ints, Longs, Singles
from streamplace.model.cluster import Cluster
from streamplace.model.devices import MIN_MIPS, Devices
from streamplace.model.problem import Problem
from streamplace.model.units import MAX_VALUE

MIN_GAIN = 1e-9
"""Smallest gain in reward that replaces a placement."""
MIN_DEVICES, MAX_DEVICES = 2, 5
"""Numbers of devices of the random clusters."""
UNEVEN = 0.5
"""Share of the random clusters whose devices and links differ among themselves."""
FACTOR = 2.0
"""Their speeds and bandwidths lie between the usual ones divided and multiplied by this."""


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
    evaluations: int


class PilotLearner(PolicyLearner[PilotConfig]):
    """Pilot on its training problems; see `streamplace.learn.learner_base`."""

    def __init__(self, task: LearningTask, config: PilotConfig) -> None:
        super().__init__(task, config, PilotModule(config.width, config.rounds))
        self._features = [features_of(problem) for problem in task.training]
        targets = task.targets or [None] * self.n_problems
        placements = [
            None if target is None else _canonical(features, target)
            for features, target in zip(self._features, targets, strict=True)
        ]
        rewards = [self._value(*each) for each in enumerate(placements)]
        self._best = BestPlacements(placements, rewards)
        self.memories = (self._best,)

    def sizes(self, epoch: int) -> Longs:
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
            sum(each.evaluations for each in studied),
        )

    def judged(self, problems: Sequence[Problem], numbers: Sequence[int]) -> list[float]:
        """Reward of the best of a few greedy placements."""
        pilot = TrainedPilot(network_of(arrays_of(self.module)))

        def best(problem: Problem) -> float:
            return float(self.reward(problem, pilot.greedy(problem, ROLLOUTS, SWEEPS)).max())

        return self.for_each(best, problems)

    def features(self) -> dict[str, Any]:
        """Names of the features; they are in yardsticks, so no mean or deviation is stored."""
        return {"names": FEATURES}

    def _loss(self, studied: Sequence[StudiedProblem]) -> tuple[Tensor, float]:
        """Loss of the rollouts, and the sum over problems of the mean entropy per decision."""
        features = [each.features for each in studied]
        studies = [(i, study) for i, each in enumerate(studied) for study in each.studies]
        if not studies:
            return self.no_loss(), 0.0
        recorded = [(i, study.record, study.chosen) for i, study in studies]
        batch = ProblemBatch.of(features, self.device)
        steps = StepBatch.of(features, recorded, self.device)
        log_p = self.module(batch, steps)
        taken = log_p.gather(1, steps.chosen[:, None])[:, 0]
        imitation = [np.full(study.chosen.size, study.imitation) for _, study in studies]
        weight = self.tensor(np.concatenate(imitation).astype(np.float32))
        q_values = packed([study.q_values for _, study in studies], missing=np.nan)
        gain = towards_q_values(log_p, self.tensor(q_values), self.config.temperature)
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
            # a separate generator, so that the report does not change later draws
            chosen, _ = self._sampled(features, heads, np.random.default_rng((row, epoch)))
            values = self.reward(problem, places_after(features, chosen[chosen[:, 0] >= 0], 1))
            reward = float(values.mean()) if len(values) else 0.0
            return StudiedProblem(features, tuple(studies), reward, best_reward, len(values))
        study, places, values = self._forked(problem, features, heads, rng)
        if not len(study.chosen):
            return StudiedProblem(features, tuple(studies), 0.0, best_reward, 0)
        if home:
            i = int(np.argmax(values))
            self._best.update(row, _canonical(features, places[i]), values[i])
            best_reward = float(self._best.rewards[row])
        reward = float(values[: len(study.chosen)].mean())
        return StudiedProblem(features, (*studies, study), reward, best_reward, len(values))

    def _forked(
        self, problem: Problem, features: PilotFeatures, heads: PilotHeads, rng: np.random.Generator
    ) -> tuple[WeighedRollouts, Ints, Floats]:
        """Rollouts, alternatives to their decisions, and all placements with their values."""
        chosen, record = self._sampled(features, heads, rng)
        through = chosen[:, 0] >= 0
        record, chosen = DecisionRecord._make(part[through] for part in record), chosen[through]
        tried = alternatives(record, chosen, self.config.forks, rng)
        greedy = np.full(tried.fixed.shape, -1, np.float32)
        ends = rollouts(features, heads, tried.fixed, greedy)
        through = ends[:, 0] >= 0
        places = places_after(features, np.concatenate([chosen, ends[through]]), 1)
        values = self.reward(problem, places)
        gained = np.zeros(len(ends))
        gained[through] = values[len(chosen) :] / max(float(values.max(initial=0)), MIN_GAIN)
        return WeighedRollouts(record, chosen, 0.0, tried.q_values(gained)), places, values

    def _sampled(
        self, features: PilotFeatures, heads: PilotHeads, rng: np.random.Generator
    ) -> tuple[Ints, DecisionRecord]:
        """Rollouts in which some decisions are drawn, and the inputs of all decisions."""
        fixed = np.full((self.config.samples, len(features.order)), -1, np.int32)
        uniform = rng.random(fixed.shape, dtype=np.float32)
        uniform[rng.random(fixed.shape) >= self.config.exploration] = -1
        chosen, _, record = recorded_rollouts(features, heads, fixed, uniform)
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
    return np.asarray(_core.canonical(place[None], features.order, features.group)[0])


def _imitated(
    features: PilotFeatures, heads: PilotHeads, placement: Ints, weight: float
) -> WeighedRollouts:
    """Rollout that follows a placement."""
    fixed = placement[features.order][None]
    uniform = np.zeros(fixed.shape, np.float32)
    chosen, _, record = recorded_rollouts(features, heads, fixed, uniform)
    return WeighedRollouts(record, chosen, weight, np.full(record.open.shape, np.nan, np.float32))


class BestPlacements(RowMemory):
    """Devices of all units of every problem, None as long as there is no placement."""

    def __init__(self, placements: Sequence[Ints | None], rewards: Sequence[float]) -> None:
        self.placements = list(placements)
        self.rewards: Floats = np.array(rewards, np.float64)
        super().__init__({"best": self.rewards})

    def update(self, row: int, placement: Ints, reward: float) -> None:
        """Remember a placement that is better than the best so far."""
        if reward > self.rewards[row] + MIN_GAIN:
            self.rewards[row], self.placements[row] = reward, placement

    def state(self, rows: Selection = ALL) -> dict[str, NDArray[Any]]:
        """Rewards, and the placements one after the other."""
        chosen = [self.placements[i] for i in np.arange(len(self.placements))[rows].tolist()]
        parts = [np.empty(0, np.int32) if part is None else part for part in chosen]
        ends = np.cumsum([len(part) for part in parts])
        return {**super().state(rows), "known": np.concatenate(parts), "ends": ends}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Selection = ALL) -> None:
        """Restore the arrays of `state`."""
        super().restore(state, rows)
        numbers = np.arange(len(self.placements))[rows].tolist()
        for i, part in zip(numbers, np.split(state["known"], state["ends"][:-1]), strict=True):
            self.placements[i] = part.copy() if len(part) else None


def elsewhere(problem: Problem, rng: np.random.Generator) -> Problem:
    """Same graph on a random cluster of two to five devices, without constraints.

    Every device has all tags that operators require.
    """
    usual = problem.cluster.devices
    bandwidth = problem.cluster.bandwidth_bps
    between = bandwidth[~np.eye(len(bandwidth), dtype=bool)]
    n = int(rng.integers(MIN_DEVICES, MAX_DEVICES, endpoint=True))
    mips = np.full(n, usual.speed.mean()) * _factors(rng, 1)
    wires = np.full((n, n), between.mean() if len(between) else 1e9) * _factors(rng, 1)
    if rng.random() < UNEVEN:
        mips *= _factors(rng, n)
        wires *= _factors(rng, (n, n))
    cores = int(np.median(usual.cores))
    tags = frozenset().union(*problem.graph.operators.requires)
    names = [f"d{i}" for i in range(n)]
    devices = Devices(
        names, mips=mips.clip(MIN_MIPS, MAX_VALUE), cores=np.full(n, cores), tags=[tags] * n
    )
    wires = wires.clip(MIN_MIPS, MAX_VALUE)
    return Problem(problem.graph, Cluster(devices, wires, np.zeros((n, n))))


def _factors(rng: np.random.Generator, size: int | tuple[int, int]) -> np.ndarray:
    """Factors between 1 / FACTOR and FACTOR, their logarithms uniform."""
    return np.exp(rng.uniform(-np.log(FACTOR), np.log(FACTOR), size))


@dataclass(frozen=True, slots=True)
class ProblemBatch:
    """G problems side by side, nothing padded (U units and E pairs in all)."""

    longest: int  # T, units of the largest problem
    units: Tensor  # [U, 17]
    pairs: Tensor  # [E, 6]
    owner: Tensor  # [E] unit at this end
    peer: Tensor  # [E] unit at the other end
    graph: Tensor  # [U] problem of every unit
    sizes: Tensor  # [G]
    degree: Tensor  # [U, 1] entries of every unit, at least 1
    slot: Tensor  # [U] place of every unit in [G · T], its problem's units last to first
    later: Tensor  # [U, 1] units placed after this one, at least 1

    @classmethod
    def of(cls, problems: Sequence[PilotFeatures], device: torch.device) -> "ProblemBatch":
        """Concatenate problems."""
        sizes = np.array([features.level.n_units for features in problems])
        base = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        degrees = [np.diff(features.level.start) for features in problems]
        peers = [features.level.peer + b for features, b in zip(problems, base, strict=True)]
        degree = np.concatenate(degrees)
        ranks = [np.argsort(features.order[::-1]) for features in problems]
        rank = np.concatenate(ranks)
        columns = (
            np.concatenate([features.units for features in problems]),
            np.concatenate([features.pairs for features in problems]),
            np.repeat(np.arange(sizes.sum()), degree),
            np.concatenate(peers).astype(np.int64),
            np.repeat(np.arange(len(problems)), sizes),
            sizes,
            np.maximum(degree, 1)[:, None].astype(np.float32),
            np.repeat(np.arange(len(problems)), sizes) * sizes.max() + rank,
            np.maximum(rank, 1)[:, None].astype(np.float32),
        )
        return cls(int(sizes.max()), *(torch.from_numpy(column).to(device) for column in columns))


@dataclass(frozen=True, slots=True)
class StepBatch:
    """All decisions in the first sweep of many rollouts (R rollouts, P decisions, D devices).

    Rollouts are padded to T decisions for sums along them; all else is packed.
    """

    devices: Tensor  # [P, D, 20]
    steps: Tensor  # [P, 6]
    open: Tensor  # [P, D]
    unit: Tensor  # [P] among the units of all problems
    chosen: Tensor  # [P] device
    at: Tensor  # [P] position of the decision in [R · T]
    placed: Tensor  # [R, T] unit of every decision, the one behind the last for padding
    went: Tensor  # [R, T, D] 1 at its device

    @classmethod
    def of(
        cls,
        problems: Sequence[PilotFeatures],
        recorded: Sequence[tuple[int, DecisionRecord, Ints]],
        device: torch.device,
    ) -> "StepBatch":
        """Decisions [S, U] of recorded rollouts of these problems."""
        most_d = max(record.open.shape[2] for _, record, _ in recorded)
        bases = np.concatenate(([0], np.cumsum([len(features.order) for features in problems])))
        longest = max(chosen.shape[1] for _, _, chosen in recorded)
        n_rollouts = sum(len(chosen) for _, _, chosen in recorded)
        placed = np.full((n_rollouts, longest), bases[-1], np.int64)
        went = np.zeros((n_rollouts, longest, most_d), np.float32)
        columns: list[tuple[NDArray[Any], ...]] = []
        row = 0
        for i, _, chosen in recorded:
            s, u = chosen.shape
            unit = np.tile(problems[i].order + bases[i], s).astype(np.int64)
            to, step = chosen.astype(np.int64).ravel(), np.tile(np.arange(u), s)
            rollout = np.repeat(np.arange(row, row + s), u)
            placed[rollout, step], went[rollout, step, to] = unit, 1
            columns.append((unit, to, rollout * longest + step))
            row += s
        decisions = joined([record for _, record, _ in recorded])
        of_steps = (np.concatenate(column) for column in zip(*columns, strict=True))
        columns_of_all = (*decisions, *of_steps, placed, went)
        return cls(*(torch.from_numpy(c).to(device) for c in columns_of_all))


class PilotModule(LinearMaps):
    """The policy, as in `rollouts`."""

    def __init__(self, width: int, rounds: int) -> None:
        super().__init__(maps_of(width, rounds))
        self._rounds = rounds

    def encoded(self, batch: ProblemBatch) -> tuple[Tensor, Tensor]:
        """First layer's part of a unit to be placed, and of a unit on its device; [U, H]."""
        h = self.linear("enter")(batch.units).relu()
        for r in range(self._rounds):
            h = self._round(f"rounds.{r}", h, batch)
        most = h.new_full((len(batch.sizes), h.shape[1]), -torch.inf)
        index = batch.graph[:, None].expand_as(h)
        most = most.scatter_reduce(0, index, h, "amax", include_self=False)
        pooled = torch.cat([pooled_mean(h, batch), most], 1)[batch.graph]
        return self.linear("unit")(torch.cat([h, pooled], 1)), self.linear("content")(h)

    def _round(self, name: str, h: Tensor, batch: ProblemBatch) -> Tensor:
        """States of the units [U, H] after a round of messages."""
        peer, pair, update = (self.linear(f"{name}.{each}") for each in ("peer", "pair", "update"))
        message = (peer(h)[batch.peer] + pair(batch.pairs)).relu()
        mean = torch.zeros_like(h).index_add(0, batch.owner, message) / batch.degree
        problem_mean = pooled_mean(h, batch)[batch.graph]
        unplaced = mean_of_unplaced(h, batch)
        gained: Tensor = update(torch.cat([h, mean, problem_mean, unplaced], 1))
        return h + gained.relu()

    def forward(self, batch: ProblemBatch, steps: StepBatch) -> Tensor:
        """Log-probabilities [P, D] of all decisions; -inf where a device was not open."""
        unit, content = self.encoded(batch)
        none = content.new_zeros(1, content.shape[1])
        carried = torch.cat([content, none])[steps.placed][:, :, None] * steps.went[..., None]
        contents = carried.cumsum(1) - carried
        carried_before = contents.flatten(0, 1)[steps.at]
        base = unit[steps.unit] + self.linear("step")(steps.steps)
        first = (base[:, None] + carried_before + self.linear("device")(steps.devices)).relu()
        second = among_open(first, steps.open, self.linear("own"), self.linear("mean"))
        return log_probabilities(self.linear("out")(second), steps.open)


def pooled_mean(h: Tensor, batch: ProblemBatch) -> Tensor:
    """Mean state [G, H] of the units of every problem."""
    sums = h.new_zeros(len(batch.sizes), h.shape[1]).index_add(0, batch.graph, h)
    return sums / batch.sizes[:, None]


def mean_of_unplaced(h: Tensor, batch: ProblemBatch) -> Tensor:
    """Mean state [U, H] of the units that are placed after each unit; 0 where there is none."""
    g, longest = len(batch.sizes), batch.longest
    slots = h.new_zeros(g * longest, h.shape[1]).index_copy(0, batch.slot, h)
    sums = slots.view(g, longest, -1).cumsum(1).flatten(0, 1)[batch.slot] - h
    return sums / batch.later
