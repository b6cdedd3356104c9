"""Streams: who feeds whom, stored as columns; a `Stream` is one row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from streamplace.errors import GraphError
from streamplace.model.columns import Floats, Ints, float_column, frozen, same_fields, text_column
from streamplace.model.operators import Operators

PARTITIONINGS = ("", "forward", "rebalance", "hash")


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream between two operators.

    Attributes
    ----------
    selectivity
        Tuples on this stream per output tuple of the source, 1 by default.
    payload
        Bytes per tuple where they differ from the source's payload; None inherits it.
    partitioning
        How tuples reach the subtasks of the target: "forward" (one to one), "rebalance" or "hash"
        (evenly to all). "" means forward between equal parallelisms and rebalance otherwise.
    """

    source: str
    target: str
    selectivity: float = 1.0
    payload: float | None = None
    partitioning: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Streams(Sequence[Stream]):
    """All streams of a graph, column by column; endpoints are rows of its operators.

    ``payload`` is NaN where a stream inherits the payload of its source.
    """

    operators: Operators
    source: Ints
    target: Ints
    selectivity: Floats = None  # type: ignore[assignment]
    payload: Floats = None  # type: ignore[assignment]
    partitioning: tuple[str, ...] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        put = object.__setattr__
        for end in ("source", "target"):
            put(self, end, self._checked_ends(getattr(self, end)))
        size = len(self.source)
        if len(self.target) != size:
            raise GraphError(f"there are {size} stream sources but {len(self.target)} targets")
        for column, default in (("selectivity", 1.0), ("payload", np.nan)):
            values = getattr(self, column)
            unset = column == "payload"
            checked = float_column(
                values, size, default, lambda i, why, c=column: self._bad(i, c, why), unset=unset
            )
            put(self, column, checked)
        put(self, "partitioning", self._checked_partitioning(size))

    @classmethod
    def of(cls, operators: Operators, streams: Sequence[Stream]) -> "Streams":
        """Columns from single streams."""
        return cls(
            operators,
            _rows(operators, streams, [s.source for s in streams]),
            _rows(operators, streams, [s.target for s in streams]),
            selectivity=[s.selectivity for s in streams],  # type: ignore[arg-type]
            payload=[np.nan if s.payload is None else s.payload for s in streams],  # type: ignore[arg-type]
            partitioning=tuple(s.partitioning for s in streams),
        )

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, i: int) -> Stream:  # type: ignore[override]
        payload = float(self.payload[i])
        return Stream(
            self.operators.name[self.source[i]],
            self.operators.name[self.target[i]],
            float(self.selectivity[i]),
            None if np.isnan(payload) else payload,
            self.partitioning[i],
        )

    def __iter__(self) -> Iterator[Stream]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return same_fields(self, other)

    def __hash__(self) -> int:
        return hash((self.source.tobytes(), self.target.tobytes()))

    def label(self, i: int) -> str:
        """Name of a stream for people, such as ``join→sink``."""
        names = self.operators.name
        return f"{names[self.source[i]]}→{names[self.target[i]]}"

    def bytes_per_tuple(self) -> Floats:
        """Payload of every stream, its own or that of its source."""
        return np.where(np.isnan(self.payload), self.operators.payload[self.source], self.payload)

    def _checked_ends(self, rows: Ints) -> Ints:
        ends = np.array(rows, np.int32)
        if ends.ndim != 1 or ((ends < 0) | (ends >= len(self.operators))).any():
            raise GraphError("stream ends must be a column of row numbers of the operators")
        return frozen(ends)

    def _checked_partitioning(self, size: int) -> tuple[str, ...]:
        texts = text_column(self.partitioning, size)
        for i, text in enumerate(texts):
            if text not in PARTITIONINGS:
                known = ", ".join(PARTITIONINGS[1:])
                raise self._bad(i, "partitioning", f"{text!r}; it must be one of {known}")
        return texts

    def _bad(self, i: int, column: str, why: str) -> GraphError:
        if i < 0:
            return GraphError(f"streams' column {column} {why}")
        value, rest = why.split(";", 1)
        who = self.operators.name[self.source[i]]
        return GraphError(f"operator {who!r} has {column} {value} on stream {self.label(i)};{rest}")


def _rows(operators: Operators, streams: Sequence[Stream], ends: Sequence[str]) -> Ints:
    for stream, name in zip(streams, ends, strict=True):
        if name not in operators:
            raise GraphError(
                f"stream {stream.source}→{stream.target} names the unknown operator {name!r}; "
                "add that operator or correct the name"
            )
    return np.fromiter((operators.index(name) for name in ends), np.int32, len(ends))
