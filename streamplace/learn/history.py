"""The history of a training: the means of every epoch and the best one; and its watchers."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np

from streamplace.learn.learner import StepReport
from streamplace.model.arrays import Floats

BEST = "best.safetensors"
"""File of the best weights of a training, in its folder."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """Results of one epoch, as means over problems or steps."""

    epoch: int  # counted from 1
    reward: float  # this and the next two as in `streamplace.learn.learner.StepReport`
    best: float
    entropy: float
    loss: float
    gradient: float  # norm of a step's gradient before clipping
    learning_rate: float  # of the last step
    validation: float | None  # mean reward on held-out problems, None without any
    evaluations: int  # placements that were rewarded
    seconds: float

    @property
    def score(self) -> float:
        """Value that epochs are compared by: validation, or the reward if nothing is held out."""
        return self.reward if self.validation is None else self.validation


@dataclass(slots=True)
class History:
    """All epochs so far, and the validation of the best of them."""

    epochs: list[Epoch] = field(default_factory=list)
    before: float | None = None  # mean validation of the initial weights, None for random ones
    best: int = 0  # number of the best epoch, 0 while none beats the initial weights
    values: Floats = field(default_factory=lambda: np.empty(0))  # validation of the best epoch

    def __repr__(self) -> str:
        return f"<History: {len(self.epochs)} epochs, best {self.best}>"

    @property
    def score(self) -> float:
        """Score of the best epoch."""
        if self.best:
            return self.epochs[self.best - 1].score
        return -math.inf if self.before is None else self.before

    def add(self, epoch: Epoch, values: Floats) -> bool:
        """Add an epoch; whether it is better than all before it."""
        improved = epoch.score > self.score
        self.epochs.append(epoch)
        if improved:
            self.best, self.values = epoch.epoch, values
        return improved

    def stalled(self, patience: int) -> bool:
        """Whether the last ``patience`` epochs brought nothing better (0 never gives up)."""
        return 0 < patience <= len(self.epochs) - self.best

    def as_document(self) -> dict[str, Any]:
        """All but the values, fit for JSON."""
        epochs = [asdict(epoch) for epoch in self.epochs]
        return {"before": self.before, "best": self.best, "epochs": epochs}

    def lines(self) -> str:
        """One line of JSON per epoch."""
        return "".join(f"{json.dumps(asdict(epoch))}\n" for epoch in self.epochs)


class Watcher(Protocol):
    """Receives the events of a training; the methods of this class ignore them."""

    def begin(self, history: History, steps: Sequence[int]) -> None:
        """Training begins, or continues a history; ``steps`` are those of each epoch."""
        return

    def step(self, epoch: int, report: StepReport) -> None:
        """One more step of an epoch (counted from 1) is complete."""
        return

    def epoch(self, history: History) -> None:
        """One more epoch is complete, the last of the history."""
        return

    def end(self) -> None:
        """Training ends, for whatever reason."""
        return
