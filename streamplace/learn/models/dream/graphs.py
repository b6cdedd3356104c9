"""Problems as tensors: standardised features, padded, and batches in the order of decision.

Shapes: P problems, G graphs of a batch, N operators (of the largest), D devices that the model
supports. Position t of a graph is its t-th decision. Padding may only be put on the first device,
so its probability is 1 and its log-probability adds nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from streamplace.errors import SettingError
from streamplace.learn.config import check_devices
from streamplace.learn.constructive.policy import FeatureScale
from streamplace.learn.models.dream import COMMON, FEATURES, AllocatorConfig
from streamplace.model.arrays import Array, Arrays, Floats, Longs
from streamplace.model.coarsening import finest_level
from streamplace.model.least_peak import peak_yardstick
from streamplace.model.problem import Problem
from streamplace.model.units import format_bytes

LEAST = 1e-4
"""Smaller shares of a device or link are raised to this before the logarithm."""

MOST_OPERATORS = 4096
"""Largest graph: it is a few tensors of operators by operators, of 64 MB each."""
MOST_BYTES = 16e9
"""Most memory for tensors of operators by operators, of all graphs together."""


class OperatorScale(FeatureScale):
    """Scale of features of operators."""

    __slots__ = ()

    @classmethod
    def of(cls, problems: Sequence[Problem], names: Sequence[str] = FEATURES) -> "OperatorScale":
        """Measure the scale on the operators of these problems; the paper's features have none."""
        if FEATURES[0] not in names:
            return cls(names, np.zeros(len(names)), np.ones(len(names)))
        rows = np.concatenate([operator_features(problem, names) for problem in problems])
        mean, std = rows.mean(axis=0), rows.std(axis=0)
        return cls(names, mean, np.where(std > 0, std, 1.0))

    def operators(self, problem: Problem) -> Floats:
        """Features [N, F] of operators, to this scale."""
        return np.asarray((operator_features(problem, self.names) - self.mean) / self.std)


def operator_features(problem: Problem, names: Sequence[str] = FEATURES) -> Floats:
    """Features [N, F] of operators by name: loads and transfers, and what all have in common.

    The load is the share of a device, λ · seconds, as the mean over the devices. The transfer is
    the share of a link, λ · Σ selectivity · payload · seconds per byte, as the mean over the links.
    Both are in yardsticks where devices are told by what they are and hold.
    """
    instance, common = problem.instance, COMMON[0] in names
    unit = peak_yardstick(problem, finest_level(problem)) if common else 1.0
    load = instance.full_load[:, instance.device_type].mean(axis=1)
    sent = np.bincount(instance.source, stream_transfers(problem), problem.n_operators)
    shares = np.stack([load, sent], axis=1) / unit
    columns = np.concatenate([np.log(np.maximum(shares, LEAST)), shares], axis=1)
    if common:
        n, d = columns.shape[0], problem.n_devices
        of_problem = [shares[:, 0].sum() / d, shares[:, 1].sum() / d, 1 / d, np.log(n)]
        columns = np.concatenate([columns, np.tile(of_problem, (n, 1))], axis=1)
    return columns[:, -len(names) :]


def stream_transfers(problem: Problem) -> Floats:
    """Share [M] of a link that each stream would need, as the mean over the links."""
    return problem.instance.traffic * usual_wire(problem)


def usual_wire(problem: Problem) -> float:
    """Seconds per byte, as the mean over the links."""
    d = problem.n_devices
    wire: float = problem.instance.seconds_per_byte.sum() / max(d * (d - 1), 1)
    return wire


@dataclass(frozen=True, slots=True, eq=False)
class Graphs:
    """P problems as tensors, operators in the order of their graphs; in [n, m], m sends to n."""

    features: Tensor  # [P, N, F]
    present: Tensor  # [P, N] false for padding
    streams: Tensor  # [P, N, N] number of streams
    inbound: Tensor  # [P, N, N] yardsticks of a link
    allowed: Tensor  # [P, N, D] devices that an operator may use
    lower: Tensor  # [P, D, D] 1 where the row's device must be in use before the column's
    load: Tensor  # [P, N, D] yardsticks, ∞ where there is no device
    wire: Tensor  # [P, D, D] seconds per byte over those of a link of usual speed
    mates: Tensor | None  # [P, N, N] 1 where two operators must share a device; None: no rules
    rivals: Tensor | None  # [P, N, N] 1 where two must not

    @staticmethod
    def of(problems: Sequence[Problem], scale: OperatorScale, config: AllocatorConfig) -> "Graphs":
        """Problems for a model with these options."""
        for problem in problems:
            check_devices(problem, config.devices)
        devices = config.devices
        if config.device_state:
            devices = max(problem.n_devices for problem in problems)
        ruled = any(problem.rules is not None for problem in problems)
        _check_size(problems, ruled=ruled)
        single = [_arrays(problem, scale, config, devices, ruled=ruled) for problem in problems]
        filling = {"present": False, "allowed": False, "load": np.inf}
        columns: dict[str, Any] = {
            name: _padded([arrays[name] for arrays in single], filling.get(name, 0))
            for name in single[0]
        }
        columns["allowed"][:, :, 0] |= ~columns["present"]
        if not ruled:
            columns["mates"] = columns["rivals"] = None
        made: dict[str, Any] = {
            name: None if c is None else torch.from_numpy(c) for name, c in columns.items()
        }
        return Graphs(**made)

    def batch(self, rows: Tensor, order: Tensor) -> "GraphBatch":
        """Batch of rows [G], decided in these orders [G, N] (padding last, in its place)."""
        n = order.shape[1]

        def sorted_rows(of_operators: Tensor) -> Tensor:
            index = order[:, :, None].expand(-1, -1, of_operators.shape[2])
            return of_operators[rows, :n].gather(1, index)

        def sorted_pairs(pairs: Tensor) -> Tensor:
            return sorted_rows(pairs[:, :, :n]).gather(2, order[:, None].expand(-1, n, -1))

        return GraphBatch(
            features=sorted_rows(self.features),
            present=self.present[rows, :n].gather(1, order),
            streams=sorted_pairs(self.streams),
            order=order,
            inbound=sorted_pairs(self.inbound).tril(-1),
            allowed=sorted_rows(self.allowed),
            lower=self.lower[rows],
            load=sorted_rows(self.load),
            wire=self.wire[rows],
            mates=None if self.mates is None else sorted_pairs(self.mates).tril(-1),
            rivals=None if self.rivals is None else sorted_pairs(self.rivals).tril(-1),
        )


