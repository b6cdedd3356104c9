"""Throughput of placements in tensors: what `streamsim.throughput` computes, of many problems.

Loads are dense products: with A the one-hot placement, the bytes from device a to b are
Σ over streams u→v of A(u, a) · bytes(u→v) · A(v, b). In double precision, the results differ from
the simulator's in the last bits only, because sums are in another order.

Shapes: P problems, G of them in a batch, S placements of each, N operators, D devices, K groups of
sources, R resources.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from streamsim.filling import TIE, flow_shares
from streamsim.instance import Instance
from streamsim.loads import limits_subtasks
from torch import Tensor

from streamplace.learn.reward import Reward, steady
from streamplace.model.arrays import Floats
from streamplace.model.problem import Problem

MOST_GROUPS = 16
"""Problems with more groups of sources are left to the simulator, as are constant loads."""


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """Loads of P problems at full rate. None where no problem has any of the kind."""

    load: Tensor  # [P, N, D] share of a device
    bytes: Tensor  # [P, N, N] bytes/s into the row's operator from the column's
    wire: Tensor  # [P, D, D] seconds per byte of a link
    tuples: Tensor | None  # [P, N, N] tuples/s
    per_tuple: Tensor | None  # [P, 3] overhead, overhead per byte, gap
    free_cores: Tensor | None  # [P, D]
    nics: Tensor | None  # [P, 2, D] seconds per byte sent and received
    core: Tensor | None  # [P, N, D] share of a core
    share: Tensor | None  # [P, K, N] part of an operator's flow that is due to a group of sources
    weight: Tensor | None  # [P, K] part of the nominal rate that is due to a group

    @classmethod
    def of(cls, instances: Sequence[Instance], device: str | torch.device = "cpu") -> "Costs":
        """Costs of compiled problems."""
        n = max(each.n_operators for each in instances)
        d = max(each.n_devices for each in instances)
        columns: dict[str, Any] = {f.name: [] for f in fields(cls)}
        groups = max(each.n_groups for each in instances)
        for instance in instances:
            for name, array in _costs(instance, groups, n, d).items():
                columns[name].append(array)
        parts = {name: torch.from_numpy(np.stack(arrays)) for name, arrays in columns.items()}
        remote = bool(parts["per_tuple"].any())
        there = {
            "tuples": remote,
            "per_tuple": remote,
            "free_cores": remote,
            "nics": bool(parts["nics"].any()),
            "core": any(map(limits_subtasks, instances)),
            "share": groups > 1,
            "weight": groups > 1,
        }
        made: dict[str, Any] = {
            name: part.to(device) if there.get(name, True) else None for name, part in parts.items()
        }
        return cls(**made)

    @property
    def plain(self) -> bool:
        """Whether only devices and links can limit, one group of sources at once."""
        further = self.tuples, self.nics, self.core, self.share
        return all(column is None for column in further)

    def of_rows(self, rows: Tensor, n: int) -> "Costs":
        """Costs of some problems, of their first n operators."""

        def part(name: str) -> Tensor | None:
            column: Tensor | None = getattr(self, name)
            if column is None or name in ("wire", "per_tuple", "free_cores", "nics", "weight"):
                return column if column is None else column[rows]
            if name in ("bytes", "tuples"):
                return column[rows, :n, :n]
            return column[rows, :, :n] if name == "share" else column[rows, :n]

        return Costs(**{f.name: part(f.name) for f in fields(Costs)})  # type: ignore[arg-type]


BatchJudge = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Placements [G, S, N] of training problems [G] after repair, and their rewards [G, S]."""


def batch_judge(reward: Reward, problems: Sequence[Problem], device: str) -> BatchJudge:
    """Judge placements by tensors on a GPU, if that is possible, and else by the simulator."""
    if device != "cpu" and can_compute(reward, problems):
        return computed(problems, device)
    return partial(simulated, reward, problems)


def computed(problems: Sequence[Problem], device: str) -> BatchJudge:
    """Judge placements by their throughput in tensors."""
    costs = Costs.of([problem.instance for problem in problems], device)
    return lambda rows, placements: (
        placements,
        throughput(costs.of_rows(rows, placements.shape[2]), placements),
    )


def simulated(
    reward: Reward, problems: Sequence[Problem], rows: Tensor, placements: Tensor
) -> tuple[Tensor, Tensor]:
    """Judge placements by any reward, problem by problem, on the CPU."""
    legal = placements.to("cpu", torch.int32).numpy()
    rewards = np.zeros(legal.shape[:2])
    for i, row in enumerate(rows.tolist()):
        problem, own = problems[row], legal[i, :, : problems[row].n_operators]
        own[:] = problem.repaired(np.ascontiguousarray(own))
        rewards[i] = reward(problem, np.ascontiguousarray(own))
    device = placements.device
    return torch.from_numpy(legal).to(device).long(), torch.from_numpy(rewards).to(device)


def can_compute(reward: Reward, problems: Sequence[Problem]) -> bool:
    """Whether `throughput` is the reward of all these problems, and no placement needs repair."""
    return reward is steady and all(
        problem.rules is None
        and problem.instance.n_groups <= MOST_GROUPS
        and not len(problem.instance.constant)
        for problem in problems
    )


