"""Weights as small matrices, and their sums and products in one order whatever the machine."""

from collections.abc import Mapping

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


def matrix_of(tensors: Mapping[str, Singles], name: str) -> Singles:
    """Matrix as [in, out] from named tensors, where it is [out, in]; empty where there is none."""
    matrix = tensors.get(f"{name}.weight", np.zeros((0, 0), np.float32))
    return np.ascontiguousarray(matrix.T, np.float32)


def bias_of(tensors: Mapping[str, Singles], name: str) -> Singles:
    """Bias from named tensors, empty where there is none."""
    return np.array(tensors.get(f"{name}.bias", np.zeros(0)), np.float32)
