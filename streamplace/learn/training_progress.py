"""The progress of a training: a bar on a terminal, lines elsewhere."""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from math import ceil

from streamplace.display.report import duration
from streamplace.learn.history import Epoch, History, Watcher
from streamplace.learn.learner import StepReport
from streamplace.progress import Ticker, progress

LEGEND = (
    "reward: mean of the sampled placements; best known: of the best ones so far;",
    "validation: of the model's own answers to the graphs held out; 1 is best",
)
STEP_INTERVAL_S = 60.0
"""Seconds between the lines of steps in a long epoch."""


class TrainingProgress(Watcher):
    """Shows the progress of training; the remaining time is estimated from the steps so far.

    With ``tell``, it explains the numbers, and prints steps and epochs where no bar is shown.
    """

    def __init__(self, model: str, tell: Callable[[str], None] | None = None) -> None:
        self._model, self._tell = model, tell
        self._bar = ExitStack()
        self._tick = Ticker()
        self._steps: Sequence[int] = ()
        self._done, self._reported_at = 0, 0.0
        self._note = ""

    def begin(self, history: History, steps: Sequence[int]) -> None:
        """Explain the numbers, and open the bar over the remaining steps."""
        done, self._steps = len(history.epochs), steps
        self._reported_at = time.monotonic()
        if self._tell is not None and done < len(steps):
            for line in LEGEND:
                self._tell(line)
        self._note = _epoch_line(history.epochs[-1], len(steps)) if done else ""
        bar = progress(f"training {self._model}", sum(steps[done:]))
        self._tick = self._bar.enter_context(bar)

    def step(self, epoch: int, report: StepReport) -> None:
        """Move the bar on by one; without a bar, tell about it if an epoch takes long."""
        line = _step_line(epoch, len(self._steps), report.mean)
        self._tick(self._note or line)
        self._done += 1
        if time.monotonic() - self._reported_at > STEP_INTERVAL_S:
            self._report(f"{line} (step {self._done} of {self._steps[epoch - 1]})")

    def epoch(self, history: History) -> None:
        """Show the epoch until the next one is complete."""
        epochs, self._done = len(self._steps), 0
        self._note = _epoch_line(history.epochs[-1], epochs)
        done = [epoch.seconds for epoch in history.epochs]
        rest = ceil((epochs - len(done)) * sum(done) / len(done))
        self._report(self._note + (f", about {duration(rest)} left" if epochs > len(done) else ""))

    def end(self) -> None:
        """Close the bar."""
        self._bar.close()

    def _report(self, line: str) -> None:
        if self._tell is not None and not sys.stderr.isatty():
            self._tell(line)
            self._reported_at = time.monotonic()


def _step_line(epoch: int, epochs: int, means: StepReport | Epoch) -> str:
    """Summary of a step, and the beginning of an epoch's."""
    return f"epoch {epoch}/{epochs}: reward {means.reward:.3f}, best known {means.best:.3f}"


def _epoch_line(epoch: Epoch, epochs: int) -> str:
    """Summary of an epoch in one line."""
    held_out = "" if epoch.validation is None else f", validation {epoch.validation:.3f}"
    return _step_line(epoch.epoch, epochs, epoch) + held_out
