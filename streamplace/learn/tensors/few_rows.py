"""Products of rows and a matrix of weights, which is read once for all of a few rows.

A BLAS reads it about once per row: 3 rows and 2,048 × 512 weights take it twice as long. Four rows
of weights are read at a time.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from streamplace.learn.numba_kernels.jit import relaxed_kernel

ZERO = np.float32(0)
MOST_ROWS = 6
"""Most rows for which these are faster than a BLAS (measured)."""


def multiply(rows: Tensor, weight: Tensor, into: Tensor) -> None:
    """Write rows [M, N] · weights [N, K]."""
    if _are_few(rows, weight):
        _multiply(rows.numpy(), weight.detach().numpy(), into.numpy())
    else:
        torch.mm(rows, weight, out=into)


def multiply_transposed(rows: Tensor, weight: Tensor, into: Tensor) -> None:
    """Write rows [M, ≥ K], of which K columns count, · the transpose of weights [N, K]."""
    if _are_few(rows, weight):
        _multiply_transposed(rows.numpy(), weight.detach().numpy(), into.numpy())
    else:
        torch.mm(rows[:, : weight.shape[1]], weight.t(), out=into)


def _are_few(rows: Tensor, weight: Tensor) -> bool:
    are_usual = rows.dtype == torch.float32 and rows.is_contiguous() and weight.is_contiguous()
    return len(rows) <= MOST_ROWS and are_usual and len(weight) % 4 == 0


@relaxed_kernel
def _multiply(rows: Any, weight: Any, into: Any) -> None:
    into[:] = ZERO
    for n in range(0, len(weight), 4):
        a, b, c, d = weight[n], weight[n + 1], weight[n + 2], weight[n + 3]
        for m in range(len(rows)):
            row, to = rows[m], into[m]
            of_a, of_b, of_c, of_d = row[n], row[n + 1], row[n + 2], row[n + 3]
            for k in range(len(a)):
                to[k] += of_a * a[k] + of_b * b[k] + of_c * c[k] + of_d * d[k]


@relaxed_kernel
def _multiply_transposed(rows: Any, weight: Any, into: Any) -> None:
    for n in range(0, len(weight), 4):
        a, b, c, d = weight[n], weight[n + 1], weight[n + 2], weight[n + 3]
        for m in range(len(rows)):
            row, of_a, of_b, of_c, of_d = rows[m], ZERO, ZERO, ZERO, ZERO
            for k in range(len(a)):
                of_a += row[k] * a[k]
                of_b += row[k] * b[k]
                of_c += row[k] * c[k]
                of_d += row[k] * d[k]
            into[m, n], into[m, n + 1], into[m, n + 2], into[m, n + 3] = of_a, of_b, of_c, of_d
