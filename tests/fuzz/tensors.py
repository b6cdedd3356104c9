"""Safetensors files whose tensors are dropped, renamed, copied, retyped and reshaped, yet whole."""

import json
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

TYPES = (np.float16, np.float32, np.float64, np.int8, np.int64, np.uint8, np.bool_)
NAMES = ("", "a", "module", "metadata", "x" * 300, "é\n")

Arrays = dict[str, NDArray[Any]]


def changed_tensors(content: bytes, rng: Random) -> bytes:
    """Return a valid safetensors file with the same document and one other tensor.

    Raises
    ------
    ValueError
        Where the content is not one.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load, save

    try:
        arrays: Arrays = load(content)
    except SafetensorError as error:
        raise ValueError(str(error)) from None
    size = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + size])["__metadata__"]
    if not arrays:
        return save({"a": np.zeros(1, np.float32)}, metadata)
    name = rng.choice(sorted(arrays))
    way = rng.randrange(5)
    if way == 0:
        del arrays[name]
    elif way == 1:
        arrays[rng.choice((*NAMES, f"{name}.a", name[:-1]))] = arrays.pop(name)
    elif way == 2:
        arrays[rng.choice((*NAMES, *arrays))] = arrays[name]
    else:
        arrays[name] = _changed_array(arrays[name], rng)
    return save({key: np.ascontiguousarray(a) for key, a in arrays.items()}, metadata)


def _changed_array(array: NDArray[Any], rng: Random) -> NDArray[Any]:
    """Another type, another shape, or other values in it."""
    if rng.random() < 0.3:
        return np.nan_to_num(array).astype(rng.choice(TYPES))
    if rng.random() < 0.3:
        factor = rng.choice((0, -1, 1e6, 1e30, 1e-30))
        with np.errstate(all="ignore"):
            return np.nan_to_num(array * factor).astype(array.dtype)
    shapes = (
        array.ravel(),
        array.T,
        array[None],
        array[..., None],
        array[:0] if array.ndim else array.reshape(1),
        array[:-1] if array.ndim else array.reshape(1, 1),
        np.concatenate([array, array]) if array.ndim else np.zeros((0, 0), array.dtype),
        np.zeros((), array.dtype),
        np.zeros((3, 0, 5), array.dtype),
    )
    return rng.choice(shapes)
