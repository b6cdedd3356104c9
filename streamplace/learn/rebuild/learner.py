"""How the policy learns: by trying what its own decisions could have been.

Schedules are rebuilt by the policy, some decisions drawn; the first time in sight of foresight's
schedule, then of the best that came out. At some of the decisions every open device is tried and
the schedule completed greedily; see `streamplace.learn.algorithms.worth` for what is made of that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from streamplace.errors import FormatError
from streamplace.learn.algorithms.alternatives import alternatives
from streamplace.learn.algorithms.worth import mean_entropy, side_by_side, towards_worth
from streamplace.learn.learner import StepReport
from streamplace.learn.rebuild.module import Rebuilder, Steps
from streamplace.learn.rebuild.network import Network, network_of
from streamplace.learn.rebuild.placing import (
    FEATURES,
    NOISE,
    TrainedRebuilder,
    better,
    first_schedules,
)
from streamplace.learn.rebuild.rollout import NOTHING, Trail, new_record, rollouts
from streamplace.learn.rebuild.view import View, before_of, kept, view_of
from streamplace.model.columns import Floats
from streamplace.objectives.makespan.bound import least_makespan
from streamplace.scheduling.insertion import Schedule

if TYPE_CHECKING:
    from streamplace.learn.models.pilot_makespan import PilotMakespanConfig
    from streamplace.learn.registry import Task

JUDGED = 20
"""Samples that the policy is judged by besides what is likeliest."""

Singles = NDArray[np.float32]
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Study:
    """Rollouts in sight of one schedule, and the worth of the alternatives to their decisions."""

    record: Trail
    worth: Singles  # [S, T, D], relative to the best; NaN where not tried
    spans: Floats  # [S]
    best: Schedule


class RebuildLearner:
    """The policy on its training problems; see `streamplace.learn.learner.Learner`."""

    def __init__(self, task: "Task", config: "PilotMakespanConfig") -> None:
        self._task, self._config = task, config
        self._views = [view_of(problem) for problem in task.training]
        self._bounds = np.array([least_makespan(problem) for problem in task.training])
        self._best = np.zeros(len(task.training))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(task.seed)
            self.module = Rebuilder(config.width).to(task.device)

    @property
    def n_problems(self) -> int:
        """Number of training problems."""
        return len(self._views)

    @property
    def sizes(self) -> Rows:
        """Tasks of each training problem."""
        return np.array([view.tasks.n_tasks for view in self._views], np.int64)

    def loss(self, rows: Rows, epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Rebuild schedules of these problems, and weigh what came out."""
        rng, network = np.random.default_rng(seed), network_of(self._tensors())
        studies = [(row, self._studies(self._views[row], rng, network)) for row in rows.tolist()]
        reward = 0.0
        for row, of_row in studies:
            spans = np.concatenate([study.spans for study in of_row])
            rewards = self._bounds[row] / spans if len(spans) else np.zeros(1)
            self._best[row] = max(self._best[row], float(rewards.max()))
            reward += float(rewards.mean())
        every = [study for _, of_row in studies for study in of_row]
        if not every:
            return 0 * torch.cat([p.flatten() for p in self.module.parameters()]).sum(), StepReport(
                len(rows), reward, float(self._best[rows].sum()), 0.0
            )
        log_p = self.module(Steps.of([study.record for study in every], self._task.device))
        worth = side_by_side([study.worth for study in every], log_p.shape[1])
        worths = torch.from_numpy(worth).to(self._task.device)
        loss = towards_worth(log_p, worths, self._config.temperature)
        numbers = [
            np.full(study.record.steps[..., 0].size, i)
            for i, (_, of_row) in enumerate(studies)
            for study in of_row
        ]
        owner = torch.from_numpy(np.concatenate(numbers)).to(self._task.device)
        entropy = mean_entropy(log_p, owner)
        return loss, StepReport(len(rows), reward, float(self._best[rows].sum()), entropy)

    def validate(self) -> Floats:
        """Bound over the makespan of the best of a few schedules of every validation problem."""
        policy, looks = TrainedRebuilder(network_of(self._tensors())), self._config.looks
        rewards = []
        for problem in self._task.validation:
            best: Schedule | None = None
            for schedule in policy.schedules(problem, looks, JUDGED, seed=0):
                best = better(schedule, best)
            rewards.append(least_makespan(problem) / best.finish.max() if best else 0.0)
        return np.array(rewards)

    def state(self) -> dict[str, NDArray[Any]]:
        """Best rewards known."""
        return {"best": self._best.copy()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `state` returned."""
        if state["best"].shape != self._best.shape:
            raise FormatError("the checkpoint: its rewards are of other problems; train anew")
        self._best = state["best"].copy()

    def spec(self) -> dict[str, Any]:
        """Options and features, which are shares of a schedule's span: there is no mean to keep."""
        return {"config": self._config.model_dump(mode="json"), "features": {"names": FEATURES}}

    def _tensors(self) -> dict[str, NDArray[np.float32]]:
        parameters = self.module.state_dict().items()
        return {name: tensor.detach().cpu().numpy() for name, tensor in parameters}

    def _studies(self, view: View, rng: np.random.Generator, network: Network) -> list[Study]:
        """One study after the other, each in sight of the best schedule of the one before."""
        studies: list[Study] = []
        schedule = None
        for first in first_schedules(view):
            schedule = better(first, schedule)
        for look in range(self._config.looks):
            if schedule is None or not schedule.finish.max() > 0:
                break
            study = self._study(view, schedule, rng, network, rng.random() if look else 0.0)
            if study is not None:
                studies.append(study)
                schedule = better(study.best, schedule)
        return studies

    def _study(
        self,
        view: View,
        schedule: Schedule,
        rng: np.random.Generator,
        network: Network,
        keep: float,
    ) -> Study | None:
        """Rollouts in sight of a schedule of which a share stays; None where rules stop them."""
        luck = rng.random() * rng.random(view.tasks.n_tasks)
        before = before_of(view.tasks, schedule, NOISE * luck)
        shape = (self._config.samples, view.tasks.n_tasks)
        uniform = rng.random(shape, dtype=np.float32)
        uniform[rng.random(shape) >= self._config.exploration] = -1
        given = kept(before, rng.random(shape) < keep)
        record = new_record(shape[0], view)
        chosen, ends = rollouts(view, before, network, given, uniform, record)
        through = (chosen >= 0).all(axis=1)
        if not through.any():
            return None
        record = Trail(record.devices[through], record.steps[through], record.open[through])
        chosen, ends = chosen[through], _rows(ends, through)
        tried = alternatives(record.open, chosen, self._config.forks, rng, given[through])
        greedy = np.full(tried.given.shape, -1, np.float32)
        _, others = rollouts(view, before, network, tried.given, greedy, NOTHING)
        spans = np.where((others.place >= 0).all(axis=1), others.finish.max(axis=1), np.inf)
        reached = ends.finish.max(axis=1)
        least = min(reached.min(), spans.min(initial=np.inf))
        worth = tried.worth(least / spans)
        best = int(np.argmin(np.concatenate([reached, spans])))
        of, row = (ends, best) if best < len(reached) else (others, best - len(reached))
        return Study(record, worth, reached, _rows(of, row))


def _rows(schedules: Schedule, rows: Any) -> Schedule:
    """One schedule, or some, of many."""
    return Schedule(schedules.place[rows], schedules.start[rows], schedules.finish[rows])
