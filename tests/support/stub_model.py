"""The smallest learner: a line through noisy points, one point per problem, with a memory."""

from functools import partial

import numpy as np

from streamplace.learn.config import Config, Preset, TrainingConfig
from streamplace.learn.learner import ALL, StepReport
from streamplace.learn.registry import LearnedModel
from streamplace.model.arrays import Floats

FEATURES = ("operators", "heaviest")


class StubConfig(Config):
    """Options of the stub."""

    bias: bool = True
    noise: float = 0.01


class Stub:
    """Learns how heavy a graph's heaviest operator is; reward falls with the squared error."""

    def __init__(self, task, config, seen):
        import torch

        seen.append(task)
        self._config = config
        self._x, self._y = _points(task.training)
        self._judged = _points(task.validation)
        self._best = np.zeros(len(self._y))
        self.module = torch.nn.Linear(2, 1, bias=config.bias)
        random = torch.Generator().manual_seed(task.seed)
        with torch.no_grad():
            for parameter in self.module.parameters():
                parameter.normal_(generator=random)

    def sizes(self, epoch):
        """First feature of every point."""
        return (10 * self._x[:, 0]).astype(np.int64)

    def loss(self, rows, epoch, seed):
        """Squared errors, with noise from the seed."""
        import torch

        x, y = (torch.tensor(a[rows], dtype=torch.float32) for a in (self._x, self._y))
        random = torch.Generator().manual_seed(seed)
        noise = self._config.noise * torch.randn(len(rows), generator=random)
        errors = (self.module(x)[:, 0] + noise - y) ** 2
        reward = (1 / (1 + errors)).detach().double().numpy()
        self._best[rows] = np.maximum(self._best[rows], reward)
        report = StepReport(
            len(rows), float(reward.sum()), float(self._best[rows].sum()), 0.0, len(rows)
        )
        return errors.sum(), report

    def validate(self, rows=ALL):
        """Reward without noise."""
        import torch

        x, y = (points[rows] for points in self._judged)
        with torch.no_grad():
            found = self.module(torch.tensor(x, dtype=torch.float32))[:, 0].double().numpy()
        rewards: Floats = 1 / (1 + (found - y) ** 2)
        return rewards

    def state(self, rows=ALL):
        """The memory."""
        return {"best": self._best[rows]}

    def restore(self, state, rows=ALL):
        """Take the memory back."""
        self._best[rows] = state["best"]

    def spec(self):
        """Nothing is standardised."""
        features = {"names": list(FEATURES), "mean": [0.0, 0.0], "std": [1.0, 1.0]}
        return {"config": self._config.model_dump(), "features": features}


def _points(problems):
    x = [(p.n_operators / 10, p.instance.load.max()) for p in problems]
    points = np.array(x, np.float64).reshape(-1, 2)
    return points, 0.3 + 0.5 * points[:, 1]


def model(seen=None, *, name="stub", supervised=False):
    """Return the stub as a model; ``seen`` collects the tasks that it is given."""
    training = TrainingConfig(
        epochs=6, batch=4, learning_rate=0.2, final_learning_rate=0.02, validation=0.25
    )
    preset = Preset(StubConfig(), training)
    learner = partial(Stub, seen=[] if seen is None else seen)
    return LearnedModel(
        name, "Fits a line.", StubConfig, {"fast": preset}, learner, supervised=supervised
    )
