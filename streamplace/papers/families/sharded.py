"""Tensor programs cut into shards, on servers of equal GPUs: every shard is a task.

A program is written in einsums. Each label (a dimension) has a size and a number of cuts, and every
operation becomes one task per combination of pieces of its labels. Where a cut label is summed
over, the partial results of a block are added up by one further task, and a `formation` makes a
single tensor of the sum, unless an operation consumes it element by element. All tasks of one
operation are its meta-op, whose name stands before the first slash of theirs: ``AB/0.1.2`` is a
shard, ``AB/sum/0.1`` a sum.

FLOPs are instructions; the output of a task is one message of its bytes, whatever the number of its
readers. Elementwise operations work in place; all others need memory for their output.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple

from streamplace.errors import SettingError
from streamplace.families.parameters import check, parameter
from streamplace.model.cluster import Cluster
from streamplace.model.devices import Device
from streamplace.model.graph import Attribute, StreamGraph
from streamplace.model.problem import Problem
from streamplace.model.units import Stated, bandwidth_bps, size_bytes
from streamplace.papers.families.tasks import ELEMENT_BYTES, TaskList

INPUT = "input"
STRAIGHT = "straight elemwise"
IN_PLACE = frozenset({"input elemwise", STRAIGHT, "bcast elemwise", "formation"})
"""Kinds of tasks that need no memory of their own."""
Block = tuple[int, ...]


class TensorLabel(NamedTuple):
    """A dimension, and into how many pieces it is cut."""

    size: int
    cuts: int = 1

    def start(self, piece: int) -> int:
        """First index of a piece; pieces are as even as whole numbers can be."""
        return self.size * piece // self.cuts

    def length(self, piece: int) -> int:
        """Indices of a piece."""
        return self.start(piece + 1) - self.start(piece)


class ShardedTensor(NamedTuple):
    """A tensor in blocks."""

    labels: str  # one letter per dimension
    rows: dict[Block, int]  # task that makes each block
    meta: str  # meta-op of these tasks
    summed: bool = False  # whether partial results were added up for it


class TensorProgram:
    """A tensor program that is built operation by operation.

    Examples
    --------
    >>> cut = TensorLabel(8, 2)
    >>> program = TensorProgram({"i": cut, "k": cut, "j": TensorLabel(8)})
    >>> a, b = program.input("A", "ik"), program.input("B", "kj")
    >>> _ = program.einsum("AB", "ik,kj->ij", a, b)
    >>> program.graph("mm", {}).operators.name
    ('A/0.0', 'A/0.1', 'A/1.0', 'A/1.1', 'B/0.0', 'B/1.0', 'AB/0.0.0', 'AB/0.0.1', ...)
    """

    def __init__(self, labels: Mapping[str, TensorLabel]) -> None:
        for size, cuts in labels.values():
            if cuts > size:
                raise SettingError(
                    f"a dimension of {size} cannot be cut into {cuts} pieces; ask for fewer shards"
                )
        self._labels = labels
        self._tasks = TaskList()
        self._forms: dict[str, ShardedTensor] = {}

    def input(self, name: str, labels: str) -> ShardedTensor:
        """Tensor that exists from the beginning, such as weights."""
        rows = {
            at: self._task(name, at, INPUT, [], 0, self._elements(labels, at))
            for at in self._blocks(labels)
        }
        return ShardedTensor(labels, rows, name)

    def einsum(self, name: str, spec: str, *operands: ShardedTensor) -> ShardedTensor:
        """Contraction: two FLOPs per combination of all indices."""
        return self._operation(name, spec, operands, "matmul", flops=2, total="sum")

    def each(self, name: str, spec: str, *operands: ShardedTensor) -> ShardedTensor:
        """Elementwise operation, one FLOP per element; operands of fewer labels are broadcast."""
        kind = "input elemwise" if len(operands) == 1 else STRAIGHT
        if len({operand.labels for operand in operands}) > 1:
            kind = "bcast elemwise"
        return self._operation(name, spec, operands, kind, flops=1, total="sum")

    def reduce(self, name: str, spec: str, total: str, operand: ShardedTensor) -> ShardedTensor:
        """Reduction over the labels that are left out, by ``"max"`` or ``"sum"``."""
        return self._operation(name, spec, (operand,), f"{total} reduction", flops=1, total=total)

    def softmax(self, name: str, labels: str, scores: ShardedTensor) -> ShardedTensor:
        """Softmax over the last label, in four operations."""
        rest = labels[:-1]
        most = self.reduce(f"{name}.max", f"{labels}->{rest}", "max", scores)
        power = self.each(f"{name}.exp", f"{labels},{rest}->{labels}", scores, most)
        total = self.reduce(f"{name}.sum", f"{labels}->{rest}", "sum", power)
        return self.each(f"{name}.over", f"{labels},{rest}->{labels}", power, total)

    def lookup(self, name: str, spec: str, *operands: ShardedTensor) -> ShardedTensor:
        """Rows of a table by number."""
        return self._operation(name, spec, operands, "select", flops=0, total="sum")

    def select(self, name: str, labels: str, operand: ShardedTensor) -> ShardedTensor:
        """The same tensor under other labels of equal sizes: blocks are cut and joined anew."""
        rows = {}
        for at in self._blocks(labels):
            parts = [row for b, row in operand.rows.items() if self._meet(operand, b, labels, at)]
            size = self._elements(labels, at)
            rows[at] = self._task(name, at, "select", parts, 0, size)
        return ShardedTensor(labels, rows, name)

    def graph(self, name: str, attributes: Mapping[str, Attribute]) -> StreamGraph:
        """Task graph of the program."""
        return self._tasks.graph(name, attributes)

    def _operation(
        self,
        name: str,
        spec: str,
        operands: tuple[ShardedTensor, ...],
        kind: str,
        flops: int,
        total: str,
    ) -> ShardedTensor:
        if kind != STRAIGHT:
            operands = tuple(self._formed(x) if x.summed else x for x in operands)
        read, out = spec.split("->")
        reads = read.split(",")
        labels = out + "".join(dict.fromkeys(x for x in "".join(reads) if x not in out))
        shards: dict[Block, list[int]] = {}
        for at in self._blocks(labels):
            piece = dict(zip(labels, at, strict=True))
            blocks = (tuple(piece[x] for x in read) for read in reads)
            parts = [operand.rows[b] for operand, b in zip(operands, blocks, strict=True)]
            work = flops * self._elements(labels, at)
            size = self._elements(out, at[: len(out)])
            row = self._task(name, at, kind, parts, work, size)
            shards.setdefault(at[: len(out)], []).append(row)
        if all(len(rows) == 1 for rows in shards.values()):
            return ShardedTensor(out, {at: rows[0] for at, rows in shards.items()}, name)
        return self._totals(name, out, shards, total)

    def _totals(
        self, name: str, out: str, shards: dict[Block, list[int]], total: str
    ) -> ShardedTensor:
        rows = {}
        for at, parts in shards.items():
            size = self._elements(out, at)
            work = (len(parts) - 1) * size
            kind = f"{total} reduction"
            rows[at] = self._task(f"{name}/{total}", at, kind, parts, work, size)
        return ShardedTensor(out, rows, name, summed=True)

    def _formed(self, tensor: ShardedTensor) -> ShardedTensor:
        if tensor.meta not in self._forms:
            rows = {}
            for at, row in tensor.rows.items():
                size = self._elements(tensor.labels, at)
                rows[at] = self._task(f"{tensor.meta}/form", at, "formation", [row], 0, size)
            self._forms[tensor.meta] = tensor._replace(rows=rows, summed=False)
        return self._forms[tensor.meta]

    def _task(
        self, meta: str, at: Block, kind: str, inputs: list[int], flops: int, elements: int
    ) -> int:
        name, size = f"{meta}/{'.'.join(map(str, at))}", ELEMENT_BYTES * elements
        memory = 0 if kind in IN_PLACE else size
        return self._tasks.add(name, kind, inputs, flops, size, memory)

    def _blocks(self, labels: str) -> Iterator[Block]:
        return product(*(range(self._labels[x].cuts) for x in labels))

    def _elements(self, labels: str, at: Block) -> int:
        return prod(self._labels[x].length(piece) for x, piece in zip(labels, at, strict=True))

    def _meet(self, tensor: ShardedTensor, block: Block, labels: str, at: Block) -> bool:
        """Whether two blocks share elements, dimension by dimension."""
        for x, piece, y, other in zip(tensor.labels, block, labels, at, strict=True):
            a, b = self._labels[x], self._labels[y]
            if a.start(piece) >= b.start(other + 1) or b.start(other) >= a.start(piece + 1):
                return False
        return True


@dataclass(frozen=True, slots=True)
class Gpus:
    """Parameters of a server; by default four of the GPUs that Doppler was measured on.

    The paper's multiplications reach 13.6 TFLOPS on one of its P100: 440 ms for chainmm.
    """

    devices: int = parameter(4, "number of GPUs", least=1, most=1024)
    tflops: float = parameter(13.6, "TFLOP/s of a GPU", least=1e-6, most=1e6)
    memory: str = parameter("16 GB", "memory of a GPU")
    bandwidth: str = parameter("16 GB/s", "bandwidth between any two GPUs, in each direction")
    inputs_everywhere: bool = parameter(
        False, "inputs are available on all GPUs, instead of being tasks that send them"
    )

    def __post_init__(self) -> None:
        check(self)
        bandwidth_bps(self.bandwidth)
        size_bytes(self.memory)

    @property
    def n_graphs(self) -> int:
        """Number of problems."""
        return 1

    def problem(self, graph: StreamGraph) -> Problem:
        """The problem of running a program on these GPUs."""
        gpus = [
            Device(f"gpu{d}", Stated(self.tflops * 1e6), memory=self.memory)
            for d in range(self.devices)
        ]
        program = without_inputs(graph) if self.inputs_everywhere else graph
        return Problem(program, Cluster.of(gpus, bandwidth=self.bandwidth))


def without_inputs(graph: StreamGraph) -> StreamGraph:
    """Return a program whose inputs are no tasks, so that no task waits for them."""
    tasks = [task for task in graph.operators if task.kind != INPUT]
    names = {task.name for task in tasks}
    streams = [stream for stream in graph.streams if stream.source in names]
    return StreamGraph.of(graph.name, tasks, streams, graph.attributes, fires="all")
