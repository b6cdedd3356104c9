"""How pilot learns: it imitates good placements, then what its own answers could have been.

Rollouts are sampled from the policy. At some of their decisions every open device a is tried and
the placement completed greedily, which gives a value Q(a): what this very decision is worth, free
of the luck of the others. The policy then moves towards π(a) · exp(Q(a) / τ), normalised: the best
policy that stays near the present one (an advantage over the mean of the alternatives, as in
equation 4 of the paper, but per decision). Besides, the best placement known is imitated.
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
from streamplace.learn.algorithms.worth import mean_entropy, side_by_side, towards_worth
from streamplace.learn.learner import ALL, Rows, StepReport
from streamplace.learn.models.pilot.alternatives import alternatives
from streamplace.learn.models.pilot.module import Pilot, Steps, Views
from streamplace.learn.models.pilot.network import Network, heads_of, network_of
from streamplace.learn.models.pilot.options import PilotConfig
from streamplace.learn.models.pilot.placing import FEATURES, LOOKS, WALKS, TrainedPilot
from streamplace.learn.models.pilot.rollout import (
    NOTHING,
    Heads,
    Trail,
    new_record,
    places_after,
    rollouts,
)
from streamplace.learn.models.pilot.variety import elsewhere
from streamplace.learn.models.pilot.view import View, view_of
from streamplace.learn.parameters import arrays_of
from streamplace.learn.registry import Task
from streamplace.learn.reward import Reward, reward_of
from streamplace.model.problem import Problem

Ints = NDArray[np.int32]
Singles = NDArray[np.float32]
Doubles = NDArray[np.float64]

LEAST = 1e-9
"""Stands for a reward of nothing where rewards are compared."""


@dataclass(frozen=True, slots=True)
class Study:
    """Rollouts of one problem, and what the loss makes of them."""

    record: Trail
    chosen: Ints  # [S, T]
    imitation: float  # weight of −log π(rollout)
    worth: Singles  # [S, T, D] of every alternative, relative to the best; NaN where not tried


@dataclass(frozen=True, slots=True)
class Trial:
    """What was tried on one problem."""

    view: View
    studies: tuple[Study, ...]
    reward: float
    best: float


class PilotLearner:
    """Pilot on its training problems; see `streamplace.learn.learner.Learner`."""

    def __init__(self, task: Task, config: PilotConfig) -> None:
        self._task, self._config = task, config
        self._views = [view_of(problem) for problem in task.training]
        self._reward: Reward = reward_of(task.objective, task.reward)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(task.seed)
            self.module = Pilot(config.width, config.rounds).to(task.device)
        self._known = [
            _canonical(view, target)
            for view, target in zip(self._views, self._targets(), strict=True)
        ]
        self._best = np.array(
            [
                self._value(problem, view, known)
                for problem, view, known in zip(
                    task.training, self._views, self._known, strict=True
                )
            ]
        )

    @property
    def n_problems(self) -> int:
        """Number of training problems."""
        return len(self._views)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Units of each training problem."""
        return np.array([view.level.n_units for view in self._views], np.int64)

    def loss(self, rows: NDArray[np.int64], epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Roll out these problems, and weigh what came out."""
        rng, network = np.random.default_rng(seed), network_of(arrays_of(self.module))
        trials = [self._trial(row, epoch, rng, network) for row in rows.tolist()]
        loss, entropy = self._loss(trials)
        return loss, StepReport(
            len(rows),
            sum(trial.reward for trial in trials),
            sum(trial.best for trial in trials),
            entropy,
        )

    def validate(self, rows: Rows = ALL) -> Doubles:
        """Relative throughput of the greedy placement of validation problems."""
        pilot = TrainedPilot(network_of(arrays_of(self.module)))
        numbers = np.arange(len(self._task.validation))[rows].tolist()
        problems = [self._task.validation[i] for i in numbers]
        return np.array([self._reward(p, pilot.greedy(p, WALKS, LOOKS)).max() for p in problems])

    def state(self, rows: Rows = ALL) -> dict[str, NDArray[Any]]:
        """Best placements known and their values."""
        asked = [self._known[i] for i in np.arange(self.n_problems)[rows].tolist()]
        empty = [np.empty(0, np.int32) if known is None else known for known in asked]
        ends = np.cumsum([len(known) for known in empty])
        return {"best": self._best[rows].copy(), "known": np.concatenate(empty), "ends": ends}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Rows = ALL) -> None:
        """Take back what `state` returned."""
        known, ends = state["known"], state["ends"]
        numbers = np.arange(self.n_problems)[rows].tolist()
        wanted = np.array([self._views[i].level.n_units for i in numbers])
        devices = np.array([self._task.training[i].n_devices for i in numbers])
        sizes = np.diff(ends, prepend=0)
        fits = (
            state["best"].shape == ends.shape == wanted.shape
            and bool(((sizes == 0) | (sizes == wanted)).all())
            and ends[-1] == len(known)
            and bool(((known >= 0) & (known < np.repeat(devices, sizes))).all())
        )
        if not fits:
            raise FormatError("the checkpoint: its placements are of other problems; train anew")
        self._best[rows] = state["best"]
        for i, part in zip(numbers, np.split(known, ends[:-1]), strict=True):
            self._known[i] = part.copy() if len(part) else None

    def spec(self) -> dict[str, Any]:
        """Options and features; pilot measures in yardsticks, so there is no mean to keep."""
        return {"config": self._config.model_dump(mode="json"), "features": {"names": FEATURES}}

    def _loss(self, trials: Sequence[Trial]) -> tuple[Tensor, float]:
        """Loss of what was tried, and the sum over problems of the mean entropy per decision."""
        views, device = [trial.view for trial in trials], self._task.device
        studies = [(i, study) for i, trial in enumerate(trials) for study in trial.studies]
        if not studies:
            return 0 * torch.cat([p.flatten() for p in self.module.parameters()]).sum(), 0.0
        batch = Views.of(views, device)
        steps = Steps.of(views, [(i, study.record, study.chosen) for i, study in studies], device)
        log_p = self.module(batch, steps)
        taken = log_p.gather(1, steps.chosen[:, None])[:, 0]
        imitation = [np.full(study.chosen.size, study.imitation) for _, study in studies]
        weight = torch.from_numpy(np.concatenate(imitation).astype(np.float32)).to(device)
        worth = side_by_side([study.worth for _, study in studies], log_p.shape[1])
        gain = towards_worth(log_p, torch.from_numpy(worth).to(device), self._config.temperature)
        return gain - (taken * weight).sum(), mean_entropy(log_p, batch.graph[steps.unit])

    def _targets(self) -> Sequence[NDArray[np.int32] | None]:
        return self._task.targets or [None] * len(self._views)

    def _value(self, problem: Problem, view: View, known: Ints | None) -> float:
        if known is None:
            return 0.0
        return float(self._reward(problem, known[None, view.unit_of])[0])

    def _trial(self, row: int, epoch: int, rng: np.random.Generator, network: Network) -> Trial:
        """Imitate the best known placement of a problem, and study rollouts of it."""
        config, known = self._config, self._known[row]
        problem, view = self._task.training[row], self._views[row]
        imitating = known is not None and epoch < config.warm_up
        home = imitating or rng.random() >= config.variety
        if not home:
            problem, known = elsewhere(problem, rng), None
            view = view_of(problem)
        heads, studies = heads_of(network, view), []
        if known is not None:
            weight = 1.0 if imitating else config.imitation
            studies.append(_imitated(view, heads, known, weight))
        best = float(self._best[row])
        if imitating:
            luck = np.random.default_rng((row, epoch))  # what is only reported changes nothing else
            chosen, _ = self._sampled(view, heads, luck)
            values = self._values(problem, view, chosen[chosen[:, 0] >= 0])
            return Trial(view, tuple(studies), float(values.mean()) if len(values) else 0.0, best)
        study, places, values = self._studied(problem, view, heads, rng)
        if not len(study.chosen):
            return Trial(view, tuple(studies), 0.0, best)
        if home:
            self._keep(row, view, places, values)
            best = float(self._best[row])
        reward = float(values[: len(study.chosen)].mean())
        return Trial(view, (*studies, study), reward, best)

    def _studied(
        self, problem: Problem, view: View, heads: Heads, rng: np.random.Generator
    ) -> tuple[Study, Ints, Doubles]:
        """Rollouts, alternatives to their decisions, and all placements with their values."""
        chosen, record = self._sampled(view, heads, rng)
        through = chosen[:, 0] >= 0
        record = Trail(record.devices[through], record.steps[through], record.open[through])
        chosen = chosen[through]
        tried = alternatives(record, chosen, self._config.forks, rng)
        greedy = np.full(tried.given.shape, -1, np.float32)
        ends, _ = rollouts(view, heads, tried.given, greedy, NOTHING)
        through = ends[:, 0] >= 0
        places = places_after(view, np.concatenate([chosen, ends[through]]), 1)
        values = self._reward(problem, places)
        gained = np.zeros(len(ends))
        gained[through] = values[len(chosen) :] / max(float(values.max(initial=0)), LEAST)
        return Study(record, chosen, 0.0, tried.worth(gained)), places, values

    def _sampled(self, view: View, heads: Heads, rng: np.random.Generator) -> tuple[Ints, Trail]:
        """Rollouts in which some decisions are drawn, and what they saw."""
        given = np.full((self._config.samples, len(view.order)), -1, np.int32)
        uniform = rng.random(given.shape, dtype=np.float32)
        uniform[rng.random(given.shape) >= self._config.exploration] = -1
        record = new_record(len(given), view)
        chosen, _ = rollouts(view, heads, given, uniform, record)
        return chosen, record

    def _values(self, problem: Problem, view: View, chosen: Ints) -> Doubles:
        return self._reward(problem, places_after(view, chosen, 1))

    def _keep(self, row: int, view: View, places: Ints, rewards: Doubles) -> None:
        """Remember a placement that is better than the best known."""
        i = int(np.argmax(rewards))
        if rewards[i] > self._best[row] + LEAST:
            self._best[row], self._known[row] = rewards[i], _canonical(view, places[i])


def _canonical(view: View, placement: NDArray[np.int32] | None) -> Ints | None:
    """Device of every unit, interchangeable devices numbered in the order of the decisions."""
    if placement is None:
        return None
    place = np.zeros(view.level.n_units, np.int32)
    place[view.unit_of] = placement
    return np.asarray(canonical(place[None], view.order, view.group)[0])


def _imitated(view: View, heads: Heads, known: Ints, weight: float) -> Study:
    """Follow a placement."""
    given, record = known[view.order][None], new_record(1, view)
    chosen, _ = rollouts(view, heads, given, np.zeros(given.shape, np.float32), record)
    return Study(record, chosen, weight, np.full(record.open.shape, np.nan, np.float32))
