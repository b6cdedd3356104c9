"""Building a learner: from the seed alone, or with weights that training begins from."""

import torch

from streamplace.errors import FormatError, SettingError
from streamplace.io.weights import Weights
from streamplace.learn.config import Preset
from streamplace.learn.learner import Learner
from streamplace.learn.parameters import put_arrays
from streamplace.learn.processes import local_rank
from streamplace.learn.registry import LearnedModel, LearningTask
from streamplace.learn.threads import one_thread


def take_device(device: str) -> None:
    """Let ``cuda`` mean the GPU of this process; SettingError where there is none for it."""
    if device != "cuda":
        return
    if not torch.cuda.is_available():
        raise SettingError(
            "there is no GPU that torch can use here (cuda); train with --device cpu, or install "
            "a torch built for CUDA"
        )
    own, there = local_rank(), torch.cuda.device_count()
    if own >= there:
        raise SettingError(
            f"process {own + 1} of this machine has no GPU of its own; start one process per GPU: "
            f"--nproc-per-node {there}"
        )
    torch.cuda.set_device(own)


def built(model: LearnedModel, task: LearningTask, preset: Preset) -> Learner:
    """Learner whose parameters depend on the task's seed alone; the global seed stays as it is."""
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(task.seed)
        return model.learner(task, preset.model)


def begin_from(learner: Learner, weights: Weights, where: str) -> None:
    """Let a learner of a task with the weights' features begin from them.

    ``where`` they come from stands in the error.
    """
    features = weights.document["features"]
    if learner.spec()["features"].get("names") != features.get("names"):
        raise FormatError(
            f"{where}: was trained on other features than this streamplace computes; train "
            "without --start"
        )
    put_arrays(learner.module, weights.tensors, where)
