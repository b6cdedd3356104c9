"""Operators: what a stream graph computes, stored as columns; an `Operator` is one row."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from streamplace.errors import GraphError
from streamplace.model.columns import Floats, Ints, float_column, frozen, same_fields, text_column

MOST_SUBTASKS = 1_000_000
_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Window:
    """A window over the last ``size`` seconds, evaluated every ``advance`` seconds.

    Each evaluation emits min(limit, base + factor · count) tuples for the ``count`` tuples that the
    window holds, and nothing for an empty window.
    """

    size: float
    advance: float
    base: float = 1.0
    factor: float = 0.0
    limit: float = math.inf

    def __post_init__(self) -> None:
        for name in ("size", "advance", "base", "factor"):
            value = getattr(self, name)
            least = 0 if name in ("base", "factor") else math.ulp(0)
            if not least <= value <= 1e9:
                raise GraphError(f"window has {name} {value}; it must be between 0 and 1e9")
        slots = self.size / self.advance
        if not 1 <= slots <= 100_000 or abs(slots - round(slots)) > 1e-9 * slots:
            raise GraphError(
                f"window has size {self.size} and advance {self.advance}; "
                "the size must be 1 to 100000 whole advances"
            )
        if not self.limit > 0:
            raise GraphError(f"window has limit {self.limit}; it must be > 0")


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator.

    Attributes
    ----------
    ipt
        Instructions per input tuple (for a source: per generated tuple).
    payload
        Bytes per output tuple.
    rate
        Tuples/s that a source generates; 0 for every other operator.
    parallelism
        Number of subtasks that share the load.
    kind
        What it does ("filter", "join", …), for people and for learned placers.
    requires
        Tags that a device must have to run it.
    memory
        Bytes it occupies. Carried for makespan problems; no constraint on throughput placements.
    window
        Set on windowed operators, which emit per window instead of per tuple.
    """

    name: str
    ipt: float = 0.0
    payload: float = 0.0
    rate: float = 0.0
    parallelism: int = 1
    kind: str = ""
    requires: frozenset[str] = _NOTHING
    memory: float = 0.0
    window: Window | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Operators(Sequence[Operator]):
    """All operators of a graph, column by column; columns left out take `Operator`'s defaults.

    Examples
    --------
    >>> operators = Operators(("src", "sink"), ipt=[10, 20], rate=[100, 0])
    >>> operators["sink"].ipt, operators.index("sink"), operators.rate.tolist()
    (20.0, 1, [100.0, 0.0])
    """

    name: tuple[str, ...]
    ipt: Floats = None  # type: ignore[assignment]
    payload: Floats = None  # type: ignore[assignment]
    rate: Floats = None  # type: ignore[assignment]
    parallelism: Ints = None  # type: ignore[assignment]
    kind: tuple[str, ...] = None  # type: ignore[assignment]
    requires: tuple[frozenset[str], ...] = None  # type: ignore[assignment]
    memory: Floats = None  # type: ignore[assignment]
    window: Mapping[int, Window] = field(default_factory=dict)
    _position: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "name", tuple(self.name))
        put(self, "_position", self._positions())
        size = len(self.name)
        for column in ("ipt", "payload", "rate", "memory"):
            values = getattr(self, column)
            checked = float_column(values, size, 0.0, lambda i, why, c=column: self._bad(i, c, why))
            put(self, column, checked)
        put(self, "parallelism", self._checked_parallelism(size))
        put(self, "kind", text_column(self.kind, size))
        requires = self.requires
        put(self, "requires", (_NOTHING,) * size if requires is None else tuple(requires))

    @classmethod
    def of(cls, operators: Iterable[Operator]) -> "Operators":
        """Columns from single operators."""
        rows = list(operators)
        return cls(
            tuple(row.name for row in rows),
            ipt=[row.ipt for row in rows],  # type: ignore[arg-type]
            payload=[row.payload for row in rows],  # type: ignore[arg-type]
            rate=[row.rate for row in rows],  # type: ignore[arg-type]
            parallelism=[row.parallelism for row in rows],  # type: ignore[arg-type]
            kind=tuple(row.kind for row in rows),
            requires=tuple(frozenset(row.requires) for row in rows),
            memory=[row.memory for row in rows],  # type: ignore[arg-type]
            window={i: row.window for i, row in enumerate(rows) if row.window},
        )

    def __len__(self) -> int:
        return len(self.name)

    def __getitem__(self, key: int | str) -> Operator:  # type: ignore[override]
        i = self.index(key) if isinstance(key, str) else range(len(self))[key]
        return Operator(
            self.name[i],
            float(self.ipt[i]),
            float(self.payload[i]),
            float(self.rate[i]),
            int(self.parallelism[i]),
            self.kind[i],
            self.requires[i],
            float(self.memory[i]),
            self.window.get(i),
        )

    def __iter__(self) -> Iterator[Operator]:
        return (self[i] for i in range(len(self)))

    def __contains__(self, name: object) -> bool:
        return name in self._position

    def __eq__(self, other: object) -> bool:
        return same_fields(self, other)

    def __hash__(self) -> int:
        return hash(self.name)

    def index(self, name: str) -> int:  # type: ignore[override]
        """Row of the operator with this name."""
        try:
            return self._position[name]
        except KeyError:
            raise GraphError(f"there is no operator {name!r}") from None

    def _positions(self) -> dict[str, int]:
        if not self.name:
            raise GraphError("the graph has no operators; it needs at least one source")
        position = dict(zip(self.name, range(len(self.name)), strict=True))
        for name in self.name if "" in position else ():
            if not name:
                raise GraphError("an operator has an empty name; give every operator a name")
        if len(position) < len(self.name):
            raise GraphError(f"two operators are called {_twice(self.name)!r}; names must differ")
        return position

    def _checked_parallelism(self, size: int) -> Ints:
        given = self.parallelism
        numbers = float_column(given, size, 1.0, lambda i, why: self._bad(i, "parallelism", why))
        whole = (numbers >= 1) & (numbers <= MOST_SUBTASKS) & (numbers == np.floor(numbers))
        if not whole.all():
            bad = int(np.argmin(whole))
            why = f"{numbers[bad]:g}; it must be a whole number from 1 to {MOST_SUBTASKS}"
            raise self._bad(bad, "parallelism", why)
        return frozen(numbers.astype(np.int32))

    def _bad(self, i: int, column: str, why: str) -> GraphError:
        who = f"operator {self.name[i]!r} has" if i >= 0 else "operators' column"
        return GraphError(f"{who} {column} {why}")


def _twice(names: Sequence[str]) -> str:
    seen: set[str] = set()
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
