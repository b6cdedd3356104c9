"""Choices drawn from preferences."""

import numpy as np
from numpy.typing import NDArray
from streamsim.jit import kernel

Doubles = NDArray[np.float64]


@kernel
def drawn(logits: Doubles, uniform: float) -> int:
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
