"""Streams between operators, stored as columns; a `Stream` is one row."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from streamplace.errors import GraphError
from streamplace.model.arrays import Bools, Floats, Ints, Longs
from streamplace.model.columns import (
    BrokenRule,
    CheckedColumns,
    CheckedRow,
    CountRule,
    NumberRule,
    Numbers,
    TextRule,
    Texts,
    check_name,
    distinct_rows,
    ruled,
)
from streamplace.model.message_text import quoted, shown
from streamplace.model.operators import Operators
from streamplace.model.units import size_bytes

CHAINED = "chained"
RESCALE = "rescale"
PARTITIONINGS = ("", "forward", "rebalance", RESCALE, "hash", CHAINED)
STRAIGHT = ("forward", CHAINED)
"""Partitionings that join subtask i to subtask i, and so need equal parallelisms."""
HASHED, FORWARD, REBALANCED, RESCALED = range(4)
"""Ways to distribute tuples over subtasks; see `Streams.distribution`."""


Ends = TypeVar("Ends")
Payloads = TypeVar("Payloads")


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class StreamFields(Generic[Ends, Numbers, Payloads, Texts]):
    """The fields of a stream, with their rules: values of `Stream`, columns of `Streams`."""

    source: Ends
    target: Ends
    selectivity: Numbers = ruled(NumberRule(1.0))
    payload: Payloads = ruled(NumberRule(None, parse=size_bytes))
    partitioning: Texts = ruled(TextRule(PARTITIONINGS))
    input: Texts = ruled(TextRule())
    ipt: Numbers = ruled(NumberRule())


@dataclass(frozen=True, slots=True, repr=False)
class Stream(CheckedRow, StreamFields[str, float, float | None, str]):
    """One stream between two operators.

    Attributes
    ----------
    selectivity
        Tuples on this stream per output tuple of the source, 1 by default.
    payload
        Bytes per tuple, or a text such as ``"12.5 kB"``, where they differ from the source's
        payload; None inherits it. Streams that inherit it carry one message, which some networks
        of a pass send once to each device; a stream with a payload carries its own message.
    partitioning
        How tuples reach the subtasks of the target: "forward" (one to one), "rebalance"
        (evenly to all), "rescale" (evenly to neighbours: each of the fewer subtasks is joined to
        its own group of the others), "hash" (to all, by the key groups of the target), "chained"
        (one to one, by a call in one thread, so subtasks share a device). "" means hash if the
        target has key groups, else forward between equal parallelisms and rebalance otherwise.
    input
        Input of a target that fires "all"; streams with equal names are merged into one input.
        "" is an input of its own.
    ipt
        Instructions per tuple to hand it to another thread: half to write, half to read, on one
        device or between two. Chained streams cost none. Sending to another device costs the
        ``overhead`` of the cluster in addition.
    """

    def __post_init__(self) -> None:
        for column in ("source", "target"):
            check_name(getattr(self, column), f"the {column} of a stream", GraphError)
        self._check()

    @property
    def _owner(self) -> str:
        return f"stream {shown(self.source)}→{shown(self.target)}"


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Streams(CheckedColumns[Stream], StreamFields[Ints, Floats, Floats, tuple[str, ...]]):
    """All streams of a graph, column by column; endpoints are rows of its operators.

    Columns may be given as lists or arrays; they are stored as read-only arrays. ``payload`` is NaN
    where a stream inherits the payload of its source.

    Examples
    --------
    >>> operators = Operators(("src", "sink"), payload=[50, 0], rate=[100, 0])
    >>> streams = Streams(operators, [0, 0], [1, 1], selectivity=[1, 0.5])
    >>> streams.label(1), streams[1].selectivity, streams.bytes_per_tuple().tolist()
    ('src→sink', 0.5, [50.0, 50.0])
    """

    operators: Operators = field(kw_only=True)
    _row: ClassVar[type[Any]] = Stream

    def __init__(
        self, operators: Operators, source: ArrayLike, target: ArrayLike, **columns: Any
    ) -> None:
        object.__setattr__(self, "operators", operators)
        size = len(source) if isinstance(source, Sequence | np.ndarray) else 1
        for column, ends in (("source", source), ("target", target)):
            object.__setattr__(self, column, _ends(column, ends, size, len(operators)))
        self._fill(size, columns)
        self._check_chains()

    @classmethod
    def of(cls, operators: Operators, streams: Iterable[Stream]) -> "Streams":
        """Columns from single streams."""
        rows = list(streams)
        ends = [row.source for row in rows], [row.target for row in rows]
        return cls.between(operators, *ends, **cls._gathered(rows))

    @classmethod
    def between(
        cls, operators: Operators, sources: Sequence[str], targets: Sequence[str], **columns: Any
    ) -> "Streams":
        """Columns whose ends are operator names instead of rows."""
        try:
            rows = operators.rows(sources), operators.rows(targets)
        except GraphError:
            raise _unknown_end(operators, sources, targets) from None
        return cls(operators, *rows, **columns)

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, key: int) -> Stream:
        names = self.operators.name
        return Stream(names[self.source[key]], names[self.target[key]], **self._values(key))

    def __hash__(self) -> int:
        return hash((self.source.tobytes(), self.target.tobytes()))

    def label(self, i: int) -> str:
        """Display name of a stream, such as ``join→sink``."""
        names = self.operators.name
        return f"{shown(names[self.source[i]])}→{shown(names[self.target[i]])}"

    def bytes_per_tuple(self) -> Floats:
        """Payload of every stream, stated or inherited from its source."""
        return np.where(np.isnan(self.payload), self.operators.payload[self.source], self.payload)

    def chained(self) -> Bools:
        """Whether the ends of each stream run in one thread."""
        return np.array([kind == CHAINED for kind in self.partitioning], np.bool_)

    def straight(self) -> Bools:
        """Whether the partitioning of each stream connects subtask i with subtask i."""
        return np.array([kind in STRAIGHT for kind in self.partitioning], np.bool_)

    def distribution(self) -> Longs:
        """How each stream distributes tuples, by its partitioning or by default.

        With FORWARD, subtask i sends to subtask i; with RESCALED, to neighbouring subtasks. With
        REBALANCED, all subtasks of the target receive equal parts; with HASHED, they receive the
        parts of its key groups, which are equal if the target has none.
        """
        operators, kind = self.operators, np.array(self.partitioning, "U9")
        p = operators.parallelism
        free = (kind == "") & (operators.max_parallelism[self.target] == 0)
        forward = (p[self.source] == p[self.target]) & (self.straight() | free | (kind == RESCALE))
        ways = [forward, kind == RESCALE, kind == "rebalance"]
        return np.select(ways, [FORWARD, RESCALED, REBALANCED], HASHED)

    def messages(self) -> Longs:
        """Number of the message that each stream carries, equal for those with the same output.

        They inherit the payload of one operator and send equally many tuples.
        """
        message = np.arange(len(self))
        inherits = np.flatnonzero(np.isnan(self.payload))
        if len(inherits):
            shared = distinct_rows(self.source[inherits], self.selectivity[inherits])[1]
            message[inherits] = len(self) + shared
        return message

    def cycle(self, order: Ints) -> list[int]:
        """Operators of a cycle; ``order`` has the operators that depend on none.

        Walk back along the streams between the other operators.
        """
        unordered = np.ones(len(self.operators), bool)
        unordered[order] = False
        inside = unordered[self.source] & unordered[self.target]
        ends = self.target[inside].tolist(), self.source[inside].tolist()
        feeder = dict(zip(*ends, strict=True))
        position: dict[int, int] = {}
        v = next(iter(feeder))
        while v not in position:
            position[v] = len(position)
            v = feeder[v]
        backwards = [u for u, at in position.items() if at >= position[v]]
        return [v, *reversed(backwards)]

    def inputs(self) -> Ints | None:
        """Number of each stream's input, equal for equal names; None if no stream names one."""
        if not any(self.input):
            return None
        number_of: dict[tuple[int, str], int] = {}
        numbers = [
            number_of.setdefault((target, name) if name else (-1, str(e)), len(number_of))
            for e, (target, name) in enumerate(zip(self.target.tolist(), self.input, strict=True))
        ]
        return np.array(numbers, np.int32)

    def _check_chains(self) -> None:
        if CHAINED not in self.partitioning:
            return
        p = self.operators.parallelism
        wrong = self.chained() & (p[self.source] != p[self.target])
        if wrong.any():
            e = int(np.argmax(wrong))
            raise GraphError(
                f"stream {self.label(e)} is chained from {p[self.source[e]]} to "
                f"{p[self.target[e]]} subtasks, which cannot share threads one to one; use equal "
                "parallelisms or 'rebalance'"
            )

    def _owner(self, i: int) -> str:
        return f"stream {self.label(i)}"


def _ends(column: str, raw: ArrayLike, size: int, n_operators: int) -> Ints:
    try:
        return CountRule(0, n_operators - 1).column(raw, size)
    except BrokenRule as error:
        raise GraphError(
            f"streams' column {column} {error.rule}"
            if error.row < 0
            else f"stream number {error.row} has {column} {error}, the row of an operator"
        ) from None


def _unknown_end(
    operators: Operators, sources: Sequence[str], targets: Sequence[str]
) -> GraphError:
    """Name the stream that has an unknown operator."""
    u, v = next(
        (u, v)
        for u, v in zip(sources, targets, strict=True)
        if u not in operators or v not in operators
    )
    name = quoted(v if u in operators else u)
    return GraphError(
        f"stream {shown(str(u))}→{shown(str(v))} names the unknown operator {name}; "
        "add that operator or correct the name"
    )
