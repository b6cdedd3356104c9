"""The training loop: epochs of steps of Adam, with validation, checkpoints and exact resuming."""

import logging
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from streamplace.errors import FormatError, SettingError
from streamplace.io.extras import importing
from streamplace.io.files import write_text
from streamplace.io.weights import Weights, write_weights
from streamplace.learn.checkpoint import Checkpoint, capture, restore, write_checkpoint
from streamplace.learn.config import Preset, TrainingConfig
from streamplace.learn.device import device_of, device_words, is_out_of_memory
from streamplace.learn.history import BEST, Epoch, History, Watcher
from streamplace.learn.learner import Learner, StepReport
from streamplace.learn.parameters import arrays_of, put_arrays
from streamplace.learn.registry import LearnedModel, LearningTask
from streamplace.learn.shards import GradientWorkers, batches, dealt, one_thread, shards
from streamplace.model.arrays import Longs

LOG = logging.getLogger(__name__)
FIRST = "first.safetensors"
"""File of the random weights that training begins from."""


def built(model: LearnedModel, task: LearningTask, preset: Preset) -> Learner:
    """Learner whose parameters depend only on the task's seed; torch's global seed is untouched."""
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(task.seed)
        with importing("learn"):
            learner = model.learner(task, preset.model)
        learner.module.to(task.device)
        return learner


def begin_from(learner: Learner, weights: Weights, where: str) -> None:
    """Put weights into a learner that has the same features; ``where`` names them in errors."""
    features = weights.document["features"]
    if learner.spec()["features"].get("names") != features.get("names"):
        raise FormatError(
            f"{where}: was trained on other features than this streamplace computes; train "
            "without --start"
        )
    put_arrays(learner.module, weights.tensors, where)


