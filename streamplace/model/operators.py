"""Operators of a stream graph, stored as columns; an `Operator` is one row."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from numbers import Real
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from streamplace.errors import GraphError
from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.columns import (
    BrokenRule,
    CheckedRow,
    CountRule,
    Counts,
    FieldRule,
    FlagRule,
    NamedColumns,
    NumberRule,
    Numbers,
    TagSets,
    TagsRule,
    TextRule,
    Texts,
    check_name,
    ruled,
)
from streamplace.model.message_text import quoted
from streamplace.model.mixins import call_of
from streamplace.model.units import seconds, size_bytes, tuple_rate

MAX_SUBTASKS = 1_000_000
MAX_KEY_GROUPS = 32_768
MIN_WINDOW = 1e-6
MIN_RATE, MIN_MAX_RATE = 1e-15, 1e-6
"""Smallest rates above 0, in tuples/s, so that quotients of rates are finite."""
EACH, ALL = "each", "all"

Windows = TypeVar("Windows")


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
    limit: float = inf

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
            least = 0 if name in ("base", "factor") else MIN_WINDOW
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
class WindowRule(FieldRule):
    """Windows of some operators: a column is a mapping of their rows to windows."""

    default: None = None

    def value(self, raw: Any) -> Any:
        """Window itself."""
        if not isinstance(raw, Window):
            raise BrokenRule(quoted(raw), "it must be a Window")
        return raw

    def column(self, raw: Mapping[int, Window] | None, size: int) -> dict[int, Window]:
        """Windows by row number."""
        for row in raw or {}:
            if not 0 <= row < size:
                raise GraphError(f"a window is for row {row}, but there are {size} operators")
        return dict(raw or {})

    def gathered(self, values: list[Any]) -> dict[int, Window]:
        """Windows of rows by row number."""
        return {i: window for i, window in enumerate(values) if window}

    def item(self, column: Any, row: int) -> Any:
        """Window of a row, or None."""
        return column.get(row)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class OperatorFields(Generic[Texts, Numbers, Counts, TagSets, Windows]):
    """The fields of an operator, with their rules: values of `Operator`, columns of `Operators`."""

    name: Texts
    ipt: Numbers = ruled(NumberRule())
    payload: Numbers = ruled(NumberRule(parse=size_bytes))
    rate: Numbers = ruled(NumberRule(parse=tuple_rate, smallest=MIN_RATE, zero="no source"))
    parallelism: Counts = ruled(CountRule(1, MAX_SUBTASKS))
    kind: Texts = ruled(TextRule())
    requires: TagSets = ruled(TagsRule())
    memory: Numbers = ruled(NumberRule(parse=size_bytes))
    window: Windows = ruled(WindowRule())
    about: Texts = ruled(TextRule())
    max_parallelism: Counts = ruled(CountRule(0, MAX_KEY_GROUPS))
    slot_sharing_group: Texts = ruled(TextRule())
    constant: Numbers = ruled(NumberRule())
    max_rate: Numbers = ruled(NumberRule(parse=tuple_rate, smallest=MIN_MAX_RATE, zero="no limit"))
    cores: Numbers = ruled(NumberRule(default=1.0, minimum=1.0))


@dataclass(frozen=True, slots=True, repr=False)
class Operator(CheckedRow, OperatorFields[str, float, int, frozenset[str], Window | None]):
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
    cores
        Cores that one subtask uses at most, such as 1.4 if threads that fetch its input work
        beside it; 1, the default, for a single thread. Passes ignore it.
    """

    fires: str = ""
    _called: ClassVar[str] = "an operator"

    def __post_init__(self) -> None:
        check_name(self.name, self._called, self._error)
        self._check()
        fires_all(self.fires or EACH, self.name)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Operators(
    NamedColumns[Operator],
    OperatorFields[tuple[str, ...], Floats, Ints, tuple[frozenset[str], ...], Mapping[int, Window]],
):
    """All operators of a graph, column by column; omitted columns have `Operator`'s defaults.

    Columns may be given as lists or arrays; they are stored as read-only arrays. ``fires_all``
    stands for "all" in ``fires``, and ``window`` maps rows to windows.

    Examples
    --------
    >>> operators = Operators(("src", "sink"), ipt=[10, 20], rate=[100, 0])
    >>> operators["sink"].ipt, operators.index("sink"), operators.rate.tolist()
    (20.0, 1, [100.0, 0.0])
    """

    fires_all: Bools = ruled(FlagRule())
    _position: dict[str, int] = field(init=False, compare=False)
    _row: ClassVar[type[Any]] = Operator
    _whole: ClassVar[str] = "graph"

    @classmethod
    def of(cls, rows: Iterable[Operator], fires: str = EACH) -> "Operators":
        """Columns from single operators; ``fires`` is the rule of those without one."""
        operators = list(rows)
        return cls(
            [row.name for row in operators],
            **cls._gathered(operators),
            fires_all=[fires_all(row.fires or fires, row.name) for row in operators],
        )

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

    def _values(self, i: int) -> dict[str, Any]:
        values = NamedColumns._values(self, i)
        return values | {"fires": ALL if values.pop("fires_all") else ""}

    def _finish(self) -> None:
        above = (self.max_parallelism > 0) & (self.parallelism > self.max_parallelism)
        if above.any():
            i = int(np.argmax(above))
            raise GraphError(
                f"operator {quoted(self.name[i])} has parallelism {self.parallelism[i]} and "
                f"max_parallelism {self.max_parallelism[i]}; lower the one or raise the other"
            )
        for row in self.window:
            if self.fires_all[row]:
                raise GraphError(
                    f"operator {quoted(self.name[row])} has a window and fires 'all'; a window "
                    "receives tuples one by one, so join them in an operator before it"
                )


def fires_all(fires: str, operator: str) -> bool:
    """Whether a firing rule ("each" or "all") is "all"."""
    if fires not in (EACH, ALL):
        raise GraphError(
            f"operator {quoted(operator)} fires {quoted(fires)}; it must be {EACH!r} or {ALL!r}"
        )
    return fires == ALL
