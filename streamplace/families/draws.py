"""Random draws of numbers with few digits."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from streamplace.model.arrays import Floats

THOUSANDTHS = 1000
T = TypeVar("T")


def thousandths(values: Floats) -> NDArray[np.int64]:
    """Values as whole thousandths: equal on every machine, and short in files."""
    return np.rint(values * THOUSANDTHS).astype(np.int64)


def short(values: Floats) -> Floats:
    """Values rounded to three digits after the point."""
    return np.asarray(thousandths(values) / THOUSANDTHS)


def around(
    rng: np.random.Generator, mean: float, spread: float, size: int | tuple[int, ...]
) -> Floats:
    """Uniform on mean · (1 ± spread / 2)."""
    return np.asarray(rng.uniform(mean * (1 - spread / 2), mean * (1 + spread / 2), size))


def one_of(rng: np.random.Generator, values: Sequence[T]) -> T:
    """One of some values, all equally likely."""
    return values[int(rng.integers(len(values)))]
