"""Checked, read-only columns: the storage of operators, streams and devices."""

from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamplace.errors import StreamplaceError
from streamplace.model.units import LARGEST

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


def float_column(
    values: ArrayLike | None,
    size: int,
    default: float,
    fail: Callable[[int, str], StreamplaceError],
    *,
    positive: bool = False,
    unset: bool = False,
) -> Floats:
    """Numbers in [0, LARGEST] as a read-only float column of the given size.

    ``fail(i, problem)`` makes the error for row i (-1 for the column as a whole). ``positive``
    excludes 0, ``unset`` lets NaN stand for "not given".
    """
    if values is None:
        return frozen(np.full(size, default))
    try:
        column = np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise fail(-1, "must be numbers") from None
    if column.shape != (size,):
        raise fail(-1, f"must have one value each, {size} in all, but come as {column.shape}")
    good = (column > 0 if positive else column >= 0) & (column <= LARGEST)
    if unset:
        good |= np.isnan(column)
    if not good.all():
        bad = int(np.argmin(good))
        floor = "> 0" if positive else "≥ 0"
        raise fail(bad, f"{column[bad]:g}; it must be {floor} and at most {LARGEST:g}")
    return frozen(column)


def frozen(array: NDArray[np.generic]) -> NDArray:  # type: ignore[type-arg]
    """Return the array itself, read-only from here on."""
    array.setflags(write=False)
    return array


def text_column(values: Sequence[str] | None, size: int) -> tuple[str, ...]:
    """Texts as a tuple, empty texts where none are given."""
    return ("",) * size if values is None else tuple(values)


def same_fields(a: object, b: object) -> bool:
    """Whether two dataclass values agree in every compared field, arrays by content, NaN equal."""
    if type(a) is not type(b):
        return False
    return all(
        _same(getattr(a, f.name), getattr(b, f.name))
        for f in fields(a)  # type: ignore[arg-type]
        if f.compare
    )


def _same(x: object, y: object) -> bool:
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        return np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
    return bool(x == y)
