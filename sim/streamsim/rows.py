"""Copying between arrays of one shape.

An assignment to a slice does the same, and costs two seconds to compile wherever it is written:
it checks the shapes, and brings along all that a message about them takes.
"""

from typing import Any

from numpy.typing import NDArray

from streamsim.jit import inlined_kernel


@inlined_kernel
def copy_row(row: NDArray[Any], other: NDArray[Any]) -> None:
    """Make one row what another is."""
    for k in range(len(row)):
        row[k] = other[k]


@inlined_kernel
def copy_rows(rows: NDArray[Any], others: NDArray[Any]) -> None:
    """Make all rows of a matrix what those of another are."""
    for i in range(len(rows)):
        copy_row(rows[i], others[i])
