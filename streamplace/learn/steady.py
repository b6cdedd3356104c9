"""Steady state of many graphs × many placements at once, as torch tensors.

The same model as `streamsim.steady`. Graphs of different sizes are padded to one shape; what is
padding carries no load. Shapes: G graphs, S samples, K sources, N operators, M streams, D devices
(each the largest in the batch), R resources.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from streamsim import Instance
from streamsim.filling import TIE, flow_shares
from torch import Tensor

Floats = NDArray[np.float64]
T = TypeVar("T", "SteadyBatch", "RemoteCosts")


@dataclass(frozen=True, slots=True, eq=False)
class RemoteCosts:
    """What a remote tuple costs besides its bytes on a link."""

    tuples: Tensor  # [G, K, M] tuples/s
    overhead: Tensor  # [G, D] seconds of the whole device per remote tuple, at each end
    gap: Tensor  # [G] link seconds per remote tuple
    egress: Tensor  # [G, D] seconds per byte sent
    ingress: Tensor  # [G, D] seconds per byte received

    @classmethod
    def of(cls, instances: Sequence[Instance], tuples: list[Floats]) -> "RemoteCosts | None":
        """Costs of a batch, None where only devices and links limit."""
        if not any(i.overhead or i.gap or i.egress.any() or i.ingress.any() for i in instances):
            return None
        return cls(
            _stacked(tuples),
            _stacked([i.overhead / i.cores for i in instances]),
            _stacked([np.array(i.gap) for i in instances]),
            _stacked([i.egress for i in instances]),
            _stacked([i.ingress for i in instances]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class SteadyBatch:
    """Many instances as padded tensors; what flows is split by source.

    With more than one source in any graph everything is held in float64 whatever ``dtype`` the
    results have, because progressive filling takes differences of nearly equal loads.

    Examples
    --------
    >>> from streamsim import build_instance
    >>> instance = build_instance(rate=[100, 0], seconds=[[1e-3], [5e-3]], source=[0], target=[1],
    ...                           payload=[20_000], device_type=[0, 0],
    ...                           seconds_per_byte=[[0, 1e-6], [1e-6, 0]])
    >>> batch = SteadyBatch.of([instance])
    >>> batch.throughput(torch.tensor([[[0, 0], [0, 1]]]))
    tensor([[1.0000, 0.5000]])
    """

    load: Tensor  # [G, K, N, D] fraction of a device; [G, K, N, 1] where devices are alike
    source: Tensor  # [G, M] operator that emits
    target: Tensor  # [G, M] operator that receives
    traffic: Tensor  # [G, K, M] bytes/s
    wire: Tensor  # [G, D · D] seconds per byte from row to column, 0 on the diagonal
    weight: Tensor  # [G, K] share of each source in the nominal rate, 0 for padding
    core_load: Tensor | None  # [G, K, N, D or 1], None where every device has one core
    costs: RemoteCosts | None  # None where only devices and links limit
    dtype: torch.dtype  # of the results

    @classmethod
    def of(
        cls,
        instances: Sequence[Instance],
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> "SteadyBatch":
        """Stack instances, padding each to the largest."""
        shares = [_shares(i) for i in instances]
        flows = [share[:, i.source] for share, i in zip(shares, instances, strict=True)]
        both = list(zip(flows, instances, strict=True))
        d = max(i.n_devices for i in instances)
        wire = _stacked([_padded(i.seconds_per_byte, (d, d)) for i in instances])
        several_cores = any((i.cores > 1).any() for i in instances)
        batch = cls(
            load=_by_device(instances, shares, [i.load for i in instances]),
            source=_stacked([i.source.astype(np.int64) for i in instances]),
            target=_stacked([i.target.astype(np.int64) for i in instances]),
            traffic=_stacked([flow * i.traffic for flow, i in both]),
            wire=wire.flatten(1),
            weight=_stacked([_weights(i) for i in instances]),
            core_load=_by_device(instances, shares, [i.core_load for i in instances])
            if several_cores
            else None,
            costs=RemoteCosts.of(instances, [flow * i.tuples for flow, i in both]),
            dtype=dtype,
        )
        several_sources = batch.weight.shape[1] > 1
        held = torch.float64 if several_sources else dtype
        return _each(batch, lambda t: t.to(device, held if t.is_floating_point() else t.dtype))

    @property
    def n_operators(self) -> int:
        """Number of operators that placements must give a device, padding included."""
        return self.load.shape[2]

    @property
    def n_devices(self) -> int:
        """Number of devices of the largest cluster."""
        return math.isqrt(self.wire.shape[1])

    def to(self, device: torch.device | str) -> "SteadyBatch":
        """Return this batch on another device."""
        return _each(self, lambda t: t.to(device))

    def take(self, graphs: Tensor) -> "SteadyBatch":
        """Batch of the graphs with these indices (a mini-batch)."""
        return _each(self, lambda t: t[graphs])

    def throughput(self, placements: Tensor) -> Tensor:
        """Relative throughput [G, S] of placements [G, S, N] (int64).

        Padding operators may be on any device of the batch.
        """
        parts = self.loads(placements)
        if self.weight.shape[1] > 1:
            return fill(torch.cat(parts, -1), self.weight[:, None]).to(self.dtype)
        worst = parts[0].amax((2, 3))
        for part in parts[1:]:
            worst = torch.maximum(worst, part.amax((2, 3)))
        return worst.clamp(min=1).reciprocal()

    def loads(self, placements: Tensor) -> list[Tensor]:
        """Load at full rate by source: tensors [G, S, K, ·] of devices, links, NICs and cores."""
        (g, s, _), d = placements.shape, self.n_devices
        sender = placements.gather(2, self.source[:, None].expand(g, s, -1))
        receiver = placements.gather(2, self.target[:, None].expand(g, s, -1))
        pair = sender.mul_(d).add_(receiver)
        devices = _summed(placements, _on_device(self.load, placements), d)
        bytes_between = _summed(pair, self.traffic[:, None], d * d)
        links = bytes_between * self.wire[:, None, None]
        parts = [devices, links]
        if self.costs is not None:
            parts = self._with_costs(self.costs, pair, devices, links, bytes_between)
        if self.core_load is not None:
            parts.append(_on_device(self.core_load, placements))
        return parts

    def _with_costs(
        self, costs: RemoteCosts, pair: Tensor, devices: Tensor, links: Tensor, between: Tensor
    ) -> list[Tensor]:
        """Add overhead and gap to devices and links, and the NICs to the parts."""
        d = self.n_devices
        apart = 1 - torch.eye(d, dtype=between.dtype, device=between.device)
        square = (*between.shape[:3], d, d)
        sent = between.view(square) * apart
        tuples = _summed(pair, costs.tuples[:, None], d * d).view(square) * apart
        handled = tuples.sum(-1) + tuples.sum(-2)
        return [
            devices + handled * costs.overhead[:, None, None],
            links + tuples.flatten(-2) * costs.gap[:, None, None, None],
            sent.sum(-1) * costs.egress[:, None, None],
            sent.sum(-2) * costs.ingress[:, None, None],
        ]


def fill(loads: Tensor, weight: Tensor) -> Tensor:
    """Relative throughput under max–min fairness by progressive filling.

    ``loads`` [..., K, R] is what each source puts on each resource at full rate, ``weight``
    [..., K] its share of the nominal rate. Each round stops at least one source.
    """
    rates = loads.new_zeros(loads.shape[:-1])
    rising = (weight > 0).expand(rates.shape)
    uses = loads > 0
    while bool(rising.any()):
        moving = (loads * rising[..., None]).sum(-2)
        used = (loads * rates[..., None]).sum(-2)
        stop = torch.where(moving > 0, (1 - used).clamp(min=0) / moving, torch.inf)
        level = stop.amin(-1, keepdim=True).clamp(max=1)
        full = stop <= level * (1 + TIE)
        stops = rising & ((uses & full[..., None, :]).any(-1) | (level >= 1))
        rates = torch.where(stops, level, rates)
        rising = rising & ~stops
    return (rates * weight).sum(-1)


def _summed(index: Tensor, values: Tensor, size: int) -> Tensor:
    """Sum values [G, S or 1, K, ·] by an index [G, S, ·] below ``size``: [G, S, K, size]."""
    shape = (*index.shape[:2], values.shape[2], index.shape[2])
    sums = values.new_zeros(*shape[:3], size)
    return sums.scatter_add_(3, index[:, :, None].expand(shape), values.expand(shape))


def _on_device(by_device: Tensor, placements: Tensor) -> Tensor:
    """Entries of [G, K, N, D or 1] for the device of each operator; shape [G, S, K, N]."""
    (g, s, n), k = placements.shape, by_device.shape[1]
    if by_device.shape[3] == 1:
        return by_device[:, None, :, :, 0].expand(g, s, -1, -1)
    index = placements[:, :, None, :, None].expand(g, s, k, n, 1)
    return by_device[:, None].expand(g, s, -1, -1, -1).gather(4, index).squeeze(4)


def _shares(instance: Instance) -> Floats:
    """Share of each source in each operator's flow; with one source 1, without any 0."""
    return flow_shares(instance) if len(instance.sources) else np.zeros((1, instance.n_operators))