class TrainingLoop:
    """The epochs of a training: steps of Adam, validation, and what resuming needs.

    A resumed run must share the ``settings``, among them ``model``, ``seed`` and ``start``, the
    digest of the weights that training begins from: an epoch is the best only if it beats these.
    ``origin`` describes the weights in their files, and ``chosen_by`` the choice of the best ones;
    ``validation`` is the number of validation problems.
    """

    def __init__(
        self,
        learner: Learner,
        gradient_workers: GradientWorkers,
        *,
        config: TrainingConfig,
        folder: Path,
        settings: Mapping[str, Any],
        origin: Mapping[str, Any],
        chosen_by: Mapping[str, Any],
        validation: int,
    ) -> None:
        self.learner, self.config = learner, config
        self._gradient_workers, self._folder = gradient_workers, folder
        self._settings, self._origin, self._chosen_by = settings, origin, chosen_by
        self._seed: int = settings["seed"]
        self._validation = dealt(np.arange(validation), config.shards)
        self.history = History()
        self._adam = torch.optim.Adam(learner.module.parameters(), config.learning_rate, fused=True)

    def run(self, watcher: Watcher | None, resume: Checkpoint | None = None) -> History:
        """Train until the last epoch, or until patience runs out.

        Ctrl-C, or an error, leaves the checkpoint of the last complete epoch in the folder.
        """
        self._begin(resume)
        if watcher is not None:
            watcher.begin(self.history, [self._n_steps(i) for i in range(self.config.epochs)])
        try:
            config, history = self.config, self.history
            while len(history.epochs) < config.epochs and not history.stalled(config.patience):
                self._epoch(watcher)
        finally:
            if watcher is not None:
                watcher.end()
        return self.history

    def _begin(self, resume: Checkpoint | None) -> None:
        """Start, or restore a checkpoint; in both cases the folder then holds a run to resume."""
        if resume is not None:
            self.history = restore(resume, self.learner, self._adam)
        elif self._settings["start"] is None:
            self._write_weights(FIRST)
        elif self._validation:
            self.history.values = self._gradient_workers.values(self._validation)
            self.history.before = float(self.history.values.mean())
            self._write_weights(BEST)
        self._save()

    def _epoch(self, watcher: Watcher | None) -> None:
        """Train for one epoch, validate, and keep what resuming needs."""
        start = time.perf_counter()
        number = len(self.history.epochs)
        config = self.config
        report = StepReport(0, 0.0, 0.0, 0.0, 0)
        loss = norm = rate = 0.0
        sizes, steps = self.learner.sizes(number), self._n_steps(number)
        for step, rows in enumerate(batches(sizes, config.batch, self._seed, number)):
            rate = self._rate(number + step / steps)
            step_report, step_loss, step_norm = self._step(number, step, rows, rate)
            report, loss, norm = report + step_report, loss + step_loss, norm + step_norm
            if watcher is not None:
                watcher.step(number + 1, step_report)
        values = self._gradient_workers.values(self._validation)
        mean = report.mean
        done = Epoch(
            epoch=number + 1,
            reward=mean.reward,
            best=mean.best,
            entropy=mean.entropy,
            loss=loss / steps,
            gradient=norm / steps,
            learning_rate=rate,
            validation=float(values.mean()) if len(values) else None,
            evaluations=report.evaluations,
            seconds=time.perf_counter() - start,
        )
        if self.history.add(done, values):
            self._write_weights(BEST)
        self._save()
        LOG.info("epoch %d: reward %.4f, score %.4f", done.epoch, done.reward, done.score)
        if watcher is not None:
            watcher.epoch(self.history)

    def _save(self) -> None:
        """Write the checkpoint, and the history for people."""
        checkpoint = capture(
            self.learner, self._adam, self.history, self._settings, self._description()
        )
        write_checkpoint(checkpoint, self._folder)
        write_text(self._folder / "history.jsonl", self.history.lines())

    def _step(
        self, epoch: int, step: int, rows: Longs, rate: float
    ) -> tuple[StepReport, float, float]:
        """One step of Adam; its report, and the loss and the gradient's norm."""
        parts = shards(rows, self.config.shards, self._seed, epoch, step)
        try:
            gradient, n = self._gradient_workers.gradient(parts), len(rows)
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise SettingError(
                    f"a batch of {len(rows)} problems in {len(parts)} shards does not fit into the "
                    "memory of the device; lower batch or raise shards in the table [training] of "
                    "--config, and train into another folder"
                ) from None
            raise
        norms = [torch.linalg.vector_norm(t) for t in gradient.tensors if t is not None]
        loss, norm = gradient.loss / n, float(torch.linalg.vector_norm(torch.stack(norms))) / n
        if not math.isfinite(norm + loss):
            raise SettingError(
                f"training diverged in epoch {epoch + 1}: the loss is {loss:g}, its gradient "
                f"{norm:g}; lower learning_rate or clip in the table [training] of --config"
            )
        scale = min(1.0, self.config.clip / (norm + 1e-6)) / n
        parameters = (p for p in self.learner.module.parameters() if p.requires_grad)
        for parameter, tensor in zip(parameters, gradient.tensors, strict=True):
            if tensor is not None:  # the fused kernel reads gradients in the order of memory
                tensor = (tensor if scale == 1 else tensor * scale).contiguous()
            parameter.grad = tensor
        for group in self._adam.param_groups:
            group["lr"] = rate
        self._adam.step()
        return gradient.report, loss, norm

    def _n_steps(self, epoch: int) -> int:
        return -(-len(self.learner.sizes(epoch)) // self.config.batch)

    def _rate(self, epochs: float) -> float:
        """Learning rate after a number of epochs; the last step has the final one."""
        config = self.config
        end = config.epochs - 1 / self._n_steps(config.epochs - 1)
        done = epochs / end if end else 0.0
        share = 1 - done if config.decay == "linear" else 0.5 * (1 + math.cos(math.pi * done))
        span = config.learning_rate - config.final_learning_rate
        return config.final_learning_rate + span * share

    def _write_weights(self, name: str) -> None:
        """Write the present weights and their origin."""
        description = self._description()
        description["training"] |= self._chosen_by
        write_weights(self._folder / name, description, arrays_of(self.learner.module))

    def _description(self) -> dict[str, Any]:
        """Description of the present weights, for their file."""
        history = self.history
        score = history.epochs[-1].score if history.epochs else history.before
        return {
            "model": self._settings["model"],
            **self.learner.spec(),
            "training": {
                **self._origin,
                "epochs": len(history.epochs),
                "steps": sum(map(self._n_steps, range(len(history.epochs)))),
                "evaluations": sum(epoch.evaluations for epoch in history.epochs),
                "seconds": round(sum(epoch.seconds for epoch in history.epochs), 1),
                "device": device_words(device_of(self.learner.module)),
                "validation": score,
            },
        }
