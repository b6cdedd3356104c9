"""Features of devices under the decisions so far, for decoders that know devices by them.

Loads are in yardsticks, see `peak_yardstick`. Nothing depends on the number of a device, nor on
how many there are.

Shapes: G graphs, S samples of each, N operators, D devices, F features of a device.
"""

import torch
from torch import Tensor

from streamplace.learn.env import Environment, Observation

FEATURES = (
    "load",
    "load after",
    "too much after",
    "link after",
    "link too much after",
    "flow from",
    "share of flow",
    "share of upstream",
    "flow cut",
    "flow loose",
    "flow out",
    "empty",
    "previous",
    "speed",
    "peak growth",
    "room over coming",
    "peak",
    "coming",
    "coming over room",
    "used",
)
"""Features of a device for the next operator; the last four and the peak are of the decision."""
N_FEATURES = len(FEATURES)
N_READ = 4 * N_FEATURES
"""Inputs of a decision: features in the mean, at least and at most, and those upstream."""
MAX_FEATURE = 4.0
"""Largest value of a feature."""
LOAD_OFFSET = 1e-3
"""Added to a load that others are divided by."""


class DeviceFeatures:
    """Features of the devices at every step of an environment, whose loads are in yardsticks."""

    def __init__(self, env: Environment) -> None:
        self._env, exists = env, env.batch.exists
        self._exists = exists[:, None]  # [G, 1, D]
        least = env.loads.masked_fill(~exists[:, None], torch.inf).amin(2)
        self._least = least  # [G, N] load on the device where it is lowest
        self._coming = least.flip(1).cumsum(1).flip(1)  # [G, N] of this operator and all later ones
        others = (exists.sum(1, keepdim=True) - 1).clamp(min=1)
        self._away = env.wire.sum(2) / others  # [G, D] mean of the links out of a device

    def of(self, seen: Observation) -> Tensor:
        """Features [G, S, D, F] of the devices for the operator that is placed now."""
        env, t = self._env, self._env.step_number
        own, coming = env.loads[:, t, None], self._coming[:, t, None, None]
        load, flow, away = seen["load"], seen["flow"], self._away[:, None]
        after = load + own
        links = torch.where(flow[..., None] > 0, seen["link"] + seen["added"], 0)
        links.diagonal(dim1=2, dim2=3).zero_()
        worst, cut = links.amax(2), seen["added"].sum(2)
        peak = torch.maximum(load.amax(2), seen["link"].amax((2, 3)))[..., None]
        free = ((1 - load).clamp(min=0) * self._exists).sum(2, keepdim=True)
        whole, used = flow.sum(2, keepdim=True), (seen["used"] > 0).to(load.dtype)
        share_used = used.sum(2, keepdim=True) / self._exists.sum(2, keepdim=True)
        columns = [
            load,
            after,
            (after - 1).clamp(min=0),
            worst,
            (worst - 1).clamp(min=0),
            flow,
            torch.where(whole > 0, flow / whole, 0),
            seen["upstream"],
            cut,
            seen["loose"] * away,
            env.sent[:, t, None, None] * away,
            1 - used,
            seen["previous"],
            torch.where(own > 0, self._least[:, t, None, None] / own, 1),
            (torch.maximum(after, worst) - peak).clamp(min=0),
            (1 - after).clamp(min=0) / (coming + LOAD_OFFSET),
            peak,
            coming / (self._coming[:, :1, None] + 1e-9),
            coming / (free + LOAD_OFFSET),
            share_used,
        ]
        return torch.stack([column.expand_as(load) for column in columns], dim=3).clamp(
            max=MAX_FEATURE
        )


def summary(features: Tensor, seen: Observation) -> Tensor:
    """Inputs [G, S, 4 F] of a decision: mean, least and most of the open devices, and upstream."""
    opened = seen["open"][..., None]
    mean = (features * opened).sum(2) / opened.sum(2)
    least = features.masked_fill(~opened, torch.inf).amin(2)
    most = features.masked_fill(~opened, -torch.inf).amax(2)
    upstream = (seen["upstream"] * seen["open"])[:, :, None] @ features
    return torch.cat([mean, least, most, upstream[:, :, 0]], dim=2)
