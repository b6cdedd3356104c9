"""Memories of training problems, such as a few good placements of each."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from streamplace.learn.learner import ALL, Selection
from streamplace.model.arrays import Floats


class RowMemory:
    """Tensors by name with a row for every training problem; arrays share values with them."""

    def __init__(self, parts: Mapping[str, Tensor | NDArray[Any]]) -> None:
        self._tensors = {name: torch.as_tensor(part) for name, part in parts.items()}

    @property
    def tensors(self) -> list[Tensor]:
        """All of them."""
        return list(self._tensors.values())

    def state(self, rows: Selection = ALL) -> dict[str, NDArray[Any]]:
        """Arrays to save, of some problems."""
        return {name: part[rows].cpu().numpy().copy() for name, part in self._tensors.items()}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Selection = ALL) -> None:
        """Restore arrays that `state` returned."""
        for name, part in self._tensors.items():
            part[rows] = torch.tensor(state[name], device=part.device)


class BestRewards(RowMemory):
    """The best reward met of every problem."""

    def __init__(self, problems: int) -> None:
        self.rewards: Floats = np.zeros(problems)
        super().__init__({"best": self.rewards})

    def meet(self, row: int, reward: float) -> float:
        """Return the best reward of a problem, this one included."""
        self.rewards[row] = max(self.rewards[row], reward)
        return float(self.rewards[row])
