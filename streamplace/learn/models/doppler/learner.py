"""How Doppler learns: first what the critical path would do, then what its placements cost.

Stage I (equation 2) goes where the policies lead and raises the log-probability of the choice that
the critical path would make there. Stages II and III (equation 3) raise that of an episode's own
choices by how much less its placement costs than others; the one in simulation, the other where
passes are measured, which is a matter of who judges (`Task.reward`).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from streamplace.errors import FormatError
from streamplace.learn.algorithms.baselines import SPREAD
from streamplace.learn.learner import ALL, StepReport
from streamplace.learn.learner import Rows as Some
from streamplace.learn.models.doppler.episode import Trail, new_trail
from streamplace.learn.models.doppler.module import Doppler, Said, choices
from streamplace.learn.models.doppler.options import DopplerConfig
from streamplace.learn.models.doppler.plan import FEATURES
from streamplace.learn.models.doppler.policy import Seat, numbers_of
from streamplace.learn.reward import judge_of, reward_of
from streamplace.model.arrays import Ints

if TYPE_CHECKING:
    from streamplace.learn.registry import Task

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class DopplerLearner:
    """Both policies on their training problems; see `streamplace.learn.learner.Learner`."""

    def __init__(self, task: "Task", config: DopplerConfig) -> None:
        self._task, self._config = task, config
        self._reward = reward_of(task.objective, task.reward)
        self._judge = judge_of(task.objective, task.reward)
        self._imitation = config.imitation if task.features is None else 0
        self._seats, self._judged = (
            [Seat.of(problem, config, task.device) for problem in problems]
            for problems in (task.training, task.validation)
        )
        self._best = np.zeros(self.n_problems)
        self._before = np.zeros((len(task.training), 2))
        self.module = Doppler(config).to(task.device)

    @property
    def n_problems(self) -> int:
        """Rows: every training problem as often as it is to be stepped on in an epoch."""
        return len(self._seats) * self._config.steps

    @property
    def sizes(self) -> Rows:
        """Tasks of each row."""
        sizes = [seat.problem.n_operators for seat in self._seats]
        return np.tile(np.array(sizes, np.int64), self._config.steps)

    def loss(self, rows: Rows, epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Run episodes of these problems, and learn from the teacher or from what they cost."""
        rng = np.random.default_rng(seed)
        lessons = [self._lesson(row, epoch, rng) for row in rows.tolist()]
        report = lessons[0][1]
        for _, other in lessons[1:]:
            report = report + other
        return torch.stack([loss for loss, _ in lessons]).sum(), report

    def validate(self, rows: Some = ALL) -> Floats:
        """Reward of the likeliest placement of validation problems."""
        numbers = np.arange(len(self._judged))[rows].tolist()
        return np.array([self._greedy_reward(self._judged[i]) for i in numbers])

    def state(self, rows: Some = ALL) -> dict[str, NDArray[Any]]:
        """Best rewards known, and number and sum of the costs so far."""
        return {"best": self._best[rows].copy(), "before": self._before[self._seats_of(rows)]}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Some = ALL) -> None:
        """Take back what `state` returned."""
        seats = self._seats_of(rows)
        fits = state["best"].shape == self._best[rows].shape
        if not fits or state["before"].shape != (len(seats), 2):
            raise FormatError("the checkpoint: its rewards are of other problems; train anew")
        self._best[rows], self._before[seats] = state["best"], state["before"]

    def spec(self) -> dict[str, Any]:
        """Options and features; all features are scaled within each problem."""
        features = {"names": FEATURES}
        return {"config": self._config.model_dump(mode="json"), "features": features}

    def _seats_of(self, rows: Some) -> Rows:
        return np.unique(np.arange(self.n_problems)[rows] % len(self._seats))

    def _greedy_reward(self, seat: Seat) -> float:
        with torch.no_grad():
            place = seat.greedy(seat.said(self.module), self._config)
        return float(self._reward(seat.problem, place[None])[0])

    def _exploration(self, epoch: int) -> float:
        """Share of the choices that are made at random: it falls in a line in either stage."""
        if epoch < self._imitation:
            return self._config.straying * (1.0 - epoch / self._imitation)
        left = 1.0 - (epoch - self._imitation) / self._config.exploring
        return self._config.exploration * max(left, 0.0)

    def _ran(
        self, seat: Seat, epoch: int, rng: np.random.Generator, *, taught: bool
    ) -> tuple[Said, Trail, Ints]:
        """Episodes of a problem: what was said before, seen on the way, and the placements."""
        config = self._config
        said, trail = seat.said(self.module), new_trail(seat.plan, config.episodes)
        shape = (config.episodes, seat.problem.n_operators, 2)
        numbers = numbers_of(rng, shape, config, self._exploration(epoch))
        return said, trail, seat.run(said, config, numbers, trail, taught=taught)

    def _lesson(self, row: int, epoch: int, rng: np.random.Generator) -> tuple[Tensor, StepReport]:
        """Loss of episodes of one problem, and what they came to."""
        at, config, taught = row % len(self._seats), self._config, epoch < self._imitation
        seat = self._seats[at]
        said, trail, places = self._ran(seat, epoch, rng, taught=taught)
        found = choices(said, trail, config, 0.0 if taught else self._exploration(epoch))
        rewards, costs = self._judge(seat.problem, places)
        report = self._told(row, rewards, float(found.entropy.detach().mean()))
        if taught:
            return -found.log_p.sum() / config.episodes, report
        later = config.discount ** np.arange(places.shape[1])[::-1]
        weights = (self._advantages(at, costs)[:, None] * later).astype(np.float32)
        gained = (torch.from_numpy(weights).to(found.log_p.device) * found.log_p).sum()
        return -(gained + config.entropy * found.entropy.sum()) / config.episodes, report

    def _told(self, row: int, rewards: Floats, entropy: float) -> StepReport:
        """What episodes of one problem came to.

        Rows of one problem may be in two threads at once, so each remembers its own best.
        """
        self._best[row] = max(self._best[row], float(rewards.max()))
        return StepReport(1, float(rewards.mean()), float(self._best[row]), entropy)

    def _advantages(self, at: int, costs: Floats) -> Floats:
        """How much less each of the episodes [S] costs than what it is compared with."""
        if self._config.comparison == "running-mean":
            count, total = self._before[at]
            self._before[at] += len(costs), costs.sum()
            return (total / count - costs) if count else np.zeros_like(costs)
        others = len(costs) - 1
        if not others:
            return np.zeros_like(costs)
        found = (costs.sum() - costs) / others - costs
        return np.asarray(found / (found.std() + SPREAD))
