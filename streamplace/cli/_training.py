"""Progress of training on stderr: a bar on a terminal, a line per epoch otherwise."""

import sys
import time
from math import ceil
from typing import TYPE_CHECKING

from streamplace.cli._output import say
from streamplace.model.report import duration
from streamplace.training.progress import TrainingProgress, step_line

if TYPE_CHECKING:
    from streamplace.learn.history import History
    from streamplace.learn.learner import StepReport

LEGEND = (
    "reward: mean of the sampled placements; best known: mean of the best placement of every "
    "graph so far; validation: mean of the model's own answers to the graphs held out; 1 is best"
)
SILENT_S = 60.0
"""Seconds after which a long epoch logs its step."""
RECENT = 5
"""Number of last epochs whose times predict the others'."""


class Display(TrainingProgress):
    """Shows the progress of training; without a terminal, as lines."""

    def begin(self, history: "History", epochs: int, steps: int) -> None:
        """Explain the numbers, and open the bar over the remaining steps."""
        self._steps, self._done = steps, 0
        self._spoke = time.monotonic()
        if len(history.epochs) < epochs:
            say(LEGEND)
        super().begin(history, epochs, steps)

    def step(self, epoch: int, report: "StepReport") -> None:
        """Advance the bar; without a terminal, print a line every minute."""
        super().step(epoch, report)
        self._done = self._done % self._steps + 1
        if not sys.stderr.isatty() and time.monotonic() - self._spoke > SILENT_S:
            line = step_line(epoch, self._epochs, report)
            self._say(f"{line} (step {self._done} of {self._steps})")

    def epoch(self, history: "History") -> None:
        """Show the epoch until the next one ends."""
        super().epoch(history)
        if not sys.stderr.isatty():
            self._say(self._note + _time_left(history, self._epochs))

    def _say(self, line: str) -> None:
        say(line)
        self._spoke = time.monotonic()


def _time_left(history: "History", epochs: int) -> str:
    """Estimate the remaining time for all epochs from the last ones."""
    left = epochs - len(history.epochs)
    last = [epoch.seconds for epoch in history.epochs[-RECENT:]]
    return f", about {duration(ceil(left * sum(last) / len(last)))} left" if left else ""
