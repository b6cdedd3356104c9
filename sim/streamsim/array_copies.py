"""Copying between arrays of equal shape.

An assignment to a slice does the same, but takes two seconds to compile at every use, because it
checks the shapes and includes the code for an error message.
"""

from typing import Any

from numpy.typing import NDArray

from streamsim.jit import inlined_kernel


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
