"""Branched graphs made as tensors, new ones in every step, by draws that depend on a key alone.

Operators are numbered as they are decided about: breadth first, ties in random order.

Shapes: P graphs of an epoch, G of a batch, N operators, D devices.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from streamsim.steady import is_plain
from torch import Tensor

from streamplace.errors import SettingError
from streamplace.families.branched import STANDARD, Branched, is_small
from streamplace.learn.models.dream.graphs import LEAST, FeatureScale, GraphBatch
from streamplace.learn.tensors.draws import below, children, uniform
from streamplace.learn.tensors.memory import Outlines
from streamplace.learn.tensors.rewards import Costs
from streamplace.model.problem import Problem

FAMILY = Branched()
NUMBERS = [i for i, shape in enumerate(STANDARD) for _ in range(1 if is_small(shape) else 2)]
"""Numbers of topologies, as often as the standard benchmark has them."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Graphs at their rates."""

    load: Tensor  # [G, N] share of a device
    out: Tensor  # [G, N] bytes/s out of an operator
    flows: Tensor  # [G, N, N] bytes/s into the row's operator from the column's
    streams: Tensor  # [G, N, N] 1 where the column's operator sends to the row's
    present: Tensor  # [G, N]


class FreshGraphs:
    """Graphs of `streamplace.families.branched`, but for the rounding of instructions.

    They are for the cluster and at the rates of given problems. The source comes first, then stage
    by stage all branches, which differ by nothing but their draws.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        scale: FeatureScale,
        devices: int,
        count: int,
        device: torch.device,
    ) -> None:
        self._platform = Costs.of([problems[0].instance], device)
        classes = problems[0].interchangeable
        clusters = [problem.cluster for problem in problems]
        others = {
            (c.devices.speed.tobytes(), c.platform.seconds_per_byte.tobytes()) for c in clusters
        }
        are_plain = self._platform.plain and all(is_plain(problem.instance) for problem in problems)
        if len(others) > 1 or classes.any() or not are_plain or problems[0].rules:
            raise SettingError(
                "fresh graphs are made for one cluster of equal devices of a single core, without "
                "constraints; set fresh to 0"
            )
        rates = np.unique([problem.graph.source_rate for problem in problems])
        self._mean = torch.from_numpy(scale.mean).to(device)
        self._std = torch.from_numpy(scale.std).to(device)
        self._devices, self._real = devices, len(classes)
        self._rates = torch.from_numpy(rates).to(device)
        self._speed = float(problems[0].cluster.devices.speed[0]) * 1e6
        number = np.resize(NUMBERS, count)
        self._shape = torch.tensor(STANDARD, device=device)[number]  # [P, 3]
        sizes = self._shape[:, 0] * self._shape[:, 1] + 2
        own = torch.arange(devices, device=device).clamp(min=self._real - 1) - self._real + 1
        self.outlines = Outlines(sizes, torch.full_like(sizes, self._real), own.expand(count, -1))

    def drawn(self, rows: Tensor, n: int, keys: Tensor) -> Drawn:
        """Draw graphs by keys [G], of at most n operators."""
        k, d, used = self._shape[rows].unbind(1)
        of_graph, of_stages, of_payloads = children(keys, 3)
        which, even, most = uniform(of_graph, 3).unbind(1)
        rate = self._rates[below(which, torch.full_like(k, len(self._rates)))]
        small = (used <= 2)[:, None]
        spread = torch.where(small, 1 - even[:, None], 1.0)
        ceiling = 1 + below(most, torch.full_like(k, FAMILY.payload))[:, None]
        ceiling = torch.where(small, ceiling, FAMILY.payload)
        position = torch.arange(n, device=rows.device).expand(len(rows), -1)
        sink = (k * d + 1)[:, None]
        stage = (position - 1).div(k[:, None], rounding_mode="floor")  # -1 for the source
        present, inner = position <= sink, (position > 0) & (position < sink)
        # the stages share the instructions of their graph, none more than its branches can do
        there = torch.arange(n, device=rows.device) < d[:, None]
        parts = uniform(of_stages, n).double() * there
        excess = (parts / parts.sum(1, keepdim=True) - 1 / d[:, None]) * there
        total = (used * FAMILY.device_ipt - 2 * FAMILY.endpoint_ipt)[:, None]
        headroom = k[:, None] * FAMILY.device_ipt / total - 1 / d[:, None]
        factor = spread * (headroom.clamp(min=0) / excess.amax(1, keepdim=True)).clamp(max=1)
        shared = (1 / d[:, None] + factor * excess) * total  # [G, stages]
        instructions = torch.where(
            inner, shared.gather(1, stage.clamp(0, n - 1)), FAMILY.endpoint_ipt
        )
        flow = torch.where(inner, rate[:, None] / k[:, None], rate[:, None])
        load = torch.where(present, flow * instructions / self._speed, 0.0)
        payload = 1 + below(uniform(of_payloads, n), ceiling.expand(-1, n))
        sent = torch.where(position < sink, (rate / k)[:, None] * payload, 0.0)
        sender, receiver = position[:, None], position[:, :, None]
        wide, last = k[:, None, None], sink[:, :, None]
        streams = (
            ((sender == 0) & (receiver > 0) & (receiver <= wide))
            | ((sender > 0) & (receiver == sender + wide) & (receiver < last))
            | ((sender > last - 1 - wide) & (sender < last) & (receiver == last))
        )
        streams = streams.double()
        return Drawn(load, streams.sum(1) * sent, streams * sent[:, None], streams, present)

    def batch(self, rows: Tensor, n: int, keys: Tensor) -> tuple[GraphBatch, Costs]:
        """Batch for a policy, and the costs of the problems."""
        graphs = self.drawn(rows, n, keys)
        platform, devices = self._platform, self._devices
        wire = platform.wire.sum() / max(self._real * (self._real - 1), 1)
        out = graphs.out * wire
        shares = torch.stack([graphs.load, out], dim=2)
        features = torch.cat([shares.clamp(min=LEAST).log(), shares], dim=2)
        features = features[:, :, -len(self._mean) :]
        features = (features - self._mean) / self._std * graphs.present[:, :, None]
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
            inbound=(graphs.flows * wire).float().tril(-1),
            allowed=allowed,
            lower=lower.expand(len(rows), -1, -1),
            load=load.float(),
            mates=None,
            rivals=None,
        )
        costs = platform.of_rows(torch.zeros_like(rows), 0)
        return batch, replace(costs, load=load[:, :, : self._real], bytes=graphs.flows)
