"""The learning curve: rewards of sampled, best known and greedy placements by epoch."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from streamplace.drawing.charts import finish
from streamplace.drawing.figures import BLUE, GREY, ORANGE, new_figure, save
from streamplace.learn.history import History
from streamplace.learn.watching import Watcher
from streamplace.model.arrays import Floats
from streamplace.objectives.registry import DEFAULT, named_objective

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class CurveFile(Watcher):
    """Draws the learning curve into a file when training ends, also after an error."""

    def __init__(self, path: Path, optima: Floats, objective: str = DEFAULT) -> None:
        self._path, self._objective = path, objective
        self._optimum = float(optima.mean()) if len(optima) and not np.isnan(optima).any() else None
        self._history = History()

    def begin(self, history: History, epochs: int, steps: int) -> None:
        """Take over the history so far."""
        self._history = history

    def end(self) -> None:
        """Draw."""
        if self._history.epochs:
            save(draw_curve(self._history, self._optimum, self._objective), self._path)


def draw_curve(
    history: History, optimum: float | None = None, objective: str = DEFAULT
) -> "Figure":
    """Reward by epoch; ``optimum`` is the mean of the validation problems' optima."""
    is_rate = named_objective(objective).kind == "rate"
    label = f"relative {objective}" if is_rate else f"reward ({objective})"
    figure, (axis,) = new_figure(1, width=6.0, height=3.6)
    epochs = [epoch.epoch for epoch in history.epochs]
    best = [epoch.best for epoch in history.epochs]
    reward = [epoch.reward for epoch in history.epochs]
    axis.plot(epochs, best, color=GREY, linewidth=1.2, label="training: best known")
    axis.plot(epochs, reward, color=ORANGE, linewidth=1.4, label="training: sampled")
    judged = [(e.epoch, e.validation) for e in history.epochs if e.validation is not None]
    if history.before is not None:
        judged.insert(0, (0, history.before))
    if judged:
        axis.plot(*zip(*judged, strict=True), color=BLUE, linewidth=1.8, label="validation: greedy")
        axis.plot(history.best, history.score, "o", color=BLUE, markersize=5)
    if optimum is not None:
        axis.axhline(optimum, color="black", linewidth=0.8, linestyle=":")
        axis.annotate(
            "validation: optimum",
            (1.0, optimum),
            xycoords=("axes fraction", "data"),
            xytext=(-2, 3),
            textcoords="offset points",
            fontsize=8,
            ha="right",
        )
    axis.set(xlabel="epoch", ylabel=f"mean {label}")
    axis.margins(x=0.02)
    axis.locator_params("x", integer=True)
    return finish(figure, "Mean reward by epoch")
