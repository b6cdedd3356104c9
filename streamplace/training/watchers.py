"""Progress of a training for people: a bar, and the learning curve as a file."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from streamplace.drawing.charts import finish
from streamplace.drawing.figures import BLUE, GREY, ORANGE, new_figure, save
from streamplace.learn.history import Epoch, History
from streamplace.learn.learner import StepReport
from streamplace.learn.watching import Watcher
from streamplace.model.arrays import Floats
from streamplace.objectives.registry import named_objective
from streamplace.progress import Ticker, progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class TrainingProgress(Watcher):
    """Shows the progress of training; the remaining time is estimated from the steps so far."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._bar = ExitStack()
        self._tick = Ticker()
        self._epochs = 0
        self._note = ""

    def begin(self, history: History, epochs: int, steps: int) -> None:
        """Open the bar over the remaining steps."""
        done = len(history.epochs)
        self._epochs = epochs
        self._note = epoch_line(history.epochs[-1], epochs) if done else ""
        bar = progress(f"training {self._model}", (epochs - done) * steps)
        self._tick = self._bar.enter_context(bar)

    def step(self, epoch: int, report: StepReport) -> None:
        """Move the bar on by one."""
        self._tick(self._note or step_line(epoch, self._epochs, report))

    def epoch(self, history: History) -> None:
        """Show the epoch until the next one is complete."""
        self._note = epoch_line(history.epochs[-1], self._epochs)

    def end(self) -> None:
        """Close the bar."""
        self._bar.close()


def step_line(epoch: int, epochs: int, report: StepReport) -> str:
    """Summary of a step in one line."""
    now = f"reward {report.mean.reward:.3f}, best known {report.mean.best:.3f}"
    return f"epoch {epoch}/{epochs}: {now}"


def epoch_line(epoch: Epoch, epochs: int) -> str:
    """Summary of an epoch in one line."""
    words = [f"epoch {epoch.epoch}/{epochs}: reward {epoch.reward:.3f}"]
    words.append(f"best known {epoch.best:.3f}")
    if epoch.validation is not None:
        words.append(f"validation {epoch.validation:.3f}")
    return ", ".join(words)


def write_curve(history: History, optima: Floats, objective: str, path: Path) -> None:
    """Draw the reward by epoch, and the mean of the validation optima if all are known."""
    optimum = float(optima.mean()) if len(optima) and not np.isnan(optima).any() else None
    if history.epochs:
        save(_curve(history, optimum, objective), path)


def _curve(history: History, optimum: float | None, objective: str) -> "Figure":
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
