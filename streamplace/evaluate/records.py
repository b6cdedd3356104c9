"""Results of placers on problems: a JSON line each in a file."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import ConfigDict, Field

from streamplace.io.fields import STRICT, Finite
from streamplace.io.files import appending, read_lines, spot
from streamplace.io.parsing import parse_as
from streamplace.model.arrays import Array, Ints, Longs
from streamplace.model.cluster import MAX_DEVICES
from streamplace.model.columns import distinct_rows, rules_of
from streamplace.model.devices import Devices
from streamplace.model.graph import Attribute
from streamplace.model.placement import Discipline, Placement
from streamplace.model.problem import Problem
from streamplace.objectives.conditions import BEYOND
from streamplace.objectives.registry import DEFAULT
from streamplace.placers.result import Result, proven

Key = tuple[str, str, str, str]
START = b'{"problem":'
"""Beginning of every line of a file."""


@dataclass(frozen=True, slots=True)
class Record:
    """The result of one placer on one problem."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    problem: str  # content hash of the problem
    graph: str
    rate: Finite | None  # total rate of the sources; None for the graph's original rate
    placer: str
    budget: str  # budget, seed, code and weights as a text; the text is part of the key
    value: Finite | None  # value of the placement; None if the placer could not place the problem
    bound: Finite | None
    milliseconds: Finite
    # Device row of every operator.
    devices: tuple[Annotated[int, Field(ge=0, lt=MAX_DEVICES)], ...]
    error: str | None = None
    objective: str = DEFAULT  # name of the objective, with its conditions
    # Priority of every operator, if the placement has an order.
    priority: tuple[Finite, ...] | None = None
    # Further numbers by name: those of the objective, and values by other objectives.
    measures: dict[str, Finite] = field(default_factory=dict)
    # Numbers of evaluations and the values reached after them, if the placer reports any.
    steps: tuple[tuple[Annotated[int, Field(ge=1)], Finite], ...] = ()
    queue: Discipline = "priority"  # meaning of the priorities, as in `Placement`
    # Name of the placer in tables and plots, if the comparison gives it one.
    alias: str | None = None
    attributes: dict[str, Attribute] = field(default_factory=dict)  # those of the graph

    def placement(self, problem: Problem) -> Placement:
        """Placement of the problem by the recorded devices and priorities."""
        return problem.placement(self.devices, self.priority, self.queue)

    @property
    def key(self) -> Key:
        """Key; records with equal keys are repetitions of one result."""
        return (self.problem, self.objective, self.placer, self.budget)

    @property
    def label(self) -> str:
        """Name of the placer in tables and plots."""
        return self.placer if self.alias is None else self.alias

    @property
    def devices_used(self) -> int:
        """Number of devices in use."""
        return len(set(self.devices))

    @property
    def proven(self) -> bool:
        """Whether the value is proven to be optimal."""
        return self.value is not None and proven(self.value, self.bound)


def with_result(record: Record, result: Result) -> Record:
    """Record of a result, with its last step before each power of two of evaluations."""
    steps = {
        step.evaluations.bit_length(): (step.evaluations, step.value)
        for step in result.trace
        if abs(step.value) < BEYOND  # else it misses a condition, or is not finite
    }
    order = result.placement.priority
    return replace(
        record,
        value=result.value,
        bound=result.bound,
        milliseconds=1000 * result.seconds,
        devices=tuple(result.placement.index.tolist()),
        priority=None if order is None else tuple(order.tolist()),
        queue=result.placement.queue,
        steps=tuple(steps[power] for power in sorted(steps)),
    )


def read_records(path: Path) -> Iterator[Record]:
    """Records of a file, none of whose lines may be damaged.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "results.jsonl"
    >>> with claim_records(path) as append:
    ...     append([Record("p", "g", 1e4, "metis", "1 s", 0.8, None, 0.1, (0, 1))])
    >>> [record.value for record in read_records(path)]
    [0.8]
    """
    for number, line in read_lines(path):
        yield parse_as(Record, line, f"{spot(path)}:{number}")


