"""Pilot in torch: the log-probabilities of many rollouts of many problems in one pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from streamplace.learn.algorithms.decisions import DecisionRecord, packed
from streamplace.learn.models.pilot.features import PAIR_FEATURES, UNIT_FEATURES, PilotFeatures
from streamplace.learn.models.pilot.measures import N_DEVICE, N_STEP
from streamplace.learn.policy_learner import among_open, log_probabilities
from streamplace.model.arrays import Ints


@dataclass(frozen=True, slots=True)
class ProblemBatch:
    """G problems side by side, nothing padded (U units and E pairs in all)."""

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
    def of(cls, views: Sequence[PilotFeatures], device: str = "cpu") -> "ProblemBatch":
        """Concatenate problems."""
        sizes = np.array([features.level.n_units for features in views])
        base = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        degrees = [np.diff(features.level.start) for features in views]
        peers = [features.level.peer + b for features, b in zip(views, base, strict=True)]
        degree = np.concatenate(degrees)
        ranks = [np.argsort(features.order[::-1]) for features in views]
        rank = np.concatenate(ranks)
        columns = (
            np.concatenate([features.units for features in views]),
            np.concatenate([features.pairs for features in views]),
            np.repeat(np.arange(sizes.sum()), degree),
            np.concatenate(peers).astype(np.int64),
            np.repeat(np.arange(len(views)), sizes),
            sizes,
            np.maximum(degree, 1)[:, None].astype(np.float32),
            np.repeat(np.arange(len(views)), sizes) * sizes.max() + rank,
            np.maximum(rank, 1)[:, None].astype(np.float32),
        )
        return cls(*(torch.from_numpy(column).to(device) for column in columns))


@dataclass(frozen=True, slots=True)
class StepBatch:
    """All decisions in the first look of many rollouts (R rollouts, P decisions, D devices).

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
        views: Sequence[PilotFeatures],
        rollouts: Sequence[tuple[int, DecisionRecord, Ints]],
        device: str,
    ) -> "StepBatch":
        """Decisions [S, U] of recorded rollouts of these problems."""
        most_d = max(record.open.shape[2] for _, record, _ in rollouts)
        bases = np.concatenate(([0], np.cumsum([len(features.order) for features in views])))
        longest = max(chosen.shape[1] for _, _, chosen in rollouts)
        n_rollouts = sum(len(chosen) for _, _, chosen in rollouts)
        placed = np.full((n_rollouts, longest), bases[-1], np.int64)
        went = np.zeros((n_rollouts, longest, most_d), np.float32)
        columns: list[tuple[NDArray[Any], ...]] = []
        row = 0
        for i, _, chosen in rollouts:
            s, u = chosen.shape
            unit = np.tile(views[i].order + bases[i], s).astype(np.int64)
            to, step = chosen.astype(np.int64).ravel(), np.tile(np.arange(u), s)
            rollout = np.repeat(np.arange(row, row + s), u)
            placed[rollout, step], went[rollout, step, to] = unit, 1
            columns.append((unit, to, rollout * longest + step))
            row += s
        records = [record for _, record, _ in rollouts]
        joined = (
            packed([record.devices for record in records]),
            np.concatenate([record.steps.reshape(-1, N_STEP) for record in records]),
            packed([record.open for record in records]),
            *(np.concatenate(column) for column in zip(*columns, strict=True)),
        )
        return cls(*(torch.from_numpy(column).to(device) for column in (*joined, placed, went)))


class RoundLayer(nn.Module):
    """One round of messages, as in `streamplace.learn.models.pilot.network`."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.peer = nn.Linear(width, width, bias=False)
        self.pair = nn.Linear(len(PAIR_FEATURES), width, bias=False)
        self.update = nn.Linear(4 * width, width)

    def forward(self, h: Tensor, views: ProblemBatch) -> Tensor:
        """States of the units [U, H] after the round."""
        message = (self.peer(h)[views.peer] + self.pair(views.pairs)).relu()
        mean = torch.zeros_like(h).index_add(0, views.owner, message) / views.degree
        problem_mean = pooled_mean(h, views)[views.graph]
        unplaced = mean_of_unplaced(h, views)
        return h + self.update(torch.cat([h, mean, problem_mean, unplaced], 1)).relu()


class PilotModule(nn.Module):
    """The policy; parameters carry the names that `network_of` reads."""

    def __init__(self, width: int, rounds: int) -> None:
        super().__init__()
        self.enter = nn.Linear(len(UNIT_FEATURES), width)
        self.rounds = nn.ModuleList(RoundLayer(width) for _ in range(rounds))
        self.unit = nn.Linear(3 * width, width)
        self.content = nn.Linear(width, width, bias=False)
        self.device = nn.Linear(N_DEVICE, width, bias=False)
        self.step = nn.Linear(N_STEP, width, bias=False)
        self.own = nn.Linear(width, width)
        self.mean = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, 1, bias=False)

    def encoded(self, views: ProblemBatch) -> tuple[Tensor, Tensor]:
        """First layer's part of a unit to be placed, and of a unit on its device; [U, H]."""
        h = self.enter(views.units).relu()
        for turn in self.rounds:
            h = turn(h, views)
        most = torch.full((len(views.sizes), h.shape[1]), -torch.inf, device=h.device)
        index = views.graph[:, None].expand_as(h)
        most = most.scatter_reduce(0, index, h, "amax", include_self=False)
        pooled = torch.cat([pooled_mean(h, views), most], 1)[views.graph]
        return self.unit(torch.cat([h, pooled], 1)), self.content(h)

    def forward(self, views: ProblemBatch, steps: StepBatch) -> Tensor:
        """Log-probabilities [P, D] of all decisions; -inf where a device was not open."""
        unit, content = self.encoded(views)
        none = content.new_zeros(1, content.shape[1])
        carried = torch.cat([content, none])[steps.placed][:, :, None] * steps.went[..., None]
        contents = carried.cumsum(1) - carried
        carried_before = contents.flatten(0, 1)[steps.at]
        base = unit[steps.unit] + self.step(steps.steps)
        first = (base[:, None] + carried_before + self.device(steps.devices)).relu()
        second = among_open(first, steps.open, self.own, self.mean)
        return log_probabilities(self.out(second), steps.open)


def pooled_mean(h: Tensor, views: ProblemBatch) -> Tensor:
    """Mean state [G, H] of the units of every problem."""
    sums = h.new_zeros(len(views.sizes), h.shape[1]).index_add(0, views.graph, h)
    return sums / views.sizes[:, None]


def mean_of_unplaced(h: Tensor, views: ProblemBatch) -> Tensor:
    """Mean state [U, H] of the units that are placed after each unit; 0 where there is none."""
    g, longest = len(views.sizes), int(views.sizes.max())
    slots = h.new_zeros(g * longest, h.shape[1]).index_copy(0, views.slot, h)
    sums = slots.view(g, longest, -1).cumsum(1).flatten(0, 1)[views.slot] - h
    return sums / views.later