def throughput(costs: Costs, placements: Tensor) -> Tensor:
    """Relative throughput [G, S] of placements [G, S, N]."""
    devices = torch.arange(costs.load.shape[2], device=placements.device)
    on = (placements.transpose(1, 2)[..., None] == devices).double()  # [G, N, S, D]
    worst = _loads(costs, placements, on, None).amax(-1)
    if costs.share is None:
        return 1 / worst.clamp(min=1)
    by_group = [_loads(costs, placements, on, share) for share in costs.share.unbind(1)]
    reached = _reached(torch.stack(by_group, dim=2))
    assert costs.weight is not None
    return torch.where(worst <= 1, 1.0, (reached * costs.weight[:, None]).sum(2))


def _loads(costs: Costs, placements: Tensor, on: Tensor, share: Tensor | None) -> Tensor:
    """Loads [G, S, R] of devices, links, NICs and cores, due to a share [G, N] of the flow."""
    d = on.shape[3]
    load = costs.load if share is None else costs.load * share[..., None]
    devices = (on * load[:, :, None]).sum(1)
    sent = _between(costs.bytes, on, share)
    links = sent * costs.wire[:, None]
    parts = []
    if costs.tuples is not None and costs.per_tuple is not None and costs.free_cores is not None:
        overhead, per_byte, gap = costs.per_tuple[:, :, None, None].unbind(1)
        tuples = _between(costs.tuples, on, share)
        links = links + tuples * gap[..., None]
        handled = (tuples.sum(3) + tuples.sum(2)) * overhead
        handled = handled + (sent.sum(3) + sent.sum(2)) * per_byte
        devices = devices + handled / costs.free_cores[:, None]
    if costs.nics is not None:
        nics = costs.nics[:, None]
        parts = [sent.sum(3) * nics[:, :, 0], sent.sum(2) * nics[:, :, 1]]
    if costs.core is not None:
        every = costs.core[:, None].expand(-1, placements.shape[1], -1, -1)
        core = every.gather(3, placements[..., None])[..., 0]  # [G, S, N] where each operator is
        parts.append(core if share is None else core * share[:, None])
    return torch.cat([devices, links.reshape(*devices.shape[:2], d * d), *parts], dim=-1)


def _between(flow: Tensor, on: Tensor, share: Tensor | None) -> Tensor:
    """What flows [G, N, N] from device to device, [G, S, D, D], with nothing on the diagonal."""
    of_share = flow if share is None else flow * share[:, None]
    into = (of_share @ on.flatten(2)).view_as(on)  # [G, N, S, D] into an operator from a device
    moved = into.permute(0, 2, 3, 1) @ on.permute(0, 2, 1, 3)
    same = torch.eye(on.shape[3], dtype=torch.bool, device=on.device)
    return moved.masked_fill(same, 0.0)


def _reached(loads: Tensor) -> Tensor:
    """Max–min fair shares [G, S, K] of groups whose loads are [G, S, K, R]; see `filling`.

    In every round the active groups rise together until some of them stop.
    """
    active = torch.ones(loads.shape[:3], dtype=torch.bool, device=loads.device)
    reached = torch.zeros_like(active, dtype=loads.dtype)
    used = torch.zeros_like(loads[:, :, 0])
    for _ in range(loads.shape[2]):
        rising = (loads * active[..., None]).sum(2)
        headroom = (1 - used).clamp(min=0)
        level = (
            torch.where(rising > 0, headroom / rising, torch.inf).amin(2).clamp(max=1)[..., None]
        )
        full = (rising > 0) & (headroom <= level * (1 + TIE) * rising)
        touched = ((loads > 0) & full[:, :, None]).any(3)
        stop = active & (touched | (level >= 1))
        reached = torch.where(stop, level, reached)
        active = active & ~stop
        used = used + (loads * (stop * level)[..., None]).sum(2)
    return reached


def _costs(instance: Instance, groups: int, n: int, d: int) -> dict[str, NDArray[Any]]:
    """Columns of one problem, padded."""
    pairs = instance.target, instance.source
    flows = np.zeros((2, n, n))
    np.add.at(flows[0], pairs, instance.traffic)
    np.add.at(flows[1], pairs, instance.tuples)
    share, weight = np.zeros((groups, n)), np.zeros(groups)
    if groups > 1:
        np.add.at(share[:, : instance.n_operators], instance.group, flow_shares(instance))
        np.add.at(weight, instance.group, instance.rate[instance.sources])
        weight /= weight.sum() or 1.0
    core = np.zeros((n, d))
    if limits_subtasks(instance):
        core = _padded(instance.core_load[:, instance.device_type], n, d)
    return {
        "load": _padded(instance.load[:, instance.device_type], n, d),
        "bytes": flows[0],
        "wire": _padded(instance.seconds_per_byte, d, d),
        "tuples": flows[1],
        "per_tuple": np.array([instance.overhead, instance.overhead_per_byte, instance.gap]),
        "free_cores": np.pad(instance.free_cores, (0, d - instance.n_devices), constant_values=1),
        "nics": _padded(np.stack([instance.egress, instance.ingress]), 2, d),
        "core": core,
        "share": share,
        "weight": weight,
    }


def _padded(array: Floats, rows: int, columns: int) -> Floats:
    return np.pad(array, ((0, rows - array.shape[0]), (0, columns - array.shape[1])))
