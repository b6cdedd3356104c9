"""The training loop: epochs of steps of Adam, validated, kept, and resumed exactly."""

import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from streamplace.errors import SettingError
from streamplace.io.files import write_text
from streamplace.io.weights import write_weights
from streamplace.learn.checkpoint import Checkpoint, capture, restore, write_checkpoint
from streamplace.learn.config import TrainingConfig
from streamplace.learn.history import Epoch, History, mean_share
from streamplace.learn.learner import Learner, StepReport
from streamplace.learn.parameters import arrays_of
from streamplace.learn.shards import batches, dealt, shards
from streamplace.learn.watching import Silent, Watcher
from streamplace.learn.workers import GradientWorkers
from streamplace.model.arrays import Floats, Longs

LOG = logging.getLogger(__name__)
FIRST, BEST = "first.safetensors", "best.safetensors"
"""Files of the random weights that training begins from, and of the best ones."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingSchedule:
    """How to train a learner, and where to.

    Attributes
    ----------
    folder
        Where the weights, ``last.safetensors`` and ``history.jsonl`` go; None where
        another process writes them.
    model
        Name of the model.
    settings
        What a run that goes on must share with this one; fit for JSON.
    origin
        What the weights file shall say about its making; fit for JSON.
    optima
        Best possible value of every validation problem, NaN where it is not known.
    trained
        Whether the learner begins with trained weights: then no epoch is the best that does not
        beat them.
    """

    config: TrainingConfig
    seed: int
    folder: Path | None
    model: str
    settings: Mapping[str, Any]
    origin: Mapping[str, Any]
    optima: Floats
    trained: bool = False


def train(
    learner: Learner,
    schedule: TrainingSchedule,
    gradient_workers: GradientWorkers,
    watcher: Watcher | None = None,
    resume: Checkpoint | None = None,
) -> History:
    """Train until the last epoch, or until patience runs out; what ends it early loses no epoch.

    Ctrl-C, or an error, leaves the checkpoint of the last whole epoch behind.
    """
    run = _Run(learner, schedule, gradient_workers, watcher or Silent())
    run.begin(resume)
    try:
        while not run.finished:
            run.epoch()
    finally:
        run.save()
        run.watcher.end()
    return run.history


class _Run:
    """A run between two epochs."""

    def __init__(
        self,
        learner: Learner,
        schedule: TrainingSchedule,
        gradient_workers: GradientWorkers,
        watcher: Watcher,
    ) -> None:
        self.learner, self.schedule, self.watcher = learner, schedule, watcher
        self._gradient_workers = gradient_workers
        self._judged = dealt(np.arange(len(schedule.optima)), schedule.config.shards)
        self.history = History()
        self.n_steps = -(-learner.n_problems // schedule.config.batch)
        self._adam = torch.optim.Adam(learner.module.parameters(), schedule.config.learning_rate)
        self._kept: Checkpoint | None = None
        self._saved = True

    @property
    def finished(self) -> bool:
        """Whether the last epoch is done, or patience has run out."""
        config = self.schedule.config
        return len(self.history.epochs) >= config.epochs or self.history.stalled(config.patience)

    def begin(self, resume: Checkpoint | None) -> None:
        """Start, or take up a checkpoint; either way the folder then holds a run to resume."""
        if resume is not None:
            self.history = restore(resume, self.learner, self._adam)
        elif self.schedule.trained and len(self.schedule.optima):
            self.history.values = self._gradient_workers.values(self._judged)
            self.history.before = float(self.history.values.mean())
            self._write_weights(BEST)
        if resume is None and not self.schedule.trained:
            self._write_weights(FIRST)
        self._keep()
        self.save()
        self.watcher.begin(self.history, self.schedule.config.epochs, self.n_steps)

    def epoch(self) -> None:
        """Train for one epoch, validate, and keep what resuming needs."""
        start = time.perf_counter()
        number = len(self.history.epochs)
        config = self.schedule.config
        report, sums = StepReport(0, 0.0, 0.0, 0.0), np.zeros(2)
        for step, rows in enumerate(
            batches(self.learner.sizes, config.batch, self.schedule.seed, number)
        ):
            step_report, numbers = self._step(number, step, rows)
            report, sums = report + step_report, sums + numbers
            self.watcher.step(number + 1, step_report)
        values = self._gradient_workers.values(self._judged)
        mean = report.mean
        done = Epoch(
            epoch=number + 1,
            reward=mean.reward,
            best=mean.best,
            entropy=mean.entropy,
            loss=float(sums[0]) / self.n_steps,
            gradient=float(sums[1]) / self.n_steps,
            learning_rate=self._rate(number, self.n_steps - 1),
            validation=float(values.mean()) if len(values) else None,
            of_optimum=mean_share(values, self.schedule.optima),
            seconds=time.perf_counter() - start,
        )
        self._close(done, values)

    def save(self) -> None:
        """Write the last epoch's checkpoint, unless that is done."""
        folder = self.schedule.folder
        if self._saved or self._kept is None or folder is None:
            return
        write_checkpoint(self._kept, folder)
        write_text(folder / "history.jsonl", self._kept.history.lines())
        self._saved = True

    def _close(self, epoch: Epoch, values: Floats) -> None:
        """Note an epoch that is done."""
        if self.history.add(epoch, values):
            self._write_weights(BEST)
        self._keep()
        if epoch.epoch % self.schedule.config.checkpoint_every == 0:
            self.save()
        LOG.info("epoch %d: reward %.4f, score %.4f", epoch.epoch, epoch.reward, epoch.score)
        self.watcher.epoch(self.history)

    def _step(self, epoch: int, step: int, rows: Longs) -> tuple[StepReport, Floats]:
        """One step of Adam; what was sampled, and the loss and the gradient's norm."""
        parts = shards(rows, self.schedule.config.shards, self.schedule.seed, epoch, step)
        gradient = self._gradient_workers.gradient(parts).per_problem(len(rows))
        parameters = [p for p in self.learner.module.parameters() if p.requires_grad]
        for parameter, tensor in zip(parameters, gradient.tensors, strict=True):
            parameter.grad = tensor
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, self.schedule.config.clip))
        if not math.isfinite(norm + gradient.loss):
            raise SettingError(
                f"training diverged in epoch {epoch + 1}: the loss is {gradient.loss:g}, "
                f"its gradient {norm:g}; lower learning_rate or clip in the table [training] of "
                "--config"
            )
        for group in self._adam.param_groups:
            group["lr"] = self._rate(epoch, step)
        self._adam.step()
        return gradient.report, np.array([gradient.loss, norm])

    def _rate(self, epoch: int, step: int) -> float:
        """Learning rate of a step, on the way from the first to the final one."""
        config = self.schedule.config
        done = (epoch * self.n_steps + step) / max(1, config.epochs * self.n_steps - 1)
        share = 1 - done if config.decay == "linear" else 0.5 * (1 + math.cos(math.pi * done))
        span = config.learning_rate - config.final_learning_rate
        return config.final_learning_rate + span * share

    def _keep(self) -> None:
        checkpoint = capture(self.learner, self._adam, self.history, self.schedule.settings)
        self._kept, self._saved = checkpoint, False

    def _write_weights(self, name: str) -> None:
        """Write a file of weights: as they are, and how they came about."""
        history, folder = self.history, self.schedule.folder
        if folder is None:
            return
        score = history.epochs[-1].score if history.epochs else history.before
        document = {
            "model": self.schedule.model,
            **self.learner.spec(),
            "training": {
                **self.schedule.origin,
                "epochs": len(history.epochs),
                "validation": score,
            },
        }
        write_weights(folder / name, document, arrays_of(self.learner.module))