@contextmanager
def claim_records(path: Path) -> Iterator[Callable[[Iterable[Record]], None]]:
    """Lock a file against other processes, and yield a function that appends records to it.

    A last line that an interrupted process left incomplete is removed.
    """
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
    with appending(path, START) as append:
        yield lambda records: append("".join(f"{encode(asdict(r))}\n" for r in records).encode())


JOIN_COLUMNS = ("joins", "port_start", "port", "intake")
"""Columns without information if no operator joins its streams."""
ONE_SHARE = np.array([1.0])
"""Part of the hash of several sources, whose values older versions computed as sums."""


def problem_hash(problem: Problem) -> str:
    """Content hash of a problem: equal for problems on which every placement has equal values.

    >>> from streamplace import Cluster, Operator, StreamGraph
    >>> graph = StreamGraph.of("g", [Operator("a", ipt=1e5, rate=1e4)])
    >>> problem_hash(Problem(graph, Cluster.uniform(2))) == problem_hash(
    ...     Problem(StreamGraph("other", graph.operators, graph.streams), Cluster.uniform(2)))
    True
    """
    columns = problem.instance._asdict()
    if not problem.instance.joins.any():
        columns = {name: column for name, column in columns.items() if name not in JOIN_COLUMNS}
    handles = columns["overhead"] or columns["overhead_per_byte"]
    if not handles or np.array_equal(columns["free_cores"], columns["cores"]):
        del columns["free_cores"]
    if not columns["overhead_per_byte"]:
        del columns["overhead_per_byte"]
    if not len(columns["constant"]):
        del columns["constant"], columns["core_constant"]
    if not len(columns["max_rate"]):
        del columns["max_rate"]
    arrays = [np.asarray(column) for column in columns.values()]
    arrays += [ONE_SHARE] if len(problem.instance.sources) > 1 else []
    if problem.rules is not None:
        arrays += [problem.rules.unit, problem.rules.allowed, problem.rules.apart]
        arrays += [
            limit for limit in (problem.rules.memory, problem.rules.room) if limit is not None
        ]
    arrays += _energy(problem) + _unshared(problem)
    digest = sha256()
    hash_arrays(digest.update, arrays)
    return digest.hexdigest()


def hash_arrays(update: Callable[[bytes], object], arrays: Iterable[Array]) -> None:
    """Update a hash with types, shapes and values of arrays."""
    for array in arrays:
        update(f"{array.dtype.str}{array.shape}".encode())
        update(np.ascontiguousarray(array).tobytes())


COMPILED = {"mips", "cores", "tags", "memory", "egress", "ingress", "reserved"}
"""Fields of devices that the arrays and the rules of a problem contain."""


def _energy(problem: Problem) -> list[Any]:
    """Power of devices, other fields for objectives, and energy of links; empty for defaults."""
    devices, joules = problem.cluster.devices, problem.cluster.joules_per_byte
    others = [(getattr(devices, name), r) for name, r in rules_of(Devices) if name not in COMPILED]
    stated = joules or any((column != rule.default).any() for column, rule in others)
    return [*(column for column, _ in others), np.float64(joules)] if stated else []


def _unshared(problem: Problem) -> list[Any]:
    """Messages of the streams, unless equal outputs of an operator are sent as one."""
    streams, order = problem.graph.streams, problem.instance.stream_index
    columns = streams.source, streams.selectivity, streams.bytes_per_tuple()
    message, usual = (
        _numbered(numbers[order]) for numbers in (streams.messages(), distinct_rows(*columns)[1])
    )
    return [] if (message == usual).all() else [message]


def _numbered(groups: Longs | Ints) -> Longs:
    """Number groups by the first member of each."""
    _, first, group = np.unique(groups, return_index=True, return_inverse=True)
    return np.asarray(first[group], np.int64)


def problem_number(digest: str) -> int:
    """Hash a content hash to eight bytes, enough for a million problems."""
    return int.from_bytes(blake2b(digest.encode(), digest_size=8).digest(), "big")
