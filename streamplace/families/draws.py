"""Random draws of numbers with few digits."""

import numpy as np
from numpy.typing import NDArray

from streamplace.model.arrays import Floats

THOUSANDTHS = 1000


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
