"""Progress of training on stderr: a bar on a terminal, a line per epoch in a log."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from streamplace.cli._output import Ticker, progress, say
from streamplace.model.report import percent

if TYPE_CHECKING:
    from streamplace.learn.history import Epoch, History
    from streamplace.learn.learner import StepReport


def tracked(items: Iterable[Any], title: str, total: int) -> Iterator[Any]:
    """Pass items on beside a progress bar."""
    with progress(title, total) as tick:
        yield from tick.over(items)


class Display:
    """Shows training as it goes; the time that is left follows from the steps that are done."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._bar = ExitStack()
        self._tick = Ticker()
        self._epochs = 0
        self._note = ""

    def begin(self, history: "History", epochs: int, steps: int) -> None:
        """Open the bar over the steps that are left."""
        done = len(history.epochs)
        self._epochs = epochs
        self._note = epoch_line(history.epochs[-1], epochs) if done else ""
        bar = progress(f"training {self._model}", (epochs - done) * steps)
        self._tick = self._bar.enter_context(bar)

    def step(self, epoch: int, report: "StepReport") -> None:
        """Move the bar on by one."""
        now = f"reward {report.mean.reward:.3f}, best known {report.mean.best:.3f}"
        self._tick(self._note or f"epoch {epoch}/{self._epochs}: {now}")

    def epoch(self, history: "History") -> None:
        """Show the epoch until the next is done."""
        self._note = epoch_line(history.epochs[-1], self._epochs)
        if not sys.stderr.isatty():
            say(self._note)

    def end(self) -> None:
        """Close the bar."""
        self._bar.close()


def epoch_line(epoch: "Epoch", epochs: int) -> str:
    """Summary of an epoch in one line."""
    words = [f"epoch {epoch.epoch}/{epochs}: reward {epoch.reward:.3f}"]
    words.append(f"best known {epoch.best:.3f}")
    if epoch.validation is not None:
        words.append(f"validation {epoch.validation:.3f}")
    if epoch.of_optimum is not None:
        words.append(f"{percent(epoch.of_optimum)} of the optimum")
    return ", ".join(words)
