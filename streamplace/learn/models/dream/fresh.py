"""Graphs made as tensors, new ones in every step; `fresh_families` has their distributions.

Shapes: P graphs of an epoch, G of a batch, N operators, D devices.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from streamplace.errors import SettingError
from streamplace.learn.models.dream.fresh_families import GENERATORS, Drawn
from streamplace.learn.models.dream.graphs import (
    LEAST,
    OPERATOR_FEATURES,
    FeatureScale,
    GraphBatch,
)
from streamplace.learn.tensors.memory import Outlines
from streamplace.learn.tensors.rewards import Costs
from streamplace.model.problem import Problem


class FreshGraphs:
    """Graphs on the cluster and at the rates of given problems."""

    def __init__(
        self,
        problems: Sequence[Problem],
        scale: FeatureScale,
        devices: int,
        count: int,
        device: torch.device,
        family: str = "branched",
    ) -> None:
        self._platform = Costs.of([problems[0].instance], device)
        classes = problems[0].interchangeable
        clusters = [problem.cluster for problem in problems]
        others = {
            (c.devices.speed.tobytes(), c.platform.seconds_per_byte.tobytes()) for c in clusters
        }
        if len(others) > 1 or classes.any() or not self._platform.plain or problems[0].rules:
            raise SettingError(
                "fresh graphs are made for one cluster of equal devices of a single core, without "
                "constraints; set fresh to 0"
            )
        rates = np.unique([problem.graph.source_rate for problem in problems])
        operators = len(OPERATOR_FEATURES)
        self._mean = torch.from_numpy(scale.mean[:operators]).to(device)
        self._std = torch.from_numpy(scale.std[:operators]).to(device)
        self._devices, self._real = devices, len(classes)
        speed = float(problems[0].cluster.devices.speed[0]) * 1e6
        turns = len(GENERATORS[family])
        self._generators = [
            make(-(-count // turns), torch.from_numpy(rates).to(device), speed)
            for make in GENERATORS[family]
        ]
        each = torch.stack([generator.sizes for generator in self._generators], dim=1)
        sizes = each.flatten()[:count]
        own = torch.arange(devices, device=device).clamp(min=self._real - 1) - self._real + 1
        self.outlines = Outlines(sizes, torch.full_like(sizes, self._real), own.expand(count, -1))

    def drawn(self, rows: Tensor, n: int, keys: Tensor) -> Drawn:
        """Draw graphs by keys [G], of at most n operators."""
        turns = len(self._generators)
        made = [each.drawn(rows // turns, n, keys) for each in self._generators]
        return made[0] if turns == 1 else made[0].where(rows % turns == 0, made[1])

    def batch(self, rows: Tensor, n: int, keys: Tensor) -> tuple[GraphBatch, Costs]:
        """Batch for a policy, and the costs of the problems."""
        graphs = self.drawn(rows, n, keys)
        platform, devices = self._platform, self._devices
        wire = platform.wire.sum() / max(self._real * (self._real - 1), 1)
        out = graphs.out * wire
        shares = torch.stack([graphs.load, out], dim=2)
        features = torch.cat([shares.clamp(min=LEAST).log(), shares], dim=2)
        features = (features - self._mean) / self._std * graphs.present[:, :, None]
        upstream = graphs.streams.float().tril(-1)
        exists = torch.arange(devices, device=rows.device) < self._real
        opened = torch.arange(devices, device=rows.device) == 0
        allowed = torch.where(graphs.present[:, :, None], exists, opened)
        load = graphs.load[:, :, None] * exists
        lower = (exists[:, None] & exists).float().triu(1)
        batch = GraphBatch(
            features=features.float(),
            present=graphs.present,
            streams=graphs.streams.float(),
            order=torch.arange(n, device=rows.device).expand(len(rows), -1),
            ends=rows.new_zeros(len(rows), 2, 0),
            stream_features=features.new_zeros(len(rows), 0, 1),
            upstream=upstream / upstream.sum(2, keepdim=True).clamp(min=1),
            inbound=(graphs.flows * wire).float().tril(-1),
            allowed=allowed,
            lower=lower.expand(len(rows), -1, -1),
            load=load.float(),
            mates=None,
            rivals=None,
        )
        costs = platform.of_rows(torch.zeros_like(rows), 0)
        return batch, replace(costs, load=load[:, :, : self._real], bytes=graphs.flows)
