"""Operators, or groups of them, as the nodes that a policy decides about, and their features.

Features of nodes (traits) are one named column each, chosen by the training set.

========== ===========================================================================
kind       share of operators of each kind, one column per kind met in training
structure  in- and out-degree, one column per number met in training; fractal dimension
position   place in topological order, as sines and cosines (HSDAG, equation 5)
neighbours positions in topological order of the nodes that it exchanges tuples with
output     logarithm of the bytes sent
work       logarithm of the load
========== ===========================================================================
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from streamplace.errors import FormatError
from streamplace.learn.constructive.policy import FeatureScale
from streamplace.model.arrays import Bools, Floats, Longs
from streamplace.model.problem import Problem
from streamplace.papers.families.tasks import grouped
from streamplace.papers.groups.model import Trait

WAVES = 16
"""Size of the embedding of a position."""
MIN_LOAD = 1e-9
MEASURED = ("fractal", "output", "work")
"""Columns that are standardised; the others are shares, 0 or 1, and waves."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Groups of the operators of a problem; V of them."""

    problem: Problem
    label: Longs  # [N] node of every operator

    @classmethod
    def units(cls, problem: Problem) -> "Nodes":
        """Nodes that are operators, or groups of colocated ones."""
        return cls(problem, problem.unit.astype(np.int64))

    @classmethod
    def at_most(cls, problem: Problem, size: int) -> "Nodes":
        """Nodes as `units`, or groups of units if there are more than ``size`` units.

        The cheapest units join their only predecessors, as long as any has just one; the remaining
        groups are cut into runs along the topological order.
        """
        units = cls.units(problem)
        forward = units.position[units.edges[0]] < units.position[units.edges[1]]
        source, target = units.edges[:, forward].tolist()
        between = dict.fromkeys(zip(source, target, strict=True), 1.0)
        labels = np.array(grouped(units.work.tolist(), between, size).of)
        nodes = cls(problem, labels[units.label])
        if nodes.n_nodes <= size:
            return nodes
        return cls(problem, (nodes.position * size // nodes.n_nodes)[nodes.label])

    @cached_property
    def n_nodes(self) -> int:
        """Number of nodes, V."""
        return int(self.label.max()) + 1

    @cached_property
    def edges(self) -> Longs:
        """[2, E] pairs of different nodes with a stream from the first to the second, each once."""
        instance = self.problem.instance
        pairs = np.stack([self.label[instance.source], self.label[instance.target]])
        return np.unique(pairs[:, pairs[0] != pairs[1]], axis=1)

    @cached_property
    def first(self) -> Longs:
        """[V] first operator of every node."""
        return np.unique(self.label, return_index=True)[1]

    @cached_property
    def members(self) -> Longs:
        """[V] operators of every node."""
        return np.bincount(self.label, minlength=self.n_nodes)

    @cached_property
    def allowed(self) -> Bools:
        """[V, D] devices that all operators of a node may use, else devices that any may."""
        rules = self.problem.rules
        if rules is None:
            return np.ones((self.n_nodes, self.problem.n_devices), bool)
        of_operator = rules.allowed[rules.unit]
        count = np.zeros((self.n_nodes, self.problem.n_devices), np.int64)
        np.add.at(count, self.label, of_operator)
        all_may = count == self.members[:, None]
        return np.where(all_may.any(axis=1, keepdims=True), all_may, count > 0)

    @cached_property
    def in_degree(self) -> Longs:
        """[V] nodes that send to each."""
        return np.bincount(self.edges[1], minlength=self.n_nodes)

    @cached_property
    def out_degree(self) -> Longs:
        """[V] nodes that each sends to."""
        return np.bincount(self.edges[0], minlength=self.n_nodes)

    @cached_property
    def position(self) -> Longs:
        """[V] place of each in the topological order of their first operators."""
        earliest = np.full(self.n_nodes, self.problem.n_operators)
        order = self.problem.graph.order
        np.minimum.at(earliest, self.label[order], np.arange(len(order)))
        return earliest.argsort(kind="stable").argsort(kind="stable")

    @cached_property
    def work(self) -> Floats:
        """[V] load on a device, as the mean over the devices."""
        instance = self.problem.instance
        load = instance.full_load[:, instance.device_type].mean(axis=1)
        return np.asarray(np.bincount(self.label, load, self.n_nodes), np.float64)

    @cached_property
    def output(self) -> Floats:
        """[V] bytes/s on the largest stream out of each; 0 without one."""
        instance = self.problem.instance
        away = self.label[instance.source] != self.label[instance.target]
        largest = np.zeros(self.n_nodes)
        np.maximum.at(largest, self.label[instance.source][away], instance.traffic[away])
        return largest

    def share(self, kind: str) -> Floats:
        """[V] share of the operators of each node that have this kind."""
        alike = np.array([k == kind for k in self.problem.graph.operators.kind], np.float64)
        return np.asarray(np.bincount(self.label, alike, self.n_nodes) / self.members)


def fractal_dimensions(edges: Longs, n_nodes: int) -> Floats:
    """How fast the mass around every node grows with the distance, [V].

    With r_1 … r_m the distances from v to other nodes along edges [2, E] in either direction, and
    N(v, r) the nodes within distance r, the slope of log N over log r:

        D(v) = Σ_k (log r_k - mean log r)(log N(v, r_k) - mean log N) / Σ_k (log r_k - mean log r)²

    and 0 where all other nodes are equally far.

    >>> fractal_dimensions(np.array([[0, 1, 2, 3], [1, 2, 3, 4]]), 5).round(3).tolist()
    [0.657, 0.46, 0.737, 0.46, 0.657]
    """
    itself = np.arange(n_nodes)
    source, target = np.concatenate([edges, edges[::-1], [itself, itself]], axis=1)
    order = target.argsort(kind="stable")
    start = np.searchsorted(target[order], itself)
    within = np.eye(n_nodes, -(-n_nodes // 64) * 64, dtype=bool)  # a row N(v, r) for every v
    within = np.packbits(within, axis=1).view(np.uint64)
    masses = [0 * itself, 0 * itself + 1]
    while (masses[-1] > masses[-2]).any():
        within = np.bitwise_or.reduceat(within[source[order]], start)
        masses.append(np.bitwise_count(within).sum(axis=1, dtype=np.int64))
    mass, is_radius = np.array(masses[2:]), np.diff(masses[1:], axis=0) > 0  # [R, V]
    n_radii = is_radius.sum(axis=0).clip(min=1)
    log_r, log_n = np.log(np.arange(1.0, len(mass) + 1))[:, None], np.log(mass)
    along = (log_r - (log_r * is_radius).sum(axis=0) / n_radii) * is_radius
    rise = log_n - (log_n * is_radius).sum(axis=0) / n_radii
    squares = (along * along).sum(axis=0)
    return np.asarray((along * rise).sum(axis=0) / np.where(squares > 0, squares, 1.0))


class Traits(FeatureScale):
    """Columns with their scale."""

    __slots__ = ()

    @classmethod
    def of(cls, nodes: Sequence[Nodes], groups: Sequence[Trait], places: int = 0) -> "Traits":
        """Columns of these groups on a training set; ``places`` are the positions of neighbours."""
        names = tuple(name for group in groups for name in _names(group, nodes, places))
        rows = np.concatenate([_rows(names, each) for each in nodes])
        measured = np.array([name in MEASURED for name in names])
        std = rows.std(axis=0)
        scaled = measured & (std > 0)
        return cls(names, np.where(measured, rows.mean(axis=0), 0.0), np.where(scaled, std, 1.0))

    @classmethod
    def from_document(cls, document: Mapping[str, Any], where: str) -> "Traits":
        """Read traits from their `document`; ``where`` names the file in errors."""
        names = tuple(document.get("names", ()))
        if not names or not all(map(_is_column, names)):
            raise FormatError(f"{where}: was trained on other features; train again")
        return cls.read(document, names, where)

    def rows(self, nodes: Nodes) -> Floats:
        """Traits [V, F] of nodes; kinds and degrees that training did not meet are 0."""
        return (_rows(self.names, nodes) - self.mean) / self.std


def _names(group: Trait, nodes: Sequence[Nodes], places: int) -> Iterator[str]:
    if group == "kind":
        kinds = {kind for each in nodes for kind in each.problem.graph.operators.kind}
        yield from (f"kind {kind}" for kind in sorted(kinds))
    elif group == "structure":
        for direction in ("in", "out"):
            degrees = [n.in_degree if direction == "in" else n.out_degree for n in nodes]
            yield from (f"{direction} {degree}" for degree in np.unique(np.concatenate(degrees)))
        yield "fractal"
    elif group == "position":
        yield from (f"wave {k}" for k in range(WAVES))
    elif group == "neighbours":
        yield from (f"neighbour {place}" for place in range(places))
    else:
        yield group


def _rows(names: Sequence[str], nodes: Nodes) -> Floats:
    columns = [COLUMNS[kind](nodes, value) for kind, _, value in (n.partition(" ") for n in names)]
    return np.stack(columns, axis=1)


def _wave(nodes: Nodes, number: str) -> Floats:
    """sin(pos / 10000^(2i / d)) for the number 2i, the cosine for 2i + 1."""
    k = int(number)
    angle = (nodes.position + 1) / 10000 ** (2 * (k // 2) / WAVES)
    return np.cos(angle) if k % 2 else np.sin(angle)


def _neighbour(nodes: Nodes, place: str) -> Floats:
    column = np.zeros(nodes.n_nodes)
    for here, there in (nodes.edges, nodes.edges[::-1]):
        column[here[nodes.position[there] == int(place)]] = 1.0
    return column


COLUMNS: dict[str, Callable[[Nodes, str], Floats]] = {
    "kind": lambda nodes, kind: nodes.share(kind),
    "in": lambda nodes, degree: (nodes.in_degree == int(degree)).astype(np.float64),
    "out": lambda nodes, degree: (nodes.out_degree == int(degree)).astype(np.float64),
    "fractal": lambda nodes, _: fractal_dimensions(nodes.edges, nodes.n_nodes),
    "wave": _wave,
    "neighbour": _neighbour,
    "output": lambda nodes, _: np.log1p(nodes.output),
    "work": lambda nodes, _: np.log(np.maximum(nodes.work, MIN_LOAD)),
}


def _is_column(name: object) -> bool:
    kind, _, value = str(name).partition(" ")
    if kind not in ("in", "out", "wave", "neighbour"):
        return kind in COLUMNS
    return value.isdecimal() and len(value) < 10 and (kind != "wave" or int(value) < WAVES)
