"""Choices drawn from preferences."""

import numpy as np
from streamsim.jit import kernel

from streamplace.model.arrays import Bools, Floats, Singles


@kernel
def drawn(logits: Floats, uniform: float) -> int:
    """Device drawn by the softmax of the logits, or the likeliest."""
    if uniform < 0:
        return int(np.argmax(logits))
    weights = np.exp(logits - logits.max())
    left, last = uniform * weights.sum(), 0
    for a in range(len(weights)):
        if weights[a] > 0:
            last = a
            left -= weights[a]
            if left < 0:
                break
    return last


@kernel
def drawn_open(score: Singles, is_open: Bools, uniform: float) -> int:
    """Node drawn by the softmax of the scores of what is open, or the likeliest."""
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
    left, last = uniform * total, best
    for i in range(len(score)):
        if is_open[i]:
            left -= np.exp(score[i] - top)
            last = i
            if left < 0:
                break
    return last
