"""Checkpoints: the whole state of a training in one file, from which it is resumed exactly."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from streamplace.errors import SettingError
from streamplace.io import weights
from streamplace.io.files import spot
from streamplace.learn.history import Epoch, History
from streamplace.learn.learner import Learner
from streamplace.learn.parameters import array_of, arrays_of, put_arrays
from streamplace.model.arrays import Arrays
from streamplace.model.message_text import quoted, shown

NAME = "last.safetensors"
EPOCHS = "training.epochs"
"""Setting that a resumed run may raise."""
MOMENTS = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A run after one of its epochs."""

    # ``settings`` that a resumed run must share, ``history``, description of its ``weights``,
    # ``versions``
    document: dict[str, Any]  # fit for JSON
    tensors: Arrays  # parameters, Adam's moments, the learner's memories, best validation

    @property
    def history(self) -> History:
        """The history so far."""
        written = self.document["history"]
        epochs = [Epoch(**row) for row in written["epochs"]]
        return History(epochs, written["before"], int(written["best"]), self.tensors["best/values"])


def capture(
    learner: Learner,
    adam: torch.optim.Adam,
    history: History,
    settings: Mapping[str, Any],
    description: Mapping[str, Any],
) -> Checkpoint:
    """Copy the present state of a run, with the description of its weights."""
    parameters = arrays_of(learner.module)
    tensors = {f"{weights.MODULE}{name}": array for name, array in parameters.items()}
    for name, parameter in learner.module.named_parameters():
        moments = adam.state.get(parameter, {})
        tensors |= {f"adam/{key}/{name}": array_of(moments[key]) for key in MOMENTS if moments}
    tensors |= {f"learner/{name}": np.array(array) for name, array in learner.state().items()}
    tensors["best/values"] = np.array(history.values)
    document = {
        "settings": dict(settings),
        "history": history.as_document(),
        "weights": dict(description),
        "versions": {"streamplace": version("streamplace"), "torch": torch.__version__},
    }
    return Checkpoint(document, tensors)


def restore(checkpoint: Checkpoint, learner: Learner, adam: torch.optim.Adam) -> History:
    """Put a run into the state of a checkpoint."""
    arrays = checkpoint.tensors
    put_arrays(learner.module, _under(weights.MODULE, arrays), "the checkpoint")
    for name, parameter in learner.module.named_parameters():
        if f"adam/step/{name}" in arrays:  # none before the first step
            adam.state[parameter] = {
                key: torch.from_numpy(arrays[f"adam/{key}/{name}"].copy()).to(parameter.device)
                for key in MOMENTS
            }
    learner.restore(_under("learner/", arrays))
    return checkpoint.history


def write_checkpoint(checkpoint: Checkpoint, folder: Path) -> None:
    """Write a run's ``last.safetensors``; whole or not at all."""
    weights.write_checkpoint(folder / NAME, checkpoint.document, checkpoint.tensors)


def read_checkpoint(folder: Path) -> Checkpoint:
    """Return the last checkpoint of a run's folder."""
    return Checkpoint(*weights.read_checkpoint(folder / NAME))


def check_settings(checkpoint: Checkpoint, settings: Mapping[str, Any], folder: Path) -> None:
    """Raise SettingError if a run would be resumed with other settings than it began with.

    Only its epochs may be more; its learning rate then goes on as in the longer run.
    """
    before = checkpoint.document["settings"]
    for name in dict.fromkeys([*before, *settings]):
        then, now = before.get(name), settings.get(name)
        more = name == EPOCHS and then is not None and now is not None and now > then
        if then == now or more:
            continue
        if name == "data":
            difference = "on other data (graphs, split, limit, rates or cluster)"
        else:
            difference = f"with {shown(name)} {_value(then)}, not {_value(now)}"
        raise SettingError(
            f"{spot(folder)}: the run was started {difference}; resume it with the same options, "
            "or train into another folder (--start best.safetensors continues from its weights)"
        )


def _under(prefix: str, arrays: Arrays) -> Arrays:
    """Arrays whose names begin with a prefix, by the rest of the name."""
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def _value(value: Any) -> str:
    return "none" if value is None else quoted(value)
