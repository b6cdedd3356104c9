"""Neural networks in Placeto's units, for `cifar10`, `nmt` and `ptb`, and ENAS's recurrent cells.

A task is a group of operations, forward and backward, as these papers place them. Its time in
microseconds is its ipt, on devices of 1 MIPS; it is estimated from FLOPs, since the measured
graphs are lost. The output of a task is one message, whatever the number of its readers, and every
device sends at 7600 bytes per microsecond. The rest of Placeto's rules (one transfer at a time out
of a device, pauses) are those of the objective, ``makespan:preset=placeto``.

A cell for Penn Treebank, which `ptb` and `enas_ptb` unroll, is a chain of nodes. The first takes in
a word and the state of the step before; every other one transforms what an earlier node makes. What
no node reads is averaged into the new state.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from streamplace.families.draws import one_of
from streamplace.families.parameters import check, parameter
from streamplace.model.cluster import Cluster
from streamplace.model.graph import Attribute
from streamplace.model.problem import Problem
from streamplace.papers.families.tasks import ELEMENT_BYTES, TaskList

FLOPS_PER_US = 1e6
"""FLOPs that one of a K80's two processors executes in a microsecond on such tasks."""
TRAINING = 3
"""Backward passes take twice as long as forward ones."""
LAUNCH_US = 20
BUS = "7.6 GB/s"
READS_LAST = 0.6
"""Share of nodes that read the node just before them; others any earlier one."""
ACTIVATIONS = ("tanh", "relu", "sigmoid", "identity")
Cell = list[tuple[int, str]]
"""For every node: the earlier node that it reads (-1 for the first), and its activation."""


def microseconds(flops: float) -> int:
    """Time of a group of operations; 0 if it only stores or forwards data."""
    return round(LAUNCH_US + TRAINING * flops / FLOPS_PER_US) if flops else 0


@dataclass(frozen=True, slots=True)
class NeuralNets:
    """Parameters of a family of neural networks on equal devices."""

    count: int = parameter(32, "number of graphs", least=1, most=100_000)
    devices: int = parameter(
        5, "number of equal devices; the papers use 3, 5 and 8", least=1, most=1024
    )

    def __post_init__(self) -> None:
        check(self)

    @property
    def n_graphs(self) -> int:
        """Number of problems."""
        return self.count


class NeuralNet:
    """A neural network that is built group by group."""

    def __init__(self) -> None:
        self.tasks = TaskList()

    def add(self, name: str, kind: str, inputs: Iterable[int], flops: float, elements: int) -> int:
        """Row of a new group of operations, from its FLOPs forward and the elements it puts out."""
        size = ELEMENT_BYTES * elements
        time_us = microseconds(flops)
        return self.tasks.add(name, kind, inputs, time_us, size, memory=size)

    def problem(self, name: str, devices: int, attributes: Mapping[str, Attribute]) -> Problem:
        """The problem of placing it on equal devices."""
        cluster = Cluster.uniform(devices, mips=1, bandwidth=BUS)
        return Problem(self.tasks.graph(name, attributes), cluster)


def draw_cell(nodes: int, rng: np.random.Generator) -> Cell:
    """Draw a cell.

    >>> [before for before, _ in draw_cell(5, np.random.default_rng(0))]
    [-1, 0, 1, 2, 2]
    """
    return [(_read(rng, i), one_of(rng, ACTIVATIONS)) for i in range(nodes)]


def ends_of(cell: Cell) -> list[int]:
    """Nodes that no other one reads."""
    read = {before for before, _ in cell}
    return [i for i in range(len(cell)) if i not in read]


def depth_of(cell: Cell) -> int:
    """Nodes on the longest way through a cell.

    >>> depth_of([(-1, "tanh"), (0, "relu"), (0, "tanh"), (2, "relu")])
    3
    """
    depth: list[int] = []
    for before, _ in cell:
        depth.append(1 + (depth[before] if before >= 0 else 0))
    return max(depth)


def _read(rng: np.random.Generator, node: int) -> int:
    last = rng.random() < READS_LAST
    return node - 1 if last or node == 0 else int(rng.integers(node))
