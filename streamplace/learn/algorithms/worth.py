"""What alternatives to a decision are worth, and the policy that this makes of the present one.

With Q(a) the worth of alternative a, the policy π moves towards π(a) · exp(Q(a) / τ), normalised:
the best policy that stays near the present one.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from streamplace.model.arrays import Singles


def side_by_side(worths: Sequence[Singles], devices: int) -> Singles:
    """Worths of all decisions [P, D]; NaN for devices that a problem lacks."""
    parts = [worth.reshape(-1, worth.shape[2]) for worth in worths]
    joined = np.full((sum(map(len, parts)), devices), np.nan, np.float32)
    row = 0
    for part in parts:
        joined[row : row + len(part), : part.shape[1]] = part
        row += len(part)
    return joined


def towards_worth(log_p: Tensor, worth: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of the policy with the better one that the worths make of it."""
    tried = ~worth.isnan().all(1)
    now, worth = log_p[tried], worth[tried].nan_to_num(0.0)
    better = (now.detach() + worth / temperature).softmax(-1)
    return -(better * now.masked_fill(now == -torch.inf, 0.0)).sum()


def mean_entropy(log_p: Tensor, problem: Tensor) -> float:
    """Sum over problems of the mean entropy of their decisions."""
    with torch.no_grad():
        entropy = -(log_p.exp() * log_p.masked_fill(log_p == -torch.inf, 0)).sum(-1)
        sums = torch.bincount(problem, entropy.double())
        return float((sums / torch.bincount(problem).clamp(min=1)).sum())
