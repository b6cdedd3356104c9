"""Copies of rows, canonical placements, and positions grouped by key.

An assignment to a slice copies as `copy_row` does, but takes two seconds to compile at every use,
because it checks the shapes and includes the code for an error message.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamplace.learn.numba_kernels.jit import inlined_kernel, kernel
from streamplace.model.arrays import Ints


@inlined_kernel
def copy_row(row: NDArray[Any], other: NDArray[Any]) -> None:
    """Copy ``other`` into ``row``."""
    for k in range(len(row)):
        row[k] = other[k]


@inlined_kernel
def copy_rows(rows: NDArray[Any], others: NDArray[Any]) -> None:
    """Copy ``others`` into ``rows``, row by row."""
    for i in range(len(rows)):
        copy_row(rows[i], others[i])


@kernel
def canonical(placements: Ints, order: Ints, classes: Ints) -> Ints:
    """Renumber the devices of every class by first appearance; see `streamsim.canonical`."""
    result = np.empty_like(placements)
    name = np.empty(len(classes), np.int32)
    cursor = np.empty(len(classes), np.int32)
    for i in range(len(placements)):
        name[:] = -1
        cursor[:] = 0
        for v in order:
            d = placements[i, v]
            c = classes[d]
            if name[d] < 0:
                while classes[cursor[c]] != c:
                    cursor[c] += 1
                name[d] = cursor[c]
                cursor[c] += 1
            result[i, v] = name[d]
    return result


@kernel
def group_by(keys: Ints, n: int) -> tuple[Ints, Ints]:
    """Group positions by key: those of k are ``positions[start[k]:start[k + 1]]``, ascending."""
    start = np.zeros(n + 1, np.int32)
    for key in keys:
        start[key + 1] += 1
    for k in range(n):
        start[k + 1] += start[k]
    fill = start[:-1].copy()
    positions = np.empty(len(keys), np.int32)
    for i in range(len(keys)):
        positions[fill[keys[i]]] = i
        fill[keys[i]] += 1
    return start, positions
