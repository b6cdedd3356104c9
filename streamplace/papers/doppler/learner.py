"""Training of Doppler: it imitates the critical path, then learns from the costs of placements.

Stage I (equation 2) follows the policies' decisions and raises the log-probability of the critical
path's choice at each of them. Stages II and III (equation 3) raise that of an episode's own choices
in proportion to how much less its placement costs than others. The costs are simulated in stage II
and measured in stage III; `LearningTask.reward` selects which.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from streamplace.learn.algorithms.baselines import RunningMean, more_than_others
from streamplace.learn.learner import ALL, Selection, StepReport
from streamplace.learn.policy_learner import BestRewards, PolicyLearner
from streamplace.learn.registry import LearningTask
from streamplace.learn.reward import judge_of
from streamplace.model.arrays import Floats, Longs
from streamplace.model.problem import Problem
from streamplace.papers.doppler import DopplerConfig
from streamplace.papers.doppler.episode import FEATURES, new_record
from streamplace.papers.doppler.policy import DopplerModule, PreparedProblem, choices, numbers_of


class DopplerLearner(PolicyLearner[DopplerConfig]):
    """Both policies on their training problems; see `streamplace.learn.policy_learner`.

    Every training problem has one row for each of its steps in an epoch.
    """

    def __init__(self, task: LearningTask, config: DopplerConfig) -> None:
        self._networks = DopplerModule(config)
        super().__init__(task, config, self._networks)
        self._judge = judge_of(self.reward)
        self._imitation = config.imitation if task.features is None else 0
        self._training, self._validation = (
            [PreparedProblem.of(problem, config) for problem in problems]
            for problems in (task.training, task.validation)
        )
        self._best = BestRewards(self.n_problems)
        self._earlier = RunningMean(len(task.training))

    @property
    def n_problems(self) -> int:
        """Number of rows."""
        return len(self.task.training) * self.config.steps

    @property
    def sizes(self) -> Longs:
        """Tasks of each row."""
        return np.tile(super().sizes, self.config.steps)

    def loss(self, rows: Longs, epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Loss of episodes of these problems, by the critical path or by their costs."""
        rng = np.random.default_rng(seed)
        losses = [self._loss(row, epoch, rng) for row in rows.tolist()]
        report = losses[0][1]
        for _, other in losses[1:]:
            report = report + other
        return torch.stack([loss for loss, _ in losses]).sum(), report

    def judged(self, problems: Sequence[Problem], numbers: Sequence[int]) -> list[float]:
        """Reward of the likeliest placements."""
        return [self._greedy_reward(self._validation[number]) for number in numbers]

    def state(self, rows: Selection = ALL) -> dict[str, NDArray[Any]]:
        """Best rewards of rows, and number and sum of the costs of their problems so far."""
        return {**self._best.state(rows), **self._earlier.state(self._problems_of(rows))}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Selection = ALL) -> None:
        """Restore what `state` returned."""
        self._best.restore(state, rows)
        self._earlier.restore(state, self._problems_of(rows))

    def features(self) -> dict[str, Any]:
        """Names of the features; all are scaled within each problem."""
        return {"names": FEATURES}

    def _problems_of(self, rows: Selection) -> Longs:
        return np.unique(np.arange(self.n_problems)[rows] % len(self._training))

    def _greedy_reward(self, prepared: PreparedProblem) -> float:
        with torch.no_grad():
            place = prepared.greedy(prepared.outputs(self._networks), self.config)
        return float(self.reward(prepared.problem, place[None])[0])

    def _exploration(self, epoch: int) -> float:
        """Share of random choices, which falls linearly in either stage."""
        if epoch < self._imitation:
            return self.config.straying * (1.0 - epoch / self._imitation)
        remaining = 1.0 - (epoch - self._imitation) / self.config.exploring
        return self.config.exploration * max(remaining, 0.0)

    def _loss(self, row: int, epoch: int, rng: np.random.Generator) -> tuple[Tensor, StepReport]:
        at, config, taught = row % len(self._training), self.config, epoch < self._imitation
        prepared = self._training[at]
        outputs = prepared.outputs(self._networks)
        record = new_record(prepared.features, config.episodes)
        shape = (config.episodes, prepared.problem.n_operators, 2)
        numbers = numbers_of(rng, shape, config, self._exploration(epoch))
        places = prepared.run(outputs, config, numbers, record, taught=taught)
        chosen = choices(outputs, record, config, 0.0 if taught else self._exploration(epoch))
        rewards, costs = self._judge(prepared.problem, places)
        report = self._report(row, rewards, float(chosen.entropy.detach().mean()))
        if taught:
            return -chosen.log_p.sum() / config.episodes, report
        later = config.discount ** np.arange(places.shape[1])[::-1]
        weights = (self._advantages(at, costs)[:, None] * later).astype(np.float32)
        gained = (torch.from_numpy(weights) * chosen.log_p).sum()
        return -(gained + config.entropy * chosen.entropy.sum()) / config.episodes, report

    def _report(self, row: int, rewards: Floats, entropy: float) -> StepReport:
        """Report on episodes of one problem.

        Rows of one problem may be in two threads at once, so each remembers its own best.
        """
        best = self._best.meet(row, float(rewards.max()))
        return StepReport(1, float(rewards.mean()), best, entropy)

    def _advantages(self, at: int, costs: Floats) -> Floats:
        """By how much each of the episodes [S] costs less than its baseline."""
        if self.config.comparison == "running-mean":
            return self._earlier.less_than_before(at, costs)
        return np.zeros_like(costs) if len(costs) < 2 else more_than_others(-costs)