@dataclass(frozen=True, slots=True, eq=False)
class GraphBatch(Graphs):
    """G problems for a policy, operators in the order of decision.

    Of pairs but streams, only those are there of which the column's operator is decided before.
    """

    order: Tensor  # [G, N] operators

    @property
    def upstream(self) -> Tensor:
        """Weights [G, N, N] that average over the upstream operators decided before."""
        before = (self.streams > 0).to(self.streams.dtype).tril(-1)
        return before / before.sum(2, keepdim=True).clamp(min=1)


def padded_orders(orders: Sequence[Longs]) -> Longs:
    """Orders of different lengths as rows [G, N]; padding comes last and stays in its place."""
    n = max(len(order) for order in orders)
    rows = np.tile(np.arange(n), (len(orders), 1))
    for row, order in zip(rows, orders, strict=True):
        row[: len(order)] = order
    return rows


def _check_size(problems: Sequence[Problem], *, ruled: bool) -> None:
    """Raise SettingError if the tensors of pairs of operators would be too large."""
    n = max(problem.n_operators for problem in problems)
    if n > MOST_OPERATORS:
        raise SettingError(
            f"the graph has {n} operators, but the model supports at most {MOST_OPERATORS}; "
            "use the placer pilot or anneal"
        )
    size = (4 if ruled else 2) * len(problems) * 4 * n**2
    if size > MOST_BYTES:
        raise SettingError(
            f"{len(problems)} graphs, all padded to the largest of {n} operators, would take "
            f"{format_bytes(size)}; leave out the largest graphs, or train pilot"
        )


def _arrays(
    problem: Problem, scale: OperatorScale, config: AllocatorConfig, devices: int, *, ruled: bool
) -> Arrays:
    instance, n, d = problem.instance, problem.n_operators, problem.n_devices
    unit = peak_yardstick(problem, finest_level(problem)) if config.device_state else 1.0
    load = np.full((n, devices), np.inf, np.float32)
    load[:, :d] = instance.full_load[:, instance.device_type] / unit
    wire = np.zeros((devices, devices), np.float32)
    wire[:d, :d] = instance.seconds_per_byte / (usual_wire(problem) or 1.0)
    streams, inbound = np.zeros((2, n, n), np.float32)
    np.add.at(streams, (instance.target, instance.source), 1)
    np.add.at(inbound, (instance.target, instance.source), stream_transfers(problem) / unit)
    lower = np.zeros((devices, devices), np.float32)
    classes = problem.interchangeable
    lower[:d, :d] = np.triu(classes[:, None] == classes, 1)
    return {
        "features": scale.operators(problem).astype(np.float32),
        "present": np.ones(n, bool),
        "streams": streams,
        "inbound": inbound,
        "lower": lower,
        "load": load,
        "wire": wire,
        **_rules(problem, devices, ruled=ruled),
    }


def _rules(problem: Problem, devices: int, *, ruled: bool) -> Arrays:
    """Devices that operators may use; with rules for any problem, those of pairs as well."""
    n, d, rules = problem.n_operators, problem.n_devices, problem.rules
    allowed = np.zeros((n, devices), bool)
    if rules is None:
        allowed[:, :d] = True
        if not ruled:
            return {"allowed": allowed}
        nobody = np.zeros((n, n), np.float32)
        return {"allowed": allowed, "mates": nobody, "rivals": nobody}
    allowed[:, :d] = rules.allowed[rules.unit]
    mates = rules.unit[:, None] == rules.unit
    apart = np.zeros((rules.n_units, rules.n_units), np.float32)
    apart[rules.apart[:, 0], rules.apart[:, 1]] = apart[rules.apart[:, 1], rules.apart[:, 0]] = 1
    rivals = apart[rules.unit][:, rules.unit]
    return {"allowed": allowed, "mates": mates.astype(np.float32), "rivals": rivals}


def _padded(arrays: Sequence[Array], fill: Any) -> Array:
    shape = np.max([array.shape for array in arrays], axis=0)
    padded = np.full((len(arrays), *shape), fill, arrays[0].dtype)
    for row, array in zip(padded, arrays, strict=True):
        row[tuple(slice(size) for size in array.shape)] = array
    return padded
