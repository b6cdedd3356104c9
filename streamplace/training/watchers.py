"""Progress of a training for people: a bar, and lines on steps and epochs."""

from contextlib import ExitStack

from streamplace.learn.history import Epoch, History
from streamplace.learn.learner import StepReport
from streamplace.learn.watching import Watcher
from streamplace.progress import Ticker, progress


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
