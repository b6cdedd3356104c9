"""Operators of a stream graph, stored as columns; an `Operator` is one row."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from streamplace.errors import GraphError
from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.columns import (
    check_name,
    check_tags,
    check_text,
    check_whole,
    flag_column,
    float_column,
    int_column,
    name_column,
    plain_item,
    plain_number,
    tag_column,
    text_column,
)
from streamplace.model.messages import quoted
from streamplace.model.objects import call_of, same_fields
from streamplace.model.units import LARGEST, Quantity, seconds, size_bytes, tuple_rate

MOST_SUBTASKS = 1_000_000
MOST_KEY_GROUPS = 32_768
SHORTEST_WINDOW = 1e-6
LEAST = {"rate": 1e-15, "max_rate": 1e-6}
"""Smallest rates but 0, in tuples/s, by which others are divided."""
EACH, ALL = "each", "all"
_NOTHING: frozenset[str] = frozenset()
_QUANTITIES: dict[str, Callable[[Quantity], float] | None] = {
    "ipt": None,
    "payload": size_bytes,
    "rate": tuple_rate,
    "memory": size_bytes,
    "constant": None,
    "max_rate": tuple_rate,
}
"""Numeric columns, and the parsers of those that may be texts."""
_COUNTS = {"parallelism": (1, MOST_SUBTASKS), "max_parallelism": (0, MOST_KEY_GROUPS)}
"""Columns of whole numbers, with the least and the largest."""
_NONE = {"rate": "no source", "max_rate": "no limit"}


@dataclass(frozen=True, slots=True)
class Window:
    """A window over the last ``size`` seconds, evaluated every ``advance`` seconds.

    Both may be texts, such as ``"5 min"``.

    Each evaluation emits min(limit, base + factor · count) tuples for the ``count`` tuples that the
    window holds, and nothing for an empty window.
    """

    size: float
    advance: float
    base: float = 1.0
    factor: float = 0.0
    limit: float = math.inf

    __repr__ = call_of

    def __post_init__(self) -> None:
        for name in ("size", "advance", "base", "factor", "limit"):
            value = getattr(self, name)
            if isinstance(value, str) and name in ("size", "advance"):
                value = seconds(value)
                object.__setattr__(self, name, value)
            if not isinstance(value, Real):
                raise GraphError(f"window has {name} {quoted(value)}; it must be a number")
        for name in ("size", "advance", "base", "factor"):
            value = getattr(self, name)
            least = 0 if name in ("base", "factor") else SHORTEST_WINDOW
            if not least <= value <= 1e9:
                raise GraphError(f"window has {name} {value}; it must be {least:g} to 1e9")
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
        Bytes per output tuple, or a text such as ``"12.5 kB"``.
    rate
        Tuples/s that a source generates, or a text such as ``"10 k/s"``; 0 for every other
        operator.
    parallelism
        Number of subtasks that share the load.
    kind
        Kind of computation ("filter", "join", …), for people and for learned placers.
    requires
        Tags that a device must have to run it.
    memory
        Bytes it occupies, or a text such as ``"2 GB"``. The operators on a device must fit into the
        memory of the device.
    window
        Set on windowed operators, which emit per window instead of per tuple.
    fires
        "each": once per tuple on any input stream; "all": once per set of one tuple from every
        input, as in a synchronous join, a task or a layer of a network. "" is the rule of the
        graph, "each" by default.
    about
        Description of the operator where its name is not enough; for people.
    max_parallelism
        Number of key groups that its tuples are divided into, or of splits of a source; it limits
        the subtasks. 0, the default, stands for tuples that can be divided freely.
    slot_sharing_group
        Operators of one group may share slots of a machine, as in Flink. "" is the default group.
    constant
        MIPS (million instructions per second) of all subtasks together that it uses at any rate,
        for timers and committers, for example; every subtask uses an equal part.
    max_rate
        Tuples/s that one subtask reads at most, whatever CPU it has (for a source: that it emits),
        because it waits for look-ups, for example; or a text such as ``"66 k/s"``. Sets of tuples
        if it fires "all". 0, the default, stands for no limit. Passes ignore it.
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
    fires: str = ""
    about: str = ""
    max_parallelism: int = 0
    slot_sharing_group: str = ""
    constant: float = 0.0
    max_rate: float = 0.0

    __repr__ = call_of

    def __post_init__(self) -> None:
        check_name(self.name, "an operator", GraphError)
        for column, parse in _QUANTITIES.items():
            value = getattr(self, column)
            if type(value) is not float or not 0.0 <= value <= LARGEST:
                number = plain_number(value, f"operator {quoted(self.name)}", column, parse)
                object.__setattr__(self, column, number)
        for column, slowest in LEAST.items():
            if 0 < (rate := getattr(self, column)) < slowest:
                raise self._bad(column, f"{rate:g}", _at_least(column))
        for column, (least, most) in _COUNTS.items():
            if isinstance(value := getattr(self, column), float):
                rule = f"it must be a whole number from {least} to {most}"
                raise self._bad(column, quoted(value), rule)
            check_whole(value, least, most, partial(self._bad, column))
        for column in ("kind", "about", "slot_sharing_group"):
            check_text(getattr(self, column), partial(self._bad, column))
        if self.requires:
            check_tags(self.requires, partial(self._bad, "requires"))
        if self.window is not None and not isinstance(self.window, Window):
            raise self._bad("window", quoted(self.window), "it must be a Window")
        fires_all(self.fires or EACH, self.name)

    def _bad(self, column: str, value: str, rule: str) -> GraphError:
        return GraphError(f"operator {quoted(self.name)} has {column} {value}; {rule}")


def _at_least(column: str) -> str:
    return f"it must be at least {LEAST[column]:g}, or 0 for {_NONE[column]}"


_SHARED = tuple(f.name for f in fields(Operator) if f.name not in ("window", "fires"))
"""Fields of an `Operator` that are columns of `Operators` as they are."""


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Operators:
    """All operators of a graph, column by column; omitted columns have `Operator`'s defaults.

    Columns may be given as lists or arrays; they are stored as read-only arrays.

    Examples
    --------
    >>> operators = Operators(("src", "sink"), ipt=[10, 20], rate=[100, 0])
    >>> operators["sink"].ipt, operators.index("sink"), operators.rate.tolist()
    (20.0, 1, [100.0, 0.0])
    """

    name: tuple[str, ...]
    ipt: Floats
    payload: Floats
    rate: Floats
    parallelism: Ints
    kind: tuple[str, ...]
    requires: tuple[frozenset[str], ...]
    memory: Floats
    window: Mapping[int, Window]
    fires_all: Bools
    about: tuple[str, ...]
    max_parallelism: Ints
    slot_sharing_group: tuple[str, ...]
    constant: Floats
    max_rate: Floats
    _position: dict[str, int] = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        name: Iterable[str],
        ipt: ArrayLike | None = None,
        payload: ArrayLike | None = None,
        rate: ArrayLike | None = None,
        parallelism: ArrayLike | None = None,
        kind: Sequence[str] | None = None,
        requires: Sequence[Iterable[str]] | None = None,
        memory: ArrayLike | None = None,
        window: Mapping[int, Window] | None = None,
        fires_all: ArrayLike | None = None,
        about: Sequence[str] | None = None,
        max_parallelism: ArrayLike | None = None,
        slot_sharing_group: Sequence[str] | None = None,
        constant: ArrayLike | None = None,
        max_rate: ArrayLike | None = None,
    ) -> None:
        put = partial(object.__setattr__, self)
        names, position = name_column(name, "an operator", GraphError)
        if not names:
            raise GraphError("the graph has no operators; it needs at least one source")
        put("name", names)
        put("_position", position)
        size = len(names)
        numbers = {"ipt": ipt, "payload": payload, "rate": rate, "memory": memory}
        numbers |= {"constant": constant, "max_rate": max_rate}
        for column, values in numbers.items():
            put(column, float_column(values, size, 0.0, partial(self._bad, column)))
        counts = {"parallelism": parallelism, "max_parallelism": max_parallelism}
        for column, (least, most) in _COUNTS.items():
            bad = partial(self._bad, column)
            put(column, int_column(counts[column], size, least, bad, least=least, most=most))
        texts = {"kind": kind, "about": about, "slot_sharing_group": slot_sharing_group}
        for column, words in texts.items():
            put(column, text_column(words, size, partial(self._bad, column)))
        put("requires", tag_column(requires, size, partial(self._bad, "requires")))
        put("window", self._checked_windows(window or {}))
        put("fires_all", flag_column(fires_all, size, partial(self._bad, "fires_all")))
        self._check_parallelism()
        self._check_rates()
        self._check_joins()

    @classmethod
    def of(cls, operators: Iterable[Operator], fires: str = EACH) -> "Operators":
        """Columns from single operators; ``fires`` is the rule of those without one."""
        rows = list(operators)
        columns: dict[str, Any] = {name: [getattr(row, name) for row in rows] for name in _SHARED}
        return cls(
            **columns,
            window={i: row.window for i, row in enumerate(rows) if row.window},
            fires_all=[fires_all(row.fires or fires, row.name) for row in rows],
        )

    def __repr__(self) -> str:
        return f"<Operators: {len(self)}>"

    def __len__(self) -> int:
        return len(self.name)

    def __getitem__(self, key: int | str) -> Operator:
        i = self.index(key) if isinstance(key, str) else range(len(self))[key]
        row = {name: plain_item(getattr(self, name), i) for name in _SHARED}
        return Operator(**row, window=self.window.get(i), fires=ALL if self.fires_all[i] else "")

    def __iter__(self) -> Iterator[Operator]:
        return (self[i] for i in range(len(self)))

    def __contains__(self, name: object) -> bool:
        """Whether an operator has this name."""
        return name in self._position

    def __eq__(self, other: object) -> bool:
        return same_fields(self, other)

    def __hash__(self) -> int:
        return hash(self.name)

    def index(self, name: str) -> int:
        """Row of the operator with this name."""
        try:
            return self._position[name]
        except KeyError:
            raise GraphError(f"there is no operator {quoted(name)}") from None

    @property
    def parallel(self) -> dict[str, int]:
        """Operator → number of subtasks, for those with more than one."""
        rows = (self.parallelism > 1).nonzero()[0].tolist()
        return {self.name[i]: int(self.parallelism[i]) for i in rows}

    @property
    def key_groups(self) -> dict[str, int]:
        """Operator → maximum parallelism, for those that have one."""
        rows = (self.max_parallelism > 0).nonzero()[0].tolist()
        return {self.name[i]: int(self.max_parallelism[i]) for i in rows}

    def largest_rates(self) -> Floats:
        """Tuples/s that one subtask reads at most, infinite without a limit, [N]."""
        return np.where(self.max_rate > 0, self.max_rate, np.inf)

    def window_rows(self) -> Floats:
        """Windows as rows of (operator, size, advance, base, factor, limit)."""
        rows = [
            (v, w.size, w.advance, w.base, w.factor, w.limit)
            for v, w in sorted(self.window.items())
        ]
        return np.array(rows, np.float64).reshape(-1, 6)

    def rows(self, names: Sequence[str]) -> Ints:
        """Rows of the operators with these names."""
        try:
            return np.fromiter(map(self._position.__getitem__, names), np.int32, len(names))
        except KeyError as error:
            raise GraphError(f"there is no operator {quoted(error.args[0])}") from None

    def _checked_windows(self, windows: Mapping[int, Window]) -> Mapping[int, Window]:
        for row in windows:
            if not 0 <= row < len(self):
                raise GraphError(f"a window is for row {row}, but there are {len(self)} operators")
        return dict(windows)

    def _check_parallelism(self) -> None:
        above = (self.max_parallelism > 0) & (self.parallelism > self.max_parallelism)
        if above.any():
            i = int(np.argmax(above))
            raise GraphError(
                f"operator {quoted(self.name[i])} has parallelism {self.parallelism[i]} and "
                f"max_parallelism {self.max_parallelism[i]}; lower the one or raise the other"
            )

    def _check_rates(self) -> None:
        for column, slowest in LEAST.items():
            rates = getattr(self, column)
            low = (rates > 0) & (rates < slowest)
            if low.any():
                i = int(np.argmax(low))
                raise self._bad(column, i, f"{rates[i]:g}", _at_least(column))

    def _check_joins(self) -> None:
        for row in self.window:
            if self.fires_all[row]:
                raise GraphError(
                    f"operator {quoted(self.name[row])} has a window and fires 'all'; a window "
                    "receives tuples one by one, so join them in an operator before it"
                )

    def _bad(self, column: str, i: int, value: str, rule: str) -> GraphError:
        if i < 0:
            return GraphError(f"operators' column {column} {rule}")
        return GraphError(f"operator {quoted(self.name[i])} has {column} {value}; {rule}")


def fires_all(fires: str, operator: str) -> bool:
    """Whether a firing rule ("each" or "all") is "all"."""
    if fires not in (EACH, ALL):
        raise GraphError(
            f"operator {quoted(operator)} fires {quoted(fires)}; it must be {EACH!r} or {ALL!r}"
        )
    return fires == ALL
