"""Columns of the document: JSON numbers, a single one if all rows are equal."""

from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamplace.report.document import Column, Texts


def column(values: ArrayLike) -> Column:
    """Numbers by row, or a single number if all rows are equal.

    >>> column([1.0, 2.5]), column([3.0, 3.0])
    ([1, 2.5], 3)
    """
    array = np.asarray(values)
    if len(array) and bool((array == array[0]).all()):
        return plain(float(array[0]))
    return numbers(array)


def numbers(values: ArrayLike) -> list[float]:
    """Convert an array to numbers; whole ones become integers, which are shorter.

    >>> numbers([0.5, 2.0, 1e20])
    [0.5, 2, 1e+20]
    """
    return [plain(value) for value in np.asarray(values).tolist()]


def rounded(values: ArrayLike) -> list[float]:
    """Round to twelve digits, which are enough for pictures and for comparisons to 1e-9.

    >>> rounded([0.1 + 0.2])
    [0.3]
    """
    return [plain(float(f"{value:.12g}")) for value in np.asarray(values).tolist()]


def plain(value: float) -> float:
    """Convert a whole number to an integer."""
    whole = isinstance(value, float) and abs(value) < 1e15 and value.is_integer()
    return int(value) if whole else value


def finite(value: float) -> float | None:
    """Number, or None if it is infinite or NaN."""
    return plain(value) if isfinite(value) else None


def texts(values: tuple[str, ...]) -> Texts:
    """Texts by row, or a single text if all rows are equal."""
    return values[0] if len(set(values)) == 1 else list(values)


def rows(marked: NDArray[np.bool_]) -> list[int]:
    """Indices of the marked rows."""
    chosen: list[int] = np.flatnonzero(marked).tolist()
    return chosen
