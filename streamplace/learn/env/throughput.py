"""Throughput of placements of many problems in tensors, as `streamsim.throughput` defines it.

Loads are dense products: with A the one-hot placement, the bytes from device a to b are
Σ over streams u→v of A(u, a) · bytes(u→v) · A(v, b). All sources reach the same share of their
rates, and the fullest resource limits it. In double precision, results differ from the simulator's
in the last bits only, because sums are in another order.

Shapes: G problems, S placements of each, N operators, D devices, R resources.
"""

import torch
from streamsim.equation import NO_ROOM, OVERFULL
from torch import Tensor

from streamplace.learn.env.batch import Batch


def throughput(batch: Batch, placements: Tensor) -> Tensor:
    """Relative throughput [G, S] of placements [G, S, N]."""
    devices = torch.arange(batch.exists.shape[1], device=placements.device)
    on = (placements.transpose(1, 2)[..., None] == devices).to(batch.load.dtype)  # [G, N, S, D]
    loads = _loads(batch, placements, on)
    if batch.constant is not None:
        loads = _pressures(loads, _constants(batch, placements, on, loads))
    return 1 / loads.amax(-1).clamp(min=1)


def _loads(batch: Batch, placements: Tensor, on: Tensor) -> Tensor:
    """Loads [G, S, R] of devices, links, network cards and cores at full rate."""
    devices = (on * batch.load[:, :, None]).sum(1)
    sent = _between(batch.bytes, on)
    links, parts = sent * batch.wire[:, None], []
    if batch.tuples is not None and batch.per_tuple is not None and batch.free_cores is not None:
        overhead, per_byte, gap = batch.per_tuple[:, :, None, None].unbind(1)
        tuples = _between(batch.tuples, on)
        links = links + tuples * gap[..., None]
        handled = (tuples.sum(3) + tuples.sum(2)) * overhead
        handled = handled + (sent.sum(3) + sent.sum(2)) * per_byte
        devices = devices + handled / batch.free_cores[:, None]
    if batch.nics is not None:
        out, into = batch.nics[:, None].unbind(2)
        parts += [sent.sum(3) * out, sent.sum(2) * into]
    if batch.core is not None:
        parts.append(_at(batch.core, placements))
    return torch.cat([devices, links.flatten(2), *parts], dim=-1)


def _between(flow: Tensor, on: Tensor) -> Tensor:
    """Flow [G, S, D, D] from device to device, 0 on the diagonal, by operators' flow [G, N, N]."""
    into = (flow @ on.flatten(2)).view_as(on)  # [G, N, S, D] into an operator from a device
    moved = into.permute(0, 2, 3, 1) @ on.permute(0, 2, 1, 3)
    same = torch.eye(on.shape[3], dtype=torch.bool, device=on.device)
    return moved.masked_fill(same, 0.0)


def _at(column: Tensor, placements: Tensor) -> Tensor:
    """Values [G, S, N] of operators on their devices, from values [G, N, D] on every device."""
    every = column[:, None].expand(-1, placements.shape[1], -1, -1)
    return every.gather(3, placements[..., None])[..., 0]


def _constants(batch: Batch, placements: Tensor, on: Tensor, loads: Tensor) -> Tensor:
    """Constant loads [G, S, R], in the order of `_loads`."""
    held = torch.zeros_like(loads)
    if batch.constant is not None:
        held[:, :, : on.shape[3]] = (on * batch.constant[:, :, None]).sum(1)
    if batch.core_constant is not None:
        held[:, :, -placements.shape[2] :] = _at(batch.core_constant, placements)
    return held


def _pressures(loads: Tensor, constants: Tensor) -> Tensor:
    """Loads as fractions of the capacity that constant ones leave; see `equation.pressures`."""
    room = 1 - constants
    none = room < NO_ROOM
    stuck = none & ((loads > NO_ROOM) | (room < -OVERFULL))
    shares = torch.where(none, 0.0, loads / torch.where(none, 1.0, room))
    return torch.where(stuck, torch.inf, shares)
