"""Weights of learned models: safetensors files with a description of model and training.

The file's metadata have one JSON document under ``streamplace``: ``format``, ``version``, ``model``
(its name), ``config`` (its options), ``features`` (names, mean and std of its inputs) and
``training`` (how the weights were trained). A checkpoint of a training has such a document under
``weights``, so that it is a file of weights as well.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, NotRequired

import numpy as np
from pydantic import Field, with_config
from pydantic_core import from_json
from typing_extensions import TypedDict

from streamplace.errors import FormatError
from streamplace.io.fields import STRICT, Finite
from streamplace.io.files import read_bytes, spot, writing
from streamplace.io.parsing import checked
from streamplace.model.arrays import Arrays
from streamplace.model.message_text import quoted

FORMAT = "streamplace-weights"
VERSION = 1
CHECKPOINT, CHECKPOINT_VERSION = "streamplace-checkpoint", 4
MODULE = "module/"
"""Beginning of the names of a model's parameters in a checkpoint."""
SUFFIX = ".safetensors"
NUMBERS = "fiub"
"""Kinds of arrays that are parameters: floats, integers and booleans."""


@with_config(STRICT)
class FeaturesJson(TypedDict):
    """Names of a model's input features, with their standardisation."""

    names: list[str]
    mean: NotRequired[list[Finite]]
    std: NotRequired[list[Annotated[Finite, Field(gt=0)]]]


@with_config(STRICT)
class WeightsJson(TypedDict):
    """Description in the metadata of a weights file."""

    format: str
    version: int
    model: str
    config: dict[str, Any]
    features: FeaturesJson
    training: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Weights:
    """Content of a weights file."""

    document: dict[str, Any]  # the JSON document: ``model``, ``config``, ``features``, ``training``
    tensors: Arrays  # parameters by name; half precision is widened to float32

    @property
    def model(self) -> str:
        """Name of the model that the weights are for."""
        return str(self.document["model"])


def write_weights(path: Path, document: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
    """Write parameters and their description, completely or not at all."""
    header = {"format": FORMAT, "version": VERSION, **document}
    write_tensors(path, header, tensors)


def write_checkpoint(path: Path, document: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
    """Write a checkpoint with a digest of its content, completely or not at all."""
    digest = _digest(document, tensors)
    header = {"format": CHECKPOINT, "version": CHECKPOINT_VERSION, "sha256": digest}
    write_tensors(path, {**header, **document}, tensors)


def read_checkpoint(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Document and arrays of a checkpoint, which must not be damaged."""
    document, tensors = read_tensors(path)
    return _whole_checkpoint(document, tensors, spot(path)), tensors


def _whole_checkpoint(document: dict[str, Any], tensors: Arrays, where: str) -> dict[str, Any]:
    """Document of a checkpoint without its header, which must fit the content."""
    header = [document.pop(name, None) for name in ("format", "version", "sha256")]
    if header[:2] != [CHECKPOINT, CHECKPOINT_VERSION]:
        raise FormatError(
            f"{where}: is not a checkpoint that this streamplace reads; train anew into another "
            "folder"
        )
    if header[2] != _digest(document, tensors):
        raise FormatError(
            f"{where}: is damaged; use best.safetensors, or train anew into another folder"
        )
    return document


def _digest(document: Mapping[str, Any], tensors: Mapping[str, Any]) -> str:
    """Digest of the content of a checkpoint."""
    content = sha256(json.dumps(document, sort_keys=True).encode())
    for name, array in sorted(tensors.items()):
        content.update(f"{name} {array.dtype} {array.shape}".encode())
        content.update(array.tobytes())
    return content.hexdigest()


def stamped(path: Path) -> tuple[Path, tuple[int, int]]:
    """Path of a file with its time and size, to detect changes; (0, 0) if it is missing."""
    try:
        status = path.stat()
        return path.resolve(), (status.st_mtime_ns, status.st_size)
    except (OSError, ValueError):
        return path, (0, 0)


def read_weights(
    path: Path, *, model: str | None = None, features: Sequence[str] | None = None
) -> Weights:
    """Read a weights file of this model that was trained on these features; None for any.

    A checkpoint has the weights after its last epoch.
    """
    document, tensors = read_tensors(path)
    where = spot(path)
    if document.get("format") == CHECKPOINT:
        weights = _whole_checkpoint(document, tensors, where)["weights"]
        document = {"format": FORMAT, "version": VERSION, **weights}
        tensors = {n.removeprefix(MODULE): a for n, a in tensors.items() if n.startswith(MODULE)}
    if document.get("format") != FORMAT:
        raise FormatError(f"{where}: is not a file of streamplace weights; name a best.safetensors")
    if document.get("version") != VERSION:
        raise FormatError(
            f"{where}: has version {quoted(document.get('version'))} of the weights format, but "
            f"this streamplace reads version {VERSION}; use the streamplace version that wrote "
            "it, or train again"
        )
    checked(WeightsJson, document, where)
    if model is not None and document["model"] != model:
        raise FormatError(
            f"{where}: contains weights of {quoted(document['model'])}, not of {quoted(model)}; "
            f"name weights of {quoted(model)}"
        )
    if features is not None:
        check_features(document, features, where)
    for name, array in tensors.items():
        if array.dtype.kind not in NUMBERS or not np.isfinite(array).all():
            raise FormatError(
                f"{where}: parameter {quoted(name)} is not a number; download or train it again"
            )
        if array.dtype == np.float16:
            tensors[name] = array.astype(np.float32)
    return Weights(document, tensors)


def check_features(document: Mapping[str, Any], features: Sequence[str], where: str) -> None:
    """Raise FormatError unless weights were trained on these features."""
    if document["features"]["names"] != list(features):
        raise FormatError(
            f"{where}: was trained on other features than this streamplace computes; use the "
            "streamplace version that wrote it, or train again"
        )


def write_tensors(path: Path, document: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
    """Write arrays and one JSON document as a safetensors file, completely or not at all."""
    from safetensors.numpy import save

    arrays = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    content = save(arrays, {"streamplace": text})
    with writing(path) as file:
        file.write(content)


def read_tensors(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Read document and arrays of a safetensors file that `write_tensors` wrote."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    content = read_bytes(path)
    try:
        tensors = load(content)
        size = int.from_bytes(content[:8], "little")
        header = from_json(content[8 : 8 + size])
        document = from_json(header["__metadata__"]["streamplace"], allow_inf_nan=False)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError):
        raise FormatError(
            f"{spot(path)}: is not a complete file of streamplace weights; download or train it "
            "again"
        ) from None
    if not isinstance(document, dict):
        raise FormatError(
            f"{spot(path)}: lacks the description of its weights; download or train it again"
        )
    return document, tensors
