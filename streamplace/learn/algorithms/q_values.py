"""Values Q(a) of the alternatives to a decision, and the loss that moves a policy towards them.

The policy π moves towards π(a) · exp(Q(a) / τ), normalised:
the best policy that stays near the present one.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from streamplace.model.arrays import Singles


def side_by_side(tables: Sequence[Singles], devices: int) -> Singles:
    """Values of all decisions [P, D]; NaN for devices that a problem lacks."""
    parts = [table.reshape(-1, table.shape[2]) for table in tables]
    joined = np.full((sum(map(len, parts)), devices), np.nan, np.float32)
    row = 0
    for part in parts:
        joined[row : row + len(part), : part.shape[1]] = part
        row += len(part)
    return joined


def towards_q_values(log_p: Tensor, q_values: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of the policy with π(a) · exp(Q(a) / τ), over decisions with alternatives."""
    tried = ~q_values.isnan().all(1)
    now, gain = log_p[tried], q_values[tried].nan_to_num(0.0)
    better = (now.detach() + gain / temperature).softmax(-1)
    return -(better * now.masked_fill(now == -torch.inf, 0.0)).sum()


def mean_entropy(log_p: Tensor, problem: Tensor) -> float:
    """Sum over problems of the mean entropy of their decisions."""
    with torch.no_grad():
        entropy = -(log_p.exp() * log_p.masked_fill(log_p == -torch.inf, 0)).sum(-1)
        sums = torch.bincount(problem, entropy.double())
        return float((sums / torch.bincount(problem).clamp(min=1)).sum())
