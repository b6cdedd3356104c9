"""Features of operators, and their scale over a training set."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from streamplace.learn.constructive.policy import FeatureScale
from streamplace.learn.env import Batch
from streamplace.learn.models.dream.model import COMMON, FEATURES

LEAST = 1e-4
"""Smaller shares of a device or link are raised to this before the logarithm."""


class OperatorScale(FeatureScale):
    """Scale of features of operators."""

    __slots__ = ()

    @classmethod
    def of(cls, batch: Batch, names: Sequence[str] = FEATURES) -> "OperatorScale":
        """Measure the scale on the operators of these problems; the paper's features have none."""
        if FEATURES[0] not in names:
            return cls(names, np.zeros(len(names)), np.ones(len(names)))
        rows = operator_features(batch, names)[batch.present].cpu().numpy()
        mean, std = rows.mean(axis=0), rows.std(axis=0)
        return cls(names, mean, np.where(std > 0, std, 1.0))


def operator_features(batch: Batch, names: Sequence[str] = FEATURES) -> Tensor:
    """Features [G, N, F] of operators by name: loads and transfers, and what all have in common.

    The load is the share of a device, λ · seconds, as the mean over the devices. The transfer is
    the share of a link, λ · Σ selectivity · payload · seconds per byte, as the mean over the links.
    Both are in yardsticks where devices are told by what they are and hold.
    """
    common = COMMON[0] in names
    devices = batch.exists.sum(1)
    load = batch.full_load.sum(2) / devices[:, None]
    shares = torch.stack([load, batch.bytes.sum(1) * batch.usual_wire[:, None]], dim=2)
    if common:
        shares = shares / batch.yardstick[:, None, None]
    columns = [shares.clamp(min=LEAST).log(), shares]
    if common:
        operators = batch.present.sum(1, keepdim=True)
        of_problem = [*(shares.sum(1) / devices[:, None]).unbind(1), 1 / devices]
        of_problem.append(operators[:, 0].log())
        columns.append(torch.stack(of_problem, 1)[:, None].expand(-1, shares.shape[1], -1))
    return torch.cat(columns, dim=2)[..., -len(names) :]
