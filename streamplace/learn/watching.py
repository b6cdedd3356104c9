"""Watchers of a training: their contract, TensorBoard's log, and several together."""

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
    "validation": "validation/reward",
}


class Watcher(Protocol):
    """Receives the events of a training; the methods of this class ignore them."""

    def begin(self, history: History, epochs: int, steps: int) -> None:
        """Training begins, or continues a history, with so many steps in every epoch."""
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


class TensorBoardWatcher(Watcher):
    """Writes TensorBoard's event file; a resumed run writes it again, without gaps."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: SummaryWriter | None = None

    def begin(self, history: History, epochs: int, steps: int) -> None:
        """Open the file, and write the epochs so far."""
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


class WatcherList(Watcher):
    """Forwards everything to several watchers."""

    def __init__(self, *watchers: Watcher) -> None:
        self._watchers = watchers

    def begin(self, history: History, epochs: int, steps: int) -> None:
        """Forward to all."""
        for watcher in self._watchers:
            watcher.begin(history, epochs, steps)

    def step(self, epoch: int, report: StepReport) -> None:
        """Forward to all."""
        for watcher in self._watchers:
            watcher.step(epoch, report)

    def epoch(self, history: History) -> None:
        """Forward to all."""
        for watcher in self._watchers:
            watcher.epoch(history)

    def end(self) -> None:
        """Forward to all."""
        for watcher in self._watchers:
            watcher.end()
