"""Checkpoints: the whole state of a training in one file, from which it is resumed exactly."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from streamplace.errors import FormatError, SettingError
from streamplace.io.files import spot
from streamplace.io.weights import read_tensors, write_tensors
from streamplace.learn.history import Epoch, History
from streamplace.learn.learner import Learner
from streamplace.learn.parameters import array_of, arrays_of, put_arrays
from streamplace.model.arrays import Arrays
from streamplace.model.message_text import quoted, shown

FORMAT, VERSION = "streamplace-checkpoint", 4
NAME = "last.safetensors"
EPOCHS = "training.epochs"
"""Setting that a resumed run may raise."""
MOMENTS = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A run after one of its epochs."""

    document: dict[str, Any]  # ``settings`` of the run, ``history``, ``versions``; fit for JSON
    tensors: Arrays  # parameters, Adam's moments, the learner's memories, best validation

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that a resumed run must share with this one."""
        settings: dict[str, Any] = self.document["settings"]
        return settings

    @property
    def history(self) -> History:
        """The history so far."""
        written = self.document["history"]
        epochs = [Epoch(**row) for row in written["epochs"]]
        return History(epochs, written["before"], int(written["best"]), self.tensors["best/values"])

    @property
    def digest(self) -> str:
        """Digest of the content, by which a damaged file is recognised."""
        content = sha256(json.dumps(self.document, sort_keys=True).encode())
        for name, array in sorted(self.tensors.items()):
            content.update(f"{name} {array.dtype} {array.shape}".encode())
            content.update(array.tobytes())
        return content.hexdigest()


def capture(
    learner: Learner, adam: torch.optim.Adam, history: History, settings: Mapping[str, Any]
) -> Checkpoint:
    """Copy the present state of a run."""
    tensors = {f"module/{name}": array for name, array in arrays_of(learner.module).items()}
    for name, parameter in learner.module.named_parameters():
        moments = adam.state.get(parameter, {})
        tensors |= {f"adam/{key}/{name}": array_of(moments[key]) for key in MOMENTS if moments}
    tensors |= {f"learner/{name}": np.array(array) for name, array in learner.state().items()}
    tensors["best/values"] = np.array(history.values)
    document = {
        "settings": dict(settings),
        "history": history.as_document(),
        "versions": {"streamplace": version("streamplace"), "torch": torch.__version__},
    }
    return Checkpoint(document, tensors)


def restore(checkpoint: Checkpoint, learner: Learner, adam: torch.optim.Adam) -> History:
    """Put a run into the state of a checkpoint."""
    arrays = checkpoint.tensors
    put_arrays(learner.module, _under("module/", arrays), "the checkpoint")
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
    header = {"format": FORMAT, "version": VERSION, "sha256": checkpoint.digest}
    write_tensors(folder / NAME, {**header, **checkpoint.document}, checkpoint.tensors)


def read_checkpoint(folder: Path) -> Checkpoint:
    """Return the last checkpoint of a run's folder."""
    path = folder / NAME
    where = spot(path)
    document, tensors = read_tensors(path)
    header = [document.pop(name, None) for name in ("format", "version", "sha256")]
    checkpoint = Checkpoint(document, tensors)
    if header[:2] != [FORMAT, VERSION]:
        raise FormatError(
            f"{where}: is not a checkpoint that this streamplace can resume; train anew into "
            "another folder"
        )
    if header[2] != checkpoint.digest:
        raise FormatError(f"{where}: is damaged; train anew into another folder")
    return checkpoint


def check_settings(checkpoint: Checkpoint, settings: Mapping[str, Any], folder: Path) -> None:
    """Raise SettingError if a run would be resumed with other settings than it began with.

    Only its epochs may be more; its learning rate then goes on as in the longer run.
    """
    for name in dict.fromkeys([*checkpoint.settings, *settings]):
        then, now = checkpoint.settings.get(name), settings.get(name)
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
    """Arrays whose names have a prefix, which is taken off."""
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def _value(value: Any) -> str:
    return "none" if value is None else quoted(value)
