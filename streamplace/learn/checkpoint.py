"""Checkpoints: all that a run needs to go on as if it had never stopped, in one file."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from streamplace.errors import FormatError, SettingError
from streamplace.io.files import spot
from streamplace.io.weights import read_tensors, write_tensors
from streamplace.learn.history import History, history_of
from streamplace.learn.learner import Learner
from streamplace.learn.parameters import Arrays, array_of, arrays_of, put_arrays
from streamplace.model.messages import quoted

FORMAT, VERSION = "streamplace-checkpoint", 1
NAME = "last.safetensors"
MOMENTS = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A run after one of its epochs.

    Attributes
    ----------
    document
        ``settings`` of the run, ``history``, ``versions``; fit for JSON.
    tensors
        Parameters, Adam's moments, what the learner keeps, and the best epoch's validation.
    """

    document: dict[str, Any]
    tensors: Arrays

    @property
    def settings(self) -> dict[str, Any]:
        """What a run that goes on must share with this one."""
        settings: dict[str, Any] = self.document["settings"]
        return settings

    @property
    def history(self) -> History:
        """What happened so far."""
        return history_of(self.document["history"], self.tensors["best/values"])


def capture(
    learner: Learner, adam: torch.optim.Adam, history: History, settings: Mapping[str, Any]
) -> Checkpoint:
    """Copy the present state of a run."""
    tensors = _prefixed("module", arrays_of(learner.module))
    for name, parameter in learner.module.named_parameters():
        moments = adam.state.get(parameter, {})
        tensors |= {f"adam/{key}/{name}": array_of(moments[key]) for key in MOMENTS if moments}
    kept = {name: np.array(array) for name, array in learner.state().items()}
    tensors |= _prefixed("learner", kept)
    tensors["best/values"] = np.array(history.values)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "settings": dict(settings),
        "history": history.as_document(),
        "versions": {"streamplace": version("streamplace"), "torch": torch.__version__},
    }
    return Checkpoint(document, tensors)


def restore(checkpoint: Checkpoint, learner: Learner, adam: torch.optim.Adam) -> History:
    """Put a run into the state of a checkpoint."""
    arrays = checkpoint.tensors
    put_arrays(learner.module, _under("module", arrays), "the checkpoint")
    for name, parameter in learner.module.named_parameters():
        moments = {key: arrays.get(f"adam/{key}/{name}") for key in MOMENTS}
        adam.state[parameter] = {
            key: torch.from_numpy(array.copy()).to("cpu" if key == "step" else parameter.device)
            for key, array in moments.items()
            if array is not None
        }
    learner.restore(_under("learner", arrays))
    return checkpoint.history


def write_checkpoint(checkpoint: Checkpoint, folder: Path) -> None:
    """Write a run's ``last.safetensors``; whole or not at all."""
    write_tensors(folder / NAME, checkpoint.document, checkpoint.tensors)


def read_checkpoint(folder: Path) -> Checkpoint:
    """Return the last checkpoint of a run's folder."""
    path = folder / NAME
    if not path.exists():
        raise FormatError(f"{spot(folder)}: holds no run to resume; drop --resume to start one")
    document, tensors = read_tensors(path)
    if document.get("format") != FORMAT or document.get("version") != VERSION:
        raise FormatError(
            f"{spot(path)}: is no checkpoint that this streamplace can resume; train anew into "
            "another folder"
        )
    return Checkpoint(document, tensors)


def check_settings(checkpoint: Checkpoint, settings: Mapping[str, Any], folder: Path) -> None:
    """Raise SettingError where a run would go on with other settings than it began with."""
    for name in dict.fromkeys([*checkpoint.settings, *settings]):
        then, now = checkpoint.settings.get(name), settings.get(name)
        if then == now:
            continue
        if name == "data":
            told = "on other data (graphs, split, limit, rates or cluster)"
        else:
            told = f"with {name} {_value(then)}, not {_value(now)}"
        raise SettingError(
            f"{spot(folder)}: the run began {told}; resume it as it began, or train into another "
            "folder (--start best.safetensors goes on from its weights)"
        )


def _value(value: Any) -> str:
    return "none" if value is None else quoted(value)


def _prefixed(prefix: str, arrays: Arrays) -> Arrays:
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def _under(prefix: str, arrays: Arrays) -> Arrays:
    start = f"{prefix}/"
    return {n.removeprefix(start): a for n, a in arrays.items() if n.startswith(start)}