def _weights(instance: Instance) -> Floats:
    rates = instance.rate[instance.sources]
    return rates / rates.sum() if len(rates) else np.ones(1)


def _by_device(
    instances: Sequence[Instance], shares: list[Floats], by_type: list[Floats]
) -> Tensor:
    """Tensor [G, K, N, D] of shares · the column of each device; D = 1 where devices are alike."""
    alike = all(len(np.unique(i.device_type)) == 1 for i in instances)
    rows = []
    for instance, share, columns in zip(instances, shares, by_type, strict=True):
        types = instance.device_type[:1] if alike else instance.device_type
        rows.append(share[:, :, None] * columns[:, types])
    return _stacked(rows)


def _padded(values: NDArray[Any], shape: Sequence[int]) -> NDArray[Any]:
    padded = np.zeros(shape, values.dtype)
    padded[tuple(slice(size) for size in values.shape)] = values
    return padded


def _stacked(arrays: Sequence[NDArray[Any]]) -> Tensor:
    """Arrays of different sizes in one tensor, padded with zeros."""
    shape = np.max([array.shape for array in arrays], axis=0)
    return torch.from_numpy(np.stack([_padded(array, shape.astype(int)) for array in arrays]))


def _each(batch: T, change: Callable[[Tensor], Tensor]) -> T:
    """Batch with every tensor changed."""
    changes: dict[str, Any] = {}
    for field in fields(batch):
        part = getattr(batch, field.name)
        if isinstance(part, Tensor):
            changes[field.name] = change(part)
        elif isinstance(part, RemoteCosts):
            changes[field.name] = _each(part, change)
    return replace(batch, **changes)
