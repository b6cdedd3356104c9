"""Policies that build placements: their contract, and placing by trained ones.

A policy is a module of torch that is called with a batch of problems:

    class Mine(nn.Module):
        def forward(self, batch, samples, given=None, generator=None) -> Decisions: ...

It draws ``samples`` placements of each problem with the generator, or without one takes the
likeliest. The given placements [G, R, N] follow them unchanged, with their likelihood.

Shapes: G problems of a batch, S placements of each, N operators of the largest, D devices.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import torch
from torch import Tensor, nn

from streamplace.errors import FormatError
from streamplace.learn.device import device_of
from streamplace.learn.learner import ALL, Selection
from streamplace.learn.shards import one_thread
from streamplace.model.arrays import Floats, Ints, Longs
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.random_numbers import torch_generator

CLOSED = -1e9
"""Logit of a device that is not open."""
CELLS = 1 << 12
"""Largest number of operators that are placed at once, padding included."""


class Decisions(NamedTuple):
    """Placements of a batch, and their likelihood, with gradients."""

    placements: Tensor  # [G, S, N]; some may break constraints and need repair
    log_probability: Tensor  # [G, S] of the whole placement
    entropy: Tensor  # [G, S] mean entropy of its decisions, in nats
    weights: Tensor | None = None  # [S] in the loss; None: all placements count the same

    @classmethod
    def of(
        cls, placements: Tensor, each: Iterable[tuple[Tensor, Tensor]], decisions: Tensor
    ) -> Self:
        """Sums over steps, of log-probabilities [G, S, D] and devices [G, S] each.

        Each problem has its number of decisions [G]; further steps have a single open device.
        """
        likelihood = entropy = placements.new_zeros(placements.shape[:2]).float()
        for log_p, devices in each:
            likelihood = likelihood + log_p.gather(2, devices[..., None]).squeeze(2)
            entropy = entropy - (log_p.exp() * log_p).sum(2)
        return cls(placements, likelihood, entropy / decisions[:, None])


def chosen_devices(log_p: Tensor, generator: torch.Generator | None) -> Tensor:
    """Devices [...] drawn with log-probabilities [..., D], or without a generator the likeliest."""
    if generator is None:
        return log_p.argmax(-1)
    noise = torch.empty_like(log_p).exponential_(generator=generator)
    return (log_p - noise.log()).argmax(-1)


class Prepared(Protocol):
    """Problems, prepared once for a policy, on its device; see `env.ProblemTensors`."""

    sizes: Longs  # [P] operators of every problem

    def batch(self, rows: Tensor, generator: torch.Generator | None = None) -> Any:
        """Some of the problems, as the policy takes them; a generator is given in training."""


@dataclass(frozen=True, slots=True, eq=False)
class FeatureScale:
    """Features and their means and standard deviations [F] over a training set."""

    names: Sequence[str]
    mean: Floats
    std: Floats

    @classmethod
    def read(cls, document: Mapping[str, Any], names: Sequence[str], where: str) -> Self:
        """Read the scale of these features from a weights file, which errors call ``where``."""
        mean, std = (np.array(document.get(key, ()), np.float64) for key in ("mean", "std"))
        if document.get("names") != list(names) or not mean.shape == std.shape == (len(names),):
            raise FormatError(
                f"{where}: has other features than its options say, or lacks their mean and std; "
                "train again"
            )
        return cls(names, mean, std)

    def document(self) -> dict[str, Any]:
        """Names, means and standard deviations, fit for JSON."""
        return {"names": list(self.names), "mean": self.mean.tolist(), "std": self.std.tolist()}


@dataclass(frozen=True, slots=True, eq=False)
class ConstructivePolicy:
    """A policy, the scale of its features, and what prepares problems for both.

    With trained parameters, it is a `streamplace.learn.registry.Allocator`.
    """

    module: nn.Module
    scale: FeatureScale
    prepare: Callable[[Sequence[Problem], torch.device], Prepared]

    @property
    def device(self) -> torch.device:
        """Device that the parameters are on."""
        return device_of(self.module)

    def on(self, problems: Sequence[Problem]) -> Prepared:
        """Prepare problems."""
        return self.prepare(problems, self.device)

    def greedy(
        self, problems: Sequence[Problem], prepared: Prepared, rows: Selection = ALL
    ) -> list[Ints]:
        """Likeliest legal placement [N] of some of the problems, in batches of like sizes."""
        numbers = np.arange(len(problems))[rows]
        placements: dict[int, Ints] = {}
        for part in (numbers[each] for each in batches_by_size(prepared.sizes[numbers])):
            with torch.no_grad():
                batch = prepared.batch(torch.from_numpy(part).to(self.device))
                placed = self.module(batch, 1).placements[:, 0].cpu().numpy().astype(np.int32)
            for i, row in zip(part.tolist(), placed, strict=True):
                placements[i] = problems[i].repaired(row[: problems[i].n_operators])
        return [placements[i] for i in numbers.tolist()]

    def place_many(self, problems: Sequence[Problem]) -> list[Placement]:
        """Place every problem greedily."""
        with one_thread():
            rows = self.greedy(problems, self.on(problems))
        return [p.placement(row) for p, row in zip(problems, rows, strict=True)]

    def sampled(self, problem: Problem, samples: int, seed: int) -> Ints:
        """Legal placements [S, N] of one problem, drawn from the policy."""
        with one_thread(), torch.no_grad():
            batch = self.on([problem]).batch(torch.tensor([0], device=self.device))
            drawn = self.module(
                batch, samples, None, torch_generator(seed, self.device)
            ).placements[0]
        return problem.repaired(drawn.cpu().numpy().astype(np.int32))


def batches_by_size(sizes: Longs) -> list[Longs]:
    """Rows in batches of like sizes, each of at most `CELLS` operators or one problem."""
    by_size = np.argsort(sizes, kind="stable")
    batches, start = [], 0
    while start < len(by_size):
        end = start + 1
        while end < len(by_size) and (end + 1 - start) * sizes[by_size[end]] <= CELLS:
            end += 1
        batches.append(by_size[start:end])
        start = end
    return batches
