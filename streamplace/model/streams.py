"""Streams between operators, stored as columns; a `Stream` is one row."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from streamplace.errors import GraphError
from streamplace.model.arrays import Bools, Floats, Ints, Longs
from streamplace.model.columns import (
    check_name,
    check_text,
    distinct_rows,
    float_column,
    int_column,
    plain_number,
    text_column,
)
from streamplace.model.messages import quoted, shown
from streamplace.model.objects import call_of, same_fields
from streamplace.model.operators import Operators
from streamplace.model.units import LARGEST, size_bytes

CHAINED = "chained"
RESCALE = "rescale"
PARTITIONINGS = ("", "forward", "rebalance", RESCALE, "hash", CHAINED)
STRAIGHT = ("forward", CHAINED)
"""Partitionings that join subtask i to subtask i, and so need equal parallelisms."""
HASHED, FORWARD, REBALANCED, RESCALED = range(4)
"""Ways to distribute tuples over subtasks; see `Streams.distribution`."""


@dataclass(frozen=True, slots=True)
class Stream:
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

    source: str
    target: str
    selectivity: float = 1.0
    payload: float | None = None
    partitioning: str = ""
    input: str = ""
    ipt: float = 0.0

    __repr__ = call_of

    def __post_init__(self) -> None:
        for column in ("source", "target"):
            check_name(getattr(self, column), f"the {column} of a stream", GraphError)
        for column, parse in (("selectivity", None), ("payload", size_bytes), ("ipt", None)):
            value = getattr(self, column)
            inherits = value is None and column == "payload"
            if not inherits and (type(value) is not float or not 0.0 <= value <= LARGEST):
                number = plain_number(value, self._label(), column, parse)
                object.__setattr__(self, column, number)
        for column in ("partitioning", "input"):
            check_text(getattr(self, column), partial(self._bad, column))
        if self.partitioning not in PARTITIONINGS:
            rule = f"it must be one of {', '.join(PARTITIONINGS[1:])}"
            raise self._bad("partitioning", quoted(self.partitioning), rule)

    def _label(self) -> str:
        return f"stream {shown(self.source)}→{shown(self.target)}"

    def _bad(self, column: str, value: str, rule: str) -> GraphError:
        return GraphError(f"{self._label()} has {column} {value}; {rule}")


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Streams:
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

    operators: Operators
    source: Ints
    target: Ints
    selectivity: Floats
    payload: Floats
    partitioning: tuple[str, ...]
    input: tuple[str, ...]
    ipt: Floats

    def __init__(
        self,
        operators: Operators,
        source: ArrayLike,
        target: ArrayLike,
        selectivity: ArrayLike | None = None,
        payload: ArrayLike | None = None,
        partitioning: Sequence[str] | None = None,
        input: Sequence[str] | None = None,
        ipt: ArrayLike | None = None,
    ) -> None:
        put = partial(object.__setattr__, self)
        put("operators", operators)
        size = _length(source)
        for column, ends in (("source", source), ("target", target)):
            fail, last = partial(self._bad_end, column), len(operators) - 1
            put(column, int_column(ends, size, 0, fail, least=0, most=last))
        fail = partial(self._bad, "selectivity")
        put("selectivity", float_column(selectivity, size, 1.0, fail))
        fail = partial(self._bad, "payload")
        put("payload", float_column(payload, size, np.nan, fail, unset=True))
        put("partitioning", self._checked_partitioning(partitioning, size))
        put("input", text_column(input, size, partial(self._bad, "input")))
        put("ipt", float_column(ipt, size, 0.0, partial(self._bad, "ipt")))
        self._check_chains()

    @classmethod
    def of(cls, operators: Operators, streams: Iterable[Stream]) -> "Streams":
        """Columns from single streams."""
        rows = list(streams)
        return cls.between(
            operators,
            [row.source for row in rows],
            [row.target for row in rows],
            selectivity=[row.selectivity for row in rows],
            payload=[np.nan if row.payload is None else row.payload for row in rows],
            partitioning=[row.partitioning for row in rows],
            input=[row.input for row in rows],
            ipt=[row.ipt for row in rows],
        )

    @classmethod
    def between(
        cls,
        operators: Operators,
        sources: Sequence[str],
        targets: Sequence[str],
        selectivity: ArrayLike | None = None,
        payload: ArrayLike | None = None,
        partitioning: Sequence[str] | None = None,
        input: Sequence[str] | None = None,
        ipt: ArrayLike | None = None,
    ) -> "Streams":
        """Columns whose ends are operator names instead of rows."""
        try:
            rows = operators.rows(sources), operators.rows(targets)
        except GraphError:
            raise _unknown_end(operators, sources, targets) from None
        return cls(operators, *rows, selectivity, payload, partitioning, input, ipt)

    def __repr__(self) -> str:
        return f"<Streams: {len(self)}>"

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, i: int) -> Stream:
        payload = float(self.payload[i])
        return Stream(
            self.operators.name[self.source[i]],
            self.operators.name[self.target[i]],
            float(self.selectivity[i]),
            None if np.isnan(payload) else payload,
            self.partitioning[i],
            self.input[i],
            float(self.ipt[i]),
        )

    def __iter__(self) -> Iterator[Stream]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return same_fields(self, other)

    def __hash__(self) -> int:
        return hash((self.source.tobytes(), self.target.tobytes()))

    def label(self, i: int) -> str:
        """Display name of a stream, such as ``join→sink``."""
        names = self.operators.name
        return f"{shown(names[self.source[i]])}→{shown(names[self.target[i]])}"

    def bytes_per_tuple(self) -> Floats:
        """Payload of every stream, its own or that of its source."""
        return np.where(np.isnan(self.payload), self.operators.payload[self.source], self.payload)

    def chained(self) -> Bools:
        """Whether the ends of each stream run in one thread."""
        return np.array([kind == CHAINED for kind in self.partitioning], np.bool_)

    def straight(self) -> Bools:
        """Whether each stream is said to join subtask i to subtask i."""
        return np.array([kind in STRAIGHT for kind in self.partitioning], np.bool_)

    def forward(self) -> Bools:
        """Whether each stream joins subtask i to subtask i, by its partitioning or by default."""
        return np.asarray(self.distribution() == FORWARD)

    def distribution(self) -> Longs:
        """How each stream distributes tuples, by its partitioning or by default.

        FORWARD joins subtask i to subtask i, RESCALED neighbours; REBALANCED brings equal parts to
        all subtasks, and HASHED those of the target's key groups, equal ones if it has none.
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
        """Operators of a cycle; ``order`` has those that depend on none.

        It is found by walking back along streams between the others.
        """
        left = np.ones(len(self.operators), bool)
        left[order] = False
        inside = left[self.source] & left[self.target]
        ends = self.target[inside].tolist(), self.source[inside].tolist()
        feeder = dict(zip(*ends, strict=True))
        seen: dict[int, int] = {}
        v = next(iter(feeder))
        while v not in seen:
            seen[v] = len(seen)
            v = feeder[v]
        backwards = [u for u, at in seen.items() if at >= seen[v]]
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

    def _checked_partitioning(self, given: Sequence[str] | None, size: int) -> tuple[str, ...]:
        fail = partial(self._bad, "partitioning")
        texts = text_column(given, size, fail)
        if unknown := set(texts).difference(PARTITIONINGS):
            i = next(i for i, text in enumerate(texts) if text in unknown)
            raise fail(i, quoted(texts[i]), f"it must be one of {', '.join(PARTITIONINGS[1:])}")
        return texts

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

    def _bad(self, column: str, i: int, value: str, rule: str) -> GraphError:
        if i < 0:
            return GraphError(f"streams' column {column} {rule}")
        who = quoted(self.operators.name[self.source[i]])
        return GraphError(f"operator {who} has {column} {value} on stream {self.label(i)}; {rule}")

    def _bad_end(self, column: str, i: int, value: str, rule: str) -> GraphError:
        if i < 0:
            return GraphError(f"streams' column {column} {rule}")
        return GraphError(f"stream number {i} has {column} {value}; {rule}, the row of an operator")


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


def _length(column: ArrayLike) -> int:
    try:
        return len(np.atleast_1d(column))
    except (TypeError, ValueError):
        raise GraphError("stream ends must be a column of row numbers of the operators") from None
