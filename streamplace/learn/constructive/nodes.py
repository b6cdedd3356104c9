"""What a policy decides about as one: operators, or groups of them, as a graph."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamplace.errors import SettingError
from streamplace.families.grouping import grouped
from streamplace.learn.constructive.fractal import fractal_dimensions
from streamplace.model.arrays import Bools, Floats, Longs
from streamplace.model.problem import Problem


@dataclass(frozen=True, eq=False)
class Nodes:
    """Groups of the operators of a problem; V of them.

    Attributes
    ----------
    label
        [N] node of every operator.
    """

    problem: Problem
    label: Longs

    @classmethod
    def units(cls, problem: Problem) -> "Nodes":
        """Nodes that are operators, or what is colocated."""
        n, rules = problem.n_operators, problem.rules
        return cls(problem, np.arange(n) if rules is None else rules.unit.astype(np.int64))

    @classmethod
    def at_most(cls, problem: Problem, size: int) -> "Nodes":
        """Nodes as `units`, or if these are more than so many, groups of them.

        The cheapest join their only predecessors, as long as any has just one; what is left then
        is cut into runs along the topological order.
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
        """[V, D] devices that all of a node may use, or where there is none those of any."""
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
        """[V] place of each in the order in which their first operators come topologically."""
        earliest = np.full(self.n_nodes, self.problem.n_operators)
        order = self.problem.graph.order
        np.minimum.at(earliest, self.label[order], np.arange(len(order)))
        return earliest.argsort(kind="stable").argsort(kind="stable")

    @cached_property
    def fractal(self) -> Floats:
        """[V] fractal dimension, see `fractal_dimensions`."""
        return fractal_dimensions(self.edges, self.n_nodes)

    @cached_property
    def work(self) -> Floats:
        """[V] load on a device, as the mean over the devices."""
        instance = self.problem.instance
        load = instance.full_load[:, instance.device_type].mean(axis=1)
        return np.asarray(np.bincount(self.label, load, self.n_nodes), np.float64)

    @cached_property
    def output(self) -> Floats:
        """[V] bytes/s on the largest stream that leaves each, 0 where none does."""
        instance = self.problem.instance
        away = self.label[instance.source] != self.label[instance.target]
        largest = np.zeros(self.n_nodes)
        np.maximum.at(largest, self.label[instance.source][away], instance.traffic[away])
        return largest

    def share(self, kind: str) -> Floats:
        """[V] share of the operators of each that are of a kind."""
        alike = np.array([k == kind for k in self.problem.graph.operators.kind], np.float64)
        return np.asarray(np.bincount(self.label, alike, self.n_nodes) / self.members)

    @cached_property
    def kinds(self) -> list[str]:
        """Kinds of operators that occur."""
        return sorted(Counter(self.problem.graph.operators.kind))


def check_devices(problem: Problem, most: int) -> None:
    """Raise SettingError where there are more devices than a model knows."""
    if problem.n_devices > most:
        raise SettingError(
            f"the cluster has {problem.n_devices} devices, but the model supports at most {most}; "
            f"train it with 'devices = {problem.n_devices}' under [model] in a --config file, or "
            "use the placer pilot, which supports any number"
        )
