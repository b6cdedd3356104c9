"""Rectified rows, and draws; sums are in one order whatever the machine."""

import numpy as np

from streamplace.learn.numba_kernels.jit import inlined_kernel, kernel
from streamplace.model.arrays import Bools, Floats, Singles


@inlined_kernel
def rectify(row: Singles) -> None:
    """Raise what is below 0 to it."""
    for k in range(len(row)):
        row[k] = max(row[k], np.float32(0))


@kernel
def drawn_open(score: Singles | Floats, is_open: Bools, uniform: float) -> int:
    """Open node drawn by the softmax of the scores, or the likeliest."""
    top, best = -np.inf, 0
    for i in range(len(score)):
        if is_open[i] and score[i] > top:
            top, best = float(score[i]), i
    if uniform < 0:
        return best
    total = 0.0
    for i in range(len(score)):
        if is_open[i]:
            total += np.exp(score[i] - top)
    remaining, last = uniform * total, best
    for i in range(len(score)):
        if is_open[i]:
            remaining -= np.exp(score[i] - top)
            last = i
            if remaining < 0:
                break
    return last
