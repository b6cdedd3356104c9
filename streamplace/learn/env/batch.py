"""Problems as tensors.

Shapes: P problems, G of them in a batch, N operators and D devices (of the largest). Of pairs
[n, m], operator m sends to n. Padding operators send nothing, load nothing, and may only be put on
the first device.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import torch
from streamsim.loads import limits_subtasks
from torch import Tensor

from streamplace.errors import SettingError
from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.config import MAX_OPERATORS
from streamplace.model.arrays import Array, Arrays
from streamplace.model.coarsening import finest_level
from streamplace.model.least_peak import peak_yardstick
from streamplace.model.problem import Problem
from streamplace.model.units import format_bytes

MAX_BYTES = 16e9
"""Most memory for tensors of operators by operators, of all graphs together."""
N_ORDERS = 16
"""Orders of decision of a problem among which a training chooses."""
PAIR_COLUMNS = ("bytes", "streams", "tuples", "mates", "rivals")
"""Columns of operators by operators."""
OPERATOR_COLUMNS = ("present", "load", "allowed", "constant", "core", "core_constant")


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """G problems, their operators in the order of the graphs. None: no problem has any of these."""

    present: Tensor  # [G, N] false for padding
    order: Tensor  # [G, N] operators in the order of decision, padding last
    load: Tensor  # [G, N, D] share of a device at full rate
    bytes: Tensor  # [G, N, N] bytes/s at full rate
    streams: Tensor  # [G, N, N] number of streams
    wire: Tensor  # [G, D, D] seconds per byte
    exists: Tensor  # [G, D] false for devices that a problem lacks
    allowed: Tensor  # [G, N, D] devices that an operator may use
    alike: Tensor  # [G, D, D] whether swapping two devices changes nothing
    yardstick: Tensor  # [G] the least peak that a placement could have by the CPU, at least 1
    mates: Tensor | None = None  # [G, N, N] 1 where two operators must share a device
    rivals: Tensor | None = None  # [G, N, N] 1 where two must not
    tuples: Tensor | None = None  # [G, N, N] tuples/s, if they cost more than their bytes
    per_tuple: Tensor | None = None  # [G, 3] overhead, overhead per byte, gap
    free_cores: Tensor | None = None  # [G, D]
    nics: Tensor | None = None  # [G, 2, D] seconds per byte sent and received
    constant: Tensor | None = None  # [G, N, D] share of a device at any rate
    core: Tensor | None = None  # [G, N, D] share of a core
    core_constant: Tensor | None = None  # [G, N, D] share of a core at any rate

    def mapped(self, change: Callable[[str, Tensor], Tensor]) -> Self:
        """Return the same with every column changed by its name."""
        parts = ((f.name, getattr(self, f.name)) for f in fields(self))
        return replace(self, **{n: change(n, c) for n, c in parts if c is not None})

    def to(self, device: torch.device | str) -> Self:
        """Return the same on a device."""
        return self.mapped(lambda _, column: column.to(device))

    def rows(self, rows: Tensor, n: int) -> Self:
        """Return some of the problems, of at most n operators each."""

        def selected(name: str, column: Tensor) -> Tensor:
            if name in PAIR_COLUMNS:
                return column[rows, :n, :n]
            return column[rows, :n] if name in OPERATOR_COLUMNS else column[rows]

        return self.mapped(selected)

    @property
    def full_load(self) -> Tensor:
        """Share [G, N, D] of a device at full rate, constant loads included."""
        return self.load if self.constant is None else self.load + self.constant

    @property
    def usual_wire(self) -> Tensor:
        """Seconds per byte [G], as the mean over the links."""
        devices = self.exists.sum(1)
        return self.wire.sum((1, 2)) / (devices * (devices - 1)).clamp(min=1)

    def in_yardsticks(self) -> Self:
        """Return the same with loads and flows divided by the yardsticks."""
        scaled = ("load", "bytes", "constant")
        unit = self.yardstick[:, None, None]
        return self.mapped(lambda name, column: column / unit if name in scaled else column)

    def steps(self, of_operators: Tensor) -> Tensor:
        """Columns [G, N, …] of operators in the order of decision."""
        index = self.order.view(*self.order.shape, *(1,) * (of_operators.dim() - 2))
        return of_operators.gather(1, index.expand(-1, -1, *of_operators.shape[2:]))

    def pairs(self, of_pairs: Tensor) -> Tensor:
        """Columns [G, N, N] of pairs in the order of decision, with earlier operators only."""
        along = self.order[:, None].expand_as(of_pairs)
        return self.steps(of_pairs).gather(2, along).tril(-1)

    def along(self, placements: Tensor) -> Tensor:
        """Devices [G, S, N] of the decisions, one after the other, of placements."""
        return placements.gather(2, self.order[:, None].expand_as(placements))

    def placements(self, decided: Tensor) -> Tensor:
        """Placements [G, S, N] from the devices of the decisions, one after the other."""
        return decided.gather(2, self.order.argsort(1)[:, None].expand_as(decided))

    def canonical(self, placements: Tensor) -> Tensor:
        """Placements whose interchangeable devices are numbered by their first decision."""
        decided, devices = self.along(placements), self.exists.shape[1]
        device = torch.arange(devices, device=decided.device)
        place = torch.arange(decided.shape[2], device=decided.device)[:, None]
        there = decided[..., None] == device
        first = torch.where(there, place, decided.shape[2]).amin(2)  # [G, S, D]
        smaller = device[:, None] > device
        earlier, later = first[:, :, None], first[:, :, :, None]
        before = (earlier < later) | ((earlier == later) & smaller)
        rank = (before & self.alike[:, None]).sum(3)  # among those alike, by appearance
        number = (smaller & self.alike).sum(2)  # the same, by number
        named = self.alike[:, None] & (number[:, None, None] == rank[..., None])
        renamed = (named * device).sum(3).gather(2, decided)
        return self.placements(torch.where(self.steps(self.present)[:, None], renamed, 0))


class ProblemTensors:
    """P problems as tensors, and batches of them."""

    def __init__(
        self,
        problems: Sequence[Problem],
        device: torch.device | str = "cpu",
        order: str = "topological",
        *,
        random_ties: bool = True,
    ) -> None:
        self.problems, self._order, self._random_ties = tuple(problems), order, random_ties
        # [P] operators of every problem.
        self.sizes = np.array([problem.n_operators for problem in problems], np.int64)
        self.every = _stacked(self.problems, order).to(device)  # all problems as one batch
        self._orders: Tensor | None = None

    def batch(self, rows: Tensor, generator: torch.Generator | None = None) -> Batch:
        """Some of the problems; with a generator, ties of the order of decision are drawn."""
        n = int(self.sizes[rows.cpu().numpy()].max())
        batch = self.every.rows(rows, n)
        order = batch.order[:, :n]
        if generator is not None and self._random_ties:
            if self._orders is None:
                self._orders = torch.from_numpy(self._shuffled()).to(order.device)
            chosen = torch.randint(
                N_ORDERS, rows.shape, generator=generator, device=generator.device
            ).to(order.device)
            order = self._orders[rows, chosen, :n].long()
        return replace(batch, order=order)

    def _shuffled(self) -> Array:
        """Orders [P, K, N] of every problem, each with other ties."""
        rng, n = np.random.default_rng(0), int(self.sizes.max())
        orders = np.tile(np.arange(n, dtype=np.int16), (len(self.problems), N_ORDERS, 1))
        for rows, problem in zip(orders, self.problems, strict=True):
            for row in rows:
                rank = rng.permutation(problem.n_operators)
                row[: problem.n_operators] = decision_order(problem, self._order, rank)
        return orders


def _stacked(problems: Sequence[Problem], order: str) -> Batch:
    """All problems, padded to the largest."""
    n = max(problem.n_operators for problem in problems)
    d = max(problem.n_devices for problem in problems)
    ruled = any(problem.rules is not None for problem in problems)
    _check_size(len(problems), n, ruled=ruled)
    each = [dict(_columns(problem, n, d, order)) for problem in problems]
    columns: dict[str, Array] = {
        name: np.stack([arrays[name] for arrays in each]) for name in each[0]
    }
    columns["allowed"][:, :, 0] |= ~columns["present"]
    needed = {
        "mates": ruled,
        "rivals": ruled,
        **dict.fromkeys(("tuples", "per_tuple", "free_cores"), bool(columns["per_tuple"].any())),
        "nics": bool(columns["nics"].any()),
        "constant": any(len(problem.instance.constant) for problem in problems),
        "core": any(limits_subtasks(problem.instance) for problem in problems),
    }
    needed["core_constant"] = needed["core"] and needed["constant"]
    return Batch(**{n: torch.from_numpy(c) for n, c in columns.items() if needed.get(n, True)})


def _columns(problem: Problem, n: int, d: int, order: str) -> Iterator[tuple[str, Array]]:
    """Columns of one problem, padded to n operators and d devices."""
    instance, n_own, d_own = problem.instance, problem.n_operators, problem.n_devices
    pairs = instance.target, instance.source
    for name, flow in (("bytes", instance.traffic), ("tuples", instance.tuples), ("streams", 1)):
        total = np.zeros((n, n), np.float32 if name == "streams" else np.float64)
        np.add.at(total, pairs, flow)
        yield name, total
    places = np.arange(n)
    places[:n_own] = decision_order(problem, order)
    yield "order", places
    yield "present", np.arange(n) < n_own
    yield "exists", np.arange(d) < d_own
    yield "wire", _padded(instance.seconds_per_byte, d, d)
    of_types = {"load": instance.load, "constant": instance.constant, "core": instance.core_load}
    for name, column in (of_types | {"core_constant": instance.core_constant}).items():
        there = len(column) and (name != "core" or limits_subtasks(instance))
        yield name, _padded(column[:, instance.device_type], n, d) if there else np.zeros((n, d))
    classes = np.arange(d)
    classes[:d_own] = problem.interchangeable
    yield "alike", classes[:, None] == classes
    yield "yardstick", np.array(peak_yardstick(problem, finest_level(problem)))
    yield "per_tuple", np.array([instance.overhead, instance.overhead_per_byte, instance.gap])
    yield "free_cores", np.pad(instance.free_cores, (0, d - d_own), constant_values=1)
    yield "nics", _padded(np.stack([instance.egress, instance.ingress]), 2, d)
    yield from _rules(problem, n, d).items()


def _rules(problem: Problem, n: int, d: int) -> Arrays:
    """Devices that operators may use, and operators that must or must not share one."""
    own, rules = problem.n_operators, problem.rules
    allowed, mates, rivals = np.zeros((n, d), bool), *np.zeros((2, n, n), np.float32)
    allowed[:own, : problem.n_devices] = True
    if rules is not None:
        allowed[:own, : problem.n_devices] = rules.allowed[rules.unit]
        mates[:own, :own] = rules.unit[:, None] == rules.unit
        apart = np.zeros((rules.n_units, rules.n_units), np.float32)
        apart[rules.apart[:, 0], rules.apart[:, 1]] = 1
        apart[rules.apart[:, 1], rules.apart[:, 0]] = 1
        rivals[:own, :own] = apart[rules.unit][:, rules.unit]
    return {"allowed": allowed, "mates": mates, "rivals": rivals}


def _padded(array: Array, rows: int, columns: int) -> Array:
    return np.pad(array, ((0, rows - array.shape[0]), (0, columns - array.shape[1])))


def _check_size(problems: int, n: int, *, ruled: bool) -> None:
    """Raise SettingError if the tensors of operators by operators would be too large."""
    if n > MAX_OPERATORS:
        raise SettingError(
            f"the graph has {n} operators, but the model supports at most {MAX_OPERATORS}; "
            "use the placer pilot or anneal"
        )
    size = (28 if ruled else 20) * problems * n**2
    if size > MAX_BYTES:
        raise SettingError(
            f"{problems} graphs, all padded to the largest of {n} operators, would take "
            f"{format_bytes(size)}; leave out the largest graphs, or train pilot"
        )
