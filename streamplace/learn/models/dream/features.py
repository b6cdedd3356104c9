"""Features of operators, and their scale over a training set."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from streamplace.learn.constructive.policy import FeatureScale
from streamplace.learn.env import Batch
from streamplace.learn.models.dream.model import COMMON, FEATURES

MIN_SHARE = 1e-4
"""Smaller shares of a device or link are raised to this before the logarithm."""


def operator_scale(batch: Batch, names: Sequence[str] = FEATURES) -> FeatureScale:
    """Measure the scale on the operators of these problems; the paper's features have none."""
    if FEATURES[0] not in names:
        return FeatureScale(names, np.zeros(len(names)), np.ones(len(names)))
    rows = operator_features(batch, names)[batch.present].cpu().numpy()
    mean, std = rows.mean(axis=0), rows.std(axis=0)
    return FeatureScale(names, mean, np.where(std > 0, std, 1.0))


def operator_features(batch: Batch, names: Sequence[str] = FEATURES) -> Tensor:
    """Features [G, N, F] of operators by name: loads, transfers, and features of the problem.

    The load is the share of a device, λ · seconds, as the mean over the devices. The transfer is
    the share of a link, λ · Σ selectivity · payload · seconds per byte, as the mean over the links.
    Both are in yardsticks if devices are described by features.
    """
    common = COMMON[0] in names
    devices = batch.exists.sum(1)
    load = batch.full_load.sum(2) / devices[:, None]
    shares = torch.stack([load, batch.bytes.sum(1) * batch.usual_wire[:, None]], dim=2)
    if common:
        shares = shares / batch.yardstick[:, None, None]
    columns = [shares.clamp(min=MIN_SHARE).log(), shares]
    if common:
        operators = batch.present.sum(1, keepdim=True)
        of_problem = [*(shares.sum(1) / devices[:, None]).unbind(1), 1 / devices]
        of_problem.append(operators[:, 0].log())
        columns.append(torch.stack(of_problem, 1)[:, None].expand(-1, shares.shape[1], -1))
    return torch.cat(columns, dim=2)[..., -len(names) :]
