"""Checkpoints: the whole state of a training in one file, from which it is resumed exactly."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import Field, with_config
from typing_extensions import TypedDict

from streamplace.errors import FormatError, SettingError
from streamplace.io.fields import STRICT, Finite
from streamplace.io.files import is_file, spot
from streamplace.io.parsing import parse_as
from streamplace.io.weights import check_finite, read_tensors, write_tensors
from streamplace.learn.history import Epoch, History
from streamplace.learn.learner import Learner
from streamplace.learn.parameters import Arrays, array_of, arrays_of, put_arrays
from streamplace.model.messages import quoted, shown

FORMAT, VERSION = "streamplace-checkpoint", 2
NAME = "last.safetensors"
MOMENTS = ("step", "exp_avg", "exp_avg_sq")
_REMEDY = "train anew into another folder"


@with_config(STRICT)
class HistoryJson(TypedDict):
    """The history so far; see `History`."""

    before: Finite | None
    best: Annotated[int, Field(ge=0)]
    epochs: list[Epoch]


@with_config(STRICT)
class CheckpointJson(TypedDict):
    """Document of a checkpoint."""

    format: str
    version: int
    settings: dict[str, Any]
    history: HistoryJson
    versions: dict[str, str]


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
    put_arrays(learner.module, _under("module/", arrays), "the checkpoint")
    for name, parameter in learner.module.named_parameters():
        adam.state[parameter] = _moments(arrays, name, parameter)
    memories = _under("learner/", arrays)
    _check_memories(memories, learner.state())
    learner.restore(memories)
    return checkpoint.history


def write_checkpoint(checkpoint: Checkpoint, folder: Path) -> None:
    """Write a run's ``last.safetensors``; whole or not at all."""
    write_tensors(folder / NAME, checkpoint.document, checkpoint.tensors)


def read_checkpoint(folder: Path) -> Checkpoint:
    """Return the last checkpoint of a run's folder."""
    path = folder / NAME
    where = spot(path)
    if not is_file(path):
        raise FormatError(f"{spot(folder)}: holds no run to resume; name another folder")
    document, tensors = read_tensors(path)
    if document.get("format") != FORMAT or document.get("version") != VERSION:
        raise FormatError(
            f"{where}: is not a checkpoint that this streamplace can resume; {_REMEDY}"
        )
    history = parse_as(CheckpointJson, json.dumps(document).encode(), where)["history"]
    epochs = [epoch.epoch for epoch in history["epochs"]]
    if epochs != [*range(1, len(epochs) + 1)] or history["best"] > len(epochs):
        raise FormatError(f"{where}: its epochs do not follow one another; {_REMEDY}")
    check_finite(tensors, where)
    values = tensors.get("best/values", np.empty((0, 0)))
    if values.ndim != 1 or values.dtype != np.float64:
        raise FormatError(f"{where}: lacks the values of the best epoch; {_REMEDY}")
    return Checkpoint(document, tensors)


def check_settings(checkpoint: Checkpoint, settings: Mapping[str, Any], folder: Path) -> None:
    """Raise SettingError if a run would be resumed with other settings than it began with."""
    for name in dict.fromkeys([*checkpoint.settings, *settings]):
        then, now = checkpoint.settings.get(name), settings.get(name)
        if then == now:
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


def _moments(arrays: Arrays, name: str, parameter: torch.Tensor) -> dict[str, torch.Tensor]:
    """Adam's moments of a parameter: none before the first step, and all of them after it."""
    names = [f"adam/{key}/{name}" for key in MOMENTS]
    if not any(each in arrays for each in names):
        return {}
    moments = {}
    for key, each in zip(MOMENTS, names, strict=True):
        if each not in arrays:
            raise FormatError(f"the checkpoint: lacks {each}; {_REMEDY}")
        shape, device = (tuple(parameter.shape), parameter.device)
        if key == "step":
            shape, device = (), torch.device("cpu")
        if arrays[each].shape != shape:
            raise FormatError(f"the checkpoint: {each} is {arrays[each].shape}; {_REMEDY}")
        moments[key] = torch.from_numpy(arrays[each].copy()).to(device)
    return moments


def _check_memories(memories: Arrays, wanted: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Check names, types and dimensions of a learner's memories; their sizes may have changed."""
    for name in sorted({*memories, *wanted}):
        if name not in memories or name not in wanted:
            fault = "lacks" if name in wanted else "holds an unknown"
            raise FormatError(f"the checkpoint: {fault} array {quoted(name)}; {_REMEDY}")
        then, now = memories[name], np.asarray(wanted[name])
        if (then.dtype, then.ndim) != (now.dtype, now.ndim):
            raise FormatError(
                f"the checkpoint: array {quoted(name)} is {then.shape} of {then.dtype}; {_REMEDY}"
            )


def _value(value: Any) -> str:
    return "none" if value is None else quoted(value)
