"""Returns of episodes, and what they are compared with."""

import numpy as np

from streamplace.model.arrays import Floats


def discounted(rewards: Floats, gamma: float) -> Floats:
    """Returns G_t = Σ over t' ≥ t of γ^(t' - t) · r_t' of episodes [S, T].

    >>> discounted(np.array([[1.0, 0.0, 4.0]]), 0.5).tolist()
    [[2.0, 2.0, 4.0]]
    """
    returns = np.array(rewards, np.float64)
    for t in range(returns.shape[1] - 2, -1, -1):
        returns[:, t] += gamma * returns[:, t + 1]
    return returns


def running_mean(rewards: Floats) -> Floats:
    """Mean of the rewards before each step of episodes [S, T], 0 before the first.

    >>> running_mean(np.array([[1.0, 3.0, 8.0]])).tolist()
    [[0.0, 1.0, 2.0]]
    """
    before = np.cumsum(rewards, axis=1) - rewards
    return np.asarray(before / np.maximum(np.arange(rewards.shape[1]), 1))
