"""Building a learner: from the seed alone, or with weights that training begins from."""

from dataclasses import replace

import torch

from streamplace.errors import FormatError, SettingError
from streamplace.io.weights import Weights
from streamplace.learn.config import Preset
from streamplace.learn.learner import Learner
from streamplace.learn.parameters import put_arrays
from streamplace.learn.registry import Model, Task
from streamplace.learn.threads import one_thread


def check_device(device: str) -> None:
    """Raise SettingError where there is no such device to train on."""
    if device == "cuda" and not torch.cuda.is_available():
        raise SettingError(
            "there is no GPU that torch can use here (cuda); train with --device cpu, or install "
            "a torch built for CUDA"
        )


def built(model: Model, task: Task, preset: Preset) -> Learner:
    """Learner whose parameters depend on the task's seed alone; the global seed stays as it is."""
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(task.seed)
        return model.learner(task, preset.model)


def built_on(weights: Weights, where: str, model: Model, task: Task, preset: Preset) -> Learner:
    """Learner that begins from weights; ``where`` they come from stands in the error."""
    known = weights.document["features"]
    learner = built(model, replace(task, features=known), preset)
    if learner.spec()["features"].get("names") != known.get("names"):
        raise FormatError(
            f"{where}: was trained on other features than this streamplace computes; train "
            "without --start"
        )
    put_arrays(learner.module, weights.tensors, where)
    return learner
