"""The result of a training run: its history, and its weights' rewards on held-out problems."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from streamplace.display.report import Report, Sheet, percent
from streamplace.learn.history import BEST, History
from streamplace.model.arrays import Floats
from streamplace.model.message_text import counted
from streamplace.model.problem import Problem


class HeldOut(NamedTuple):
    """Results of weights on problems that were held out."""

    problems: int
    mean: float
    of_optimum: float | None  # mean of reward / that of the optimum; None if none is proven
    proven: int  # problems with a proven optimum

    @property
    def words(self) -> str:
        """Share of the optimum, with the number of proven problems if some are not."""
        if self.of_optimum is None:
            return "—"
        of = "" if self.proven == self.problems else f" ({self.proven} of {self.problems})"
        return f"{percent(self.of_optimum)}{of}"


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """Result of a training run."""

    model: str
    folder: Path
    history: History
    epochs: int
    rates: tuple[float, ...]  # source rate of every validation problem
    optima: Floats  # rewards of their optima; NaN if the optimum is unknown
    # The validation problems, or the training problems if none were held out.
    problems: tuple[Problem, ...]
    held_out: bool
    objective: str
    seed: int
    start: Path  # file of the weights that training began from
    trained_on: str  # number of graphs of the training, in words

    def __repr__(self) -> str:
        return f"<Trained {self.model}: {counted(len(self.history.epochs), 'epoch')}>"

    @property
    def weights(self) -> Path:
        """File of the best weights."""
        return self.folder / BEST

    @property
    def stopped_early(self) -> bool:
        """Whether it ended before its last epoch."""
        return len(self.history.epochs) < self.epochs

    @property
    def values(self) -> Floats:
        """Reward of every validation problem with the best weights."""
        return self.history.values

    @property
    def seconds(self) -> float:
        """Time that the epochs took."""
        return sum(epoch.seconds for epoch in self.history.epochs)

    def report(self) -> Report:
        """Mean reward of the best weights by source rate."""
        rows = tuple(
            (f"{rate:g}", str(held.problems), f"{held.mean:.3f}", held.words)
            for rate, held in self.by_rate().items()
        )
        head = ("tuples/s", "problems held out", "mean", "of optimum")
        epochs = counted(len(self.history.epochs), "epoch")
        return Report((Sheet(head, rows),), f"{self.model}: {epochs}")

    def by_rate(self) -> dict[float, HeldOut]:
        """Results of the best weights on the validation problems, by source rate."""
        rates = np.array(self.rates)
        return {
            rate: HeldOut(
                int(at.sum()),
                float(self.values[at].mean()),
                _mean_share(self.values[at], best),
                int((~np.isnan(best)).sum()),
            )
            for rate in sorted(set(self.rates))
            for at in [rates == rate]
            for best in [self.optima[at]]
        }


def _mean_share(values: Floats, optima: Floats) -> float | None:
    """Mean of value / optimum over the known optima (not NaN), None without any.

    If an optimum is 0, every placement is optimal.

    >>> _mean_share(np.array([0.5, 0.9, 0.0]), np.array([1.0, np.nan, 0.0]))
    0.75
    """
    proven = ~np.isnan(optima)
    if not proven.any():
        return None
    best = optima[proven]
    shares = np.divide(values[proven], best, out=np.ones_like(best), where=best > 0)
    return float(shares.mean())
