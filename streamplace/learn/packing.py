"""Arrays and gradients as bytes, for other processes; nothing in them can be run."""

from typing import Any

import numpy as np
import torch

from streamplace.learn.learner import StepReport
from streamplace.learn.parameters import array_of
from streamplace.learn.shards import Gradient
from streamplace.learn.workers import Arrays

PARAMETERS = "parameters"
FACTS = "facts"


def packed(arrays: Arrays) -> bytes:
    """Arrays by name as bytes."""
    from safetensors.numpy import save

    return save({name: np.asarray(array, order="C") for name, array in arrays.items()})


def unpacked(content: bytes) -> dict[str, Any]:
    """Arrays that were packed."""
    from safetensors.numpy import load

    return load(content)


def packed_gradient(gradient: Gradient) -> dict[str, Any]:
    """Gradient as arrays; parameters that have none are left out."""
    report = gradient.report
    facts = [report.problems, report.reward, report.best, report.entropy]
    tensors = {
        str(i): array_of(tensor) for i, tensor in enumerate(gradient.tensors) if tensor is not None
    }
    return {
        PARAMETERS: np.array(len(gradient.tensors)),
        FACTS: np.array([gradient.loss, *facts], np.float64),
        **tensors,
    }


def gradient_from(arrays: Arrays, device: str | torch.device) -> Gradient:
    """Gradient that `packed_gradient` packed."""
    loss, problems, *sums = arrays[FACTS].tolist()
    parameters = (arrays.get(str(i)) for i in range(int(arrays[PARAMETERS])))
    tensors = tuple(None if a is None else torch.tensor(a, device=device) for a in parameters)
    return Gradient(loss, StepReport(int(problems), *sums), tensors)
