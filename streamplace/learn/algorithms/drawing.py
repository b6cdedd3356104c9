"""Random choices by the softmax of logits."""

import numpy as np
from streamsim.jit import inlined_kernel, kernel

from streamplace.model.arrays import Bools, Floats, Singles


@inlined_kernel
def likeliest(logits: Floats) -> int:
    """Return the first of the devices with the largest logit."""
    best = 0
    for a in range(1, len(logits)):
        if logits[a] > logits[best]:
            best = a
    return best


@kernel
def drawn(logits: Floats, uniform: float) -> int:
    """Device drawn by the softmax of the logits, or the likeliest."""
    if uniform < 0:
        return likeliest(logits)
    weights = np.exp(logits - logits[likeliest(logits)])
    remaining, last = uniform * weights.sum(), 0
    for a in range(len(weights)):
        if weights[a] > 0:
            last = a
            remaining -= weights[a]
            if remaining < 0:
                break
    return last


@kernel
def drawn_open(score: Singles, is_open: Bools, uniform: float) -> int:
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
