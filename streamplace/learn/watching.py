"""Watching training: what a progress display is told, and the log that TensorBoard shows."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from streamplace.io.extras import importing_torch
from streamplace.learn.history import Epoch, History
from streamplace.learn.learner import StepReport

if TYPE_CHECKING:
    from torch.utils.tensorboard.writer import SummaryWriter

TAGS = {
    "reward": "training/reward",
    "best": "training/best known",
    "entropy": "training/entropy",
    "loss": "training/loss",
    "gradient": "training/gradient norm",
    "learning_rate": "training/learning rate",
    "validation": "validation/throughput",
    "of_optimum": "validation/share of the optimum",
}


class Watcher(Protocol):
    """Is told how training goes."""

    def begin(self, history: History, epochs: int, steps: int) -> None:
        """Training of so many epochs of so many steps begins, or goes on after a history."""
        ...

    def step(self, epoch: int, report: StepReport) -> None:
        """One more step of an epoch (counted from 1) is done."""
        ...

    def epoch(self, history: History) -> None:
        """One more epoch is done, the last of the history."""
        ...

    def end(self) -> None:
        """No more is coming, for whatever reason."""
        ...


class Silent:
    """Watches without a word."""

    def begin(self, history: History, epochs: int, steps: int) -> None:
        """Say nothing."""

    def step(self, epoch: int, report: StepReport) -> None:
        """Say nothing."""

    def epoch(self, history: History) -> None:
        """Say nothing."""

    def end(self) -> None:
        """Say nothing."""


class Board(Silent):
    """Writes TensorBoard's event file; a resumed run writes it anew, without gaps or doubles."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: SummaryWriter | None = None

    def begin(self, history: History, epochs: int, steps: int) -> None:
        """Open the file, with what is known already."""
        with importing_torch():
            from torch.utils.tensorboard.writer import SummaryWriter

        old = list(self._folder.glob("events.out.tfevents.*"))
        self._writer = SummaryWriter(str(self._folder))
        for file in old:
            with suppress(OSError):
                file.unlink()
        for epoch in history.epochs:
            self._add(epoch)

    def epoch(self, history: History) -> None:
        """Add the last epoch."""
        self._add(history.epochs[-1])
        if self._writer is not None:
            self._writer.flush()

    def end(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()

    def _add(self, epoch: Epoch) -> None:
        for name, tag in TAGS.items():
            value = getattr(epoch, name)
            if value is not None and self._writer is not None:
                self._writer.add_scalar(tag, value, epoch.epoch)


class Several(Silent):
    """Passes everything on to several watchers."""

    def __init__(self, *watchers: Watcher) -> None:
        self._watchers = watchers

    def begin(self, history: History, epochs: int, steps: int) -> None:
        """Pass it on."""
        for watcher in self._watchers:
            watcher.begin(history, epochs, steps)

    def step(self, epoch: int, report: StepReport) -> None:
        """Pass it on."""
        for watcher in self._watchers:
            watcher.step(epoch, report)

    def epoch(self, history: History) -> None:
        """Pass it on."""
        for watcher in self._watchers:
            watcher.epoch(history)

    def end(self) -> None:
        """Pass it on."""
        for watcher in self._watchers:
            watcher.end()
