"""The history of a training: the means of every epoch, and the best epoch."""

import json
import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamplace.model.arrays import Floats

if TYPE_CHECKING:
    from pydantic import ConfigDict


@dataclass(frozen=True, slots=True)
class Epoch:
    """Results of one epoch, as means over problems or steps."""

    __pydantic_config__: ClassVar["ConfigDict"] = {
        "extra": "forbid",
        "strict": True,
        "allow_inf_nan": False,
    }

    epoch: int  # counted from 1
    reward: float  # this and the next two as in `streamplace.learn.learner.StepReport`
    best: float
    entropy: float
    loss: float
    gradient: float  # norm of a step's gradient before clipping
    learning_rate: float  # of the last step
    validation: float | None  # mean reward on held-out problems, None without any
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


def mean_share(values: Floats, optima: Floats) -> float | None:
    """Mean of value / optimum where the optimum is known (not NaN), None where none is.

    Where the optimum is 0, every placement is optimal.

    >>> mean_share(np.array([0.5, 0.9, 0.0]), np.array([1.0, np.nan, 0.0]))
    0.75
    """
    proven = ~np.isnan(optima)
    if not proven.any():
        return None
    best = optima[proven]
    shares = np.divide(values[proven], best, out=np.ones_like(best), where=best > 0)
    return float(shares.mean())
