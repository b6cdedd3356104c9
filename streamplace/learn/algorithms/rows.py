"""Sums and products of small matrices, in one order whatever the machine."""

import numpy as np
from streamsim.jit import inlined_kernel, kernel

from streamplace.model.arrays import Singles


@inlined_kernel
def add_multiple(row: Singles, other: Singles, factor: np.float32) -> None:
    """Add a multiple of another row."""
    if factor != 0:
        for k in range(len(row)):
            row[k] += factor * other[k]


@kernel
def product(x: Singles, matrix: Singles) -> Singles:
    """Product of a matrix with zeros in it and another.

    These are small, and BLAS would spread them over threads: slow on a busy machine, and with
    results that depend on the number of threads.
    """
    out = np.zeros((len(x), matrix.shape[1]), np.float32)
    for i in range(len(x)):
        for j in range(len(matrix)):
            factor = x[i, j]
            if factor != 0:
                for k in range(matrix.shape[1]):
                    out[i, k] += factor * matrix[j, k]
    return out
