"""Favourites: learns how much to put on each device, whatever the operator. The smallest model."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamplace import Placement, Problem
from streamplace.learn.config import Config, Preset, TrainingConfig
from streamplace.learn.learner import ALL, Selection
from streamplace.learn.registry import Allocator, LearnedModel, LearningTask, register
from streamplace.model.arrays import Longs

if TYPE_CHECKING:
    import torch

    from streamplace.learn.learner import Learner, StepReport


class FavouritesConfig(Config):
    """Options, for presets and TOML files."""

    devices: Annotated[int, Field(ge=1, le=64, description="that the model knows")] = 5
    samples: Annotated[int, Field(ge=2, description="per problem and step")] = 16


class Favourites:
    """A liking per device, and a loss that makes rewarded devices liked more (REINFORCE)."""

    def __init__(self, task: LearningTask, config: FavouritesConfig) -> None:
        import torch

        from streamplace.learn.reward import reward_of

        self.task, self.config = task, config
        self.module = torch.nn.ParameterDict({"liking": torch.zeros(config.devices)})
        self.reward = reward_of(task.objective, task.reward)
        self.best = np.zeros(len(task.training))

    def sizes(self, epoch: int) -> Longs:
        """Operators of each training problem."""
        return np.array([problem.n_operators for problem in self.task.training])

    def loss(self, rows: Longs, epoch: int, seed: int) -> "tuple[torch.Tensor, StepReport]":
        """Rewarded samples are made likelier, in comparison with the mean of their problem."""
        import torch

        from streamplace.learn.learner import StepReport

        rng, loss, rewarded = np.random.default_rng(seed), torch.zeros(()), 0.0
        log_p = torch.log_softmax(self.module["liking"], 0)
        for row in rows.tolist():
            problem = self.task.training[row]
            likes = np.exp(log_p.detach().numpy()[: problem.n_devices].astype(float))
            size = (self.config.samples, problem.n_operators)
            drawn = rng.choice(problem.n_devices, size, p=likes / likes.sum())
            rewards = self.reward(problem, problem.repaired(drawn))
            advantage = torch.from_numpy(rewards - rewards.mean()).float()
            loss = loss - (advantage * log_p[torch.from_numpy(drawn)].sum(1)).mean()
            rewarded += float(rewards.mean())
            self.best[row] = max(self.best[row], float(rewards.max()))
        return loss, StepReport(len(rows), rewarded, float(self.best[rows].sum()), 0.0, len(rows))

    def validate(self, rows: Selection = ALL) -> NDArray[np.float64]:
        """Rewards of what would be placed on some of the problems held out."""
        liking = self.module["liking"].detach().numpy()
        problems = [self.task.validation[i] for i in np.arange(len(self.task.validation))[rows]]
        return np.array([self.reward(p, dealt(liking, p)[None])[0] for p in problems])

    def state(self, rows: Selection = ALL) -> dict[str, NDArray[Any]]:
        """What is remembered of some problems, besides the parameters."""
        return {"best": self.best[rows]}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Selection = ALL) -> None:
        """Take it back."""
        self.best[rows] = state["best"]

    def spec(self) -> dict[str, Any]:
        """What placing needs besides the weights."""
        features = {"names": ["device"], "mean": [0.0], "std": [1.0]}
        return {"config": self.config.model_dump(), "features": features}


def dealt(liking: NDArray[np.float32], problem: Problem) -> NDArray[np.int32]:
    """Deal the operators out over the devices, in proportion to how much these are liked."""
    share = np.exp(liking[: problem.n_devices].astype(float))
    ends = np.cumsum(share / share.sum()) * problem.n_operators
    devices = np.searchsorted(ends, np.arange(problem.n_operators) + 0.5)
    return problem.repaired(np.minimum(devices, problem.n_devices - 1).astype(np.int32))


class Trained:
    """Weights that place."""

    def __init__(self, path: Path) -> None:
        from streamplace.io.weights import read_weights

        self.liking = read_weights(path, model="favourites").tensors["liking"]

    def place_many(self, problems: Sequence[Problem]) -> list[Placement]:
        """Place every problem."""
        return [problem.placement(dealt(self.liking, problem)) for problem in problems]

    def sampled(self, problem: Problem, samples: int, seed: int) -> NDArray[np.int32]:
        """Draw placements."""
        share = np.exp(self.liking[: problem.n_devices].astype(float))
        rng, size = np.random.default_rng(seed), (samples, problem.n_operators)
        return problem.repaired(rng.choice(problem.n_devices, size, p=share / share.sum()))


def learner(task: LearningTask, config: FavouritesConfig) -> "Learner":
    """Make a learner; torch is imported here at the earliest."""
    return Favourites(task, config)


def allocator(path: Path) -> Allocator:
    """Read trained weights."""
    return Trained(path)


register(
    LearnedModel(
        "favourites",
        "Learns how much to put on each device, whatever the operator.",
        FavouritesConfig,
        {
            "fast": Preset(
                FavouritesConfig(), TrainingConfig(epochs=20, learning_rate=0.05, batch=8)
            )
        },
        learner,
        allocator,
    )
)
