"""Fields of operators, streams and devices: one list of them, and one rule for each.

A noun lists its fields once, in a generic dataclass. Its row inherits them with plain values, its
columns with read-only arrays and tuples, and the rule of a field checks both.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import inf, isnan, nan
from numbers import Real
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamplace.errors import GraphError, SettingError, StreamplaceError, UnitError
from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.message_text import listed, quoted
from streamplace.model.mixins import call_of, same_fields
from streamplace.model.units import MAX_VALUE, Quantity

Refused = Callable[[str, str], StreamplaceError]
"""Builds the error for a value and the rule that it breaks."""
Texts = TypeVar("Texts")
Numbers = TypeVar("Numbers")
Counts = TypeVar("Counts")
TagSets = TypeVar("TagSets")
R = TypeVar("R")
T = TypeVar("T")
_Array = TypeVar("_Array", bound=NDArray[Any])


class BrokenRule(StreamplaceError, ValueError):
    """A value, the rule that it breaks, and its row in a column (-1: the whole column)."""

    def __init__(self, value: str, rule: str, row: int = -1) -> None:
        super().__init__(f"{value}; {rule}")
        self.value, self.rule, self.row = value, rule, row


class FieldRule:
    """Base of rules: which values a field may have, and its default."""

    __slots__ = ()

    @property
    def default(self) -> Any:
        """Value of a row that does not state it."""
        raise NotImplementedError

    def value(self, raw: Any) -> Any:
        """Value of a row; raises BrokenRule."""
        raise NotImplementedError

    def column(self, raw: Any, size: int) -> Any:
        """Column of the given size, all defaults for None; raises BrokenRule."""
        raise NotImplementedError

    def gathered(self, values: list[Any]) -> Any:
        """Values of rows as a column, unchecked."""
        return values

    def item(self, column: Any, row: int) -> Any:
        """Value of a row of a column."""
        value = column[row]
        return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True, slots=True)
class NumberRule(FieldRule):
    """Numbers in [minimum, MAX_VALUE]; ``parse`` reads numbers that rows state as texts.

    A default of infinity stands for no limit, and a default of None, NaN in columns, for a number
    that is not stated. Below ``smallest`` only 0 is allowed, for ``zero``.
    """

    default: float | None = 0.0
    minimum: float = 0.0
    parse: Callable[[Quantity], float] | None = None
    smallest: float = 0.0
    zero: str = ""

    def value(self, raw: Any) -> Any:
        """Number itself, so that whole numbers stay whole."""
        number = self.parse(raw) if self.parse and isinstance(raw, str) else raw
        if type(number) is not float and not isinstance(number, Real):
            raise BrokenRule(quoted(number), "it must be a number")
        try:
            value = float(number)
        except OverflowError:
            raise BrokenRule(quoted(number), self._rule(inf)) from None
        fits = self.minimum <= value <= MAX_VALUE and (value >= self.smallest or value == 0)
        if not fits and not value == self.default == inf:
            raise BrokenRule(f"{value:g}", self._rule(value))
        return number

    def column(self, raw: ArrayLike | None, size: int) -> Floats:
        """Numbers as floats."""
        if raw is None:
            return frozen(np.full(size, nan if self.default is None else self.default))
        try:
            column = np.array(raw, np.float64)
        except (TypeError, ValueError, OverflowError):
            raise BrokenRule("", "must be numbers") from None
        _check_shape(column, size)
        good = (column >= self.minimum) & (column <= MAX_VALUE)
        if self.default is None:
            good |= np.isnan(column)
        if self.default == inf:
            good |= column == inf
        if self.smallest:
            good &= (column >= self.smallest) | (column == 0)
        if np.count_nonzero(good) < size:
            bad = int(np.argmin(good))
            raise BrokenRule(f"{column[bad]:g}", self._rule(column[bad]), bad)
        return frozen(column)

    def item(self, column: Any, row: int) -> float | None:
        """Value of a row, None where it is not stated."""
        number = float(column[row])
        return None if self.default is None and isnan(number) else number

    def _rule(self, number: float) -> str:
        if 0 < number < self.smallest:
            return f"it must be at least {self.smallest:g}, or 0 for {self.zero}"
        return f"it must be ≥ {self.minimum:g} and at most {MAX_VALUE:g}"


@dataclass(frozen=True, slots=True)
class CountRule(FieldRule):
    """Whole numbers in [minimum, maximum]; the minimum is the default."""

    minimum: int
    maximum: int

    @property
    def default(self) -> int:
        """The minimum."""
        return self.minimum

    def value(self, raw: Any) -> Any:
        """Number itself, which must not be a float, not even a whole one."""
        if isinstance(raw, float):
            raise BrokenRule(quoted(raw), self._rule)
        check_whole(raw, self.minimum, self.maximum, BrokenRule)
        return raw

    def column(self, raw: ArrayLike | None, size: int) -> Ints:
        """Numbers as integers."""
        if raw is None:
            return frozen(np.full(size, self.minimum, np.int32))
        try:
            numbers = np.asarray(raw)
            column = numbers if numbers.dtype.kind in "iu" else numbers.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise BrokenRule("", "must be whole numbers") from None
        _check_shape(column, size)
        if self.minimum == 0 and column.dtype == np.int32:
            good = column.view(np.uint32) <= self.maximum  # negative numbers are large ones
        else:
            good = (column >= self.minimum) & (column <= self.maximum)
        if column.dtype.kind == "f":
            good &= column == np.floor(column)
        if np.count_nonzero(good) < size:
            bad = int(np.argmin(good))
            raise BrokenRule(f"{column[bad]:g}", self._rule, bad)
        return frozen(column.astype(np.int32))

    @property
    def _rule(self) -> str:
        return f"it must be a whole number from {self.minimum} to {self.maximum}"


@dataclass(frozen=True, slots=True)
class TextRule(FieldRule):
    """Texts, restricted to the choices if there are any; empty by default."""

    choices: tuple[str, ...] = ()
    default: str = ""

    def value(self, raw: Any) -> str:
        """Text itself."""
        if not is_text(raw):
            raise BrokenRule(quoted(raw), "it must be a text")
        if self.choices and raw not in self.choices:
            rule = f"it must be one of {', '.join(filter(None, self.choices))}"
            raise BrokenRule(quoted(raw), rule)
        text: str = raw
        return text

    def column(self, raw: Sequence[str] | None, size: int) -> tuple[str, ...]:
        """Texts as a tuple."""
        if raw is None:
            return ("",) * size
        column = tuple(raw)
        _check_length(column, size)
        try:
            "".join(column).encode()
            fine = not self.choices or set(column) <= set(self.choices)
        except (TypeError, UnicodeEncodeError):
            fine = False
        if not fine:
            _check_each(column, self.value)
        return column


@dataclass(frozen=True, slots=True)
class TagsRule(FieldRule):
    """Sets of texts, empty by default."""

    default: frozenset[str] = frozenset()

    def value(self, raw: Any) -> Any:
        """Set itself, or another collection of texts."""
        if isinstance(raw, str) or not isinstance(raw, Iterable):
            raise BrokenRule(quoted(raw), "it must be a set of texts")
        for tag in raw:
            if not is_text(tag):
                raise BrokenRule(quoted(tag), "it must be a text")
        return raw

    def column(self, raw: Sequence[Iterable[str]] | None, size: int) -> tuple[frozenset[str], ...]:
        """Sets as a tuple."""
        if raw is None:
            return (self.default,) * size
        _check_length(raw, size)
        if not set(map(type, raw)) <= {tuple, list, set, frozenset}:
            _check_each(raw, self.value)
        # one empty set for all rows, since each takes 200 bytes
        column = tuple(frozenset(tags) or self.default for tags in raw)
        if any(column):
            _check_each(column, self.value)
        return column


@dataclass(frozen=True, slots=True)
class FlagRule(FieldRule):
    """Booleans of a column, all of them False by default."""

    default: bool = False

    def column(self, raw: ArrayLike | None, size: int) -> Bools:
        """Booleans as an array."""
        column = np.zeros(size, np.bool_) if raw is None else np.array(raw)
        if column.dtype != np.bool_ or column.shape != (size,):
            raise BrokenRule("", f"must have {size} truth values, one each")
        return frozen(column)


def ruled(rule: FieldRule) -> Any:
    """Return a field of a dataclass with a rule, and its default."""
    return field(default=rule.default, metadata={"rule": rule})


_RULES: dict[type[Any], tuple[tuple[str, FieldRule], ...]] = {}


def rules_of(noun: type[Any]) -> tuple[tuple[str, FieldRule], ...]:
    """Names of a noun's fields that have rules, and the rules."""
    if noun not in _RULES:
        _RULES[noun] = tuple(
            (column.name, column.metadata["rule"]) for column in fields(noun) if column.metadata
        )
    return _RULES[noun]


def frozen(array: _Array) -> _Array:
    """Return the array itself, read-only from here on."""
    array.setflags(write=False)
    return array


def reduced(item: Any) -> tuple[object, ...]:
    """Return the class and fields of a dataclass for copies, whose arrays are read-only as well."""
    return _restored, (type(item), {f.name: getattr(item, f.name) for f in fields(item)})


def _restored(kind: type[Any], values: Mapping[str, Any]) -> Any:
    item = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(item, name, frozen(value) if isinstance(value, np.ndarray) else value)
    return item


class CheckedRow:
    """Base of single operators, streams and devices."""

    __slots__ = ()
    _error: ClassVar[type[StreamplaceError]] = GraphError
    _called: ClassVar[str]

    __repr__ = call_of

    @property
    def _owner(self: Any) -> str:
        """The row in messages, by its name."""
        return f"{type(self).__name__.lower()} {quoted(self.name)}"

    def _check(self) -> None:
        for name, rule in rules_of(type(self)):
            raw = getattr(self, name)
            if raw is rule.default:
                continue
            try:
                value = rule.value(raw)
            except UnitError as error:
                raise UnitError(f"{self._owner}: {error}") from None
            except BrokenRule as error:
                raise self._error(f"{self._owner} has {name} {error}") from None
            if value is not raw:
                object.__setattr__(self, name, value)


class CheckedColumns(Generic[R]):
    """Base of all rows of a kind, column by column; omitted columns have defaults."""

    __slots__ = ()
    _row: ClassVar[type[Any]]
    _error: ClassVar[type[StreamplaceError]] = GraphError

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[R]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: int) -> R:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)}>"

    __reduce__ = reduced
    __eq__ = same_fields

    def _owner(self, i: int) -> str:
        """Row i in messages."""
        raise NotImplementedError

    def _fill(self, size: int, raw: Mapping[str, Any]) -> None:
        """Check and set the columns that have rules."""
        rules = dict(rules_of(type(self)))
        if unknown := raw.keys() - rules:
            raise TypeError(f"{type(self).__name__} has no column {min(unknown)!r}")
        for name, rule in rules.items():
            try:
                column = rule.column(raw.get(name), size)
            except BrokenRule as error:
                noun = type(self).__name__.lower()
                raise self._error(
                    f"{noun}' column {name} {error.rule}"
                    if error.row < 0
                    else f"{self._owner(error.row)} has {name} {error}"
                ) from None
            object.__setattr__(self, name, column)

    @classmethod
    def _gathered(cls, rows: Sequence[R]) -> dict[str, Any]:
        """Columns of rows, as arguments of the class."""
        return {
            name: rule.gathered([getattr(row, name) for row in rows])
            for name, rule in rules_of(cls._row)
        }

    def _values(self, i: int) -> dict[str, Any]:
        """Fields of row i."""
        rules = rules_of(type(self))
        return {name: rule.item(getattr(self, name), i) for name, rule in rules}


class NamedColumns(CheckedColumns[R]):
    """Base of rows that have names, which differ.

    ``columns`` are lists or arrays, by the names of the fields of a row.
    """

    __slots__ = ()
    _whole: ClassVar[str]

    name: tuple[str, ...]
    _position: dict[str, int]

    def __init__(self, name: Iterable[str], **columns: Any) -> None:
        names, position = name_column(name, self._row._called, self._error)
        if not names:
            raise self._error(f"the {self._whole} has no {self._noun()}s; it needs at least one")
        object.__setattr__(self, "name", names)
        object.__setattr__(self, "_position", position)
        self._fill(len(names), columns)
        self._finish()

    @classmethod
    def of(cls, rows: Iterable[R]) -> Self:
        """Columns from single rows."""
        nouns: list[Any] = list(rows)
        return cls([row.name for row in nouns], **cls._gathered(nouns))

    def __len__(self) -> int:
        return len(self.name)

    def __getitem__(self, key: int | str) -> R:
        i = self.index(key) if isinstance(key, str) else range(len(self))[key]
        row: R = self._row(self.name[i], **self._values(i))
        return row

    def __contains__(self, name: object) -> bool:
        """Whether a row has this name."""
        return name in self._position

    def __hash__(self) -> int:
        return hash(self.name)

    def index(self, name: str) -> int:
        """Row with this name."""
        try:
            return self._position[name]
        except KeyError:
            raise self._error(
                f"there is no {self._noun()} {quoted(name)}; the {self._whole} has "
                f"{listed(self.name)}"
            ) from None

    def _finish(self) -> None:
        """Check what columns have in common, and set what follows from them."""

    def _owner(self, i: int) -> str:
        return f"{self._noun()} {quoted(self.name[i])}"

    @classmethod
    def _noun(cls) -> str:
        return cls._row.__name__.lower()


def checked_rows(
    raw: Iterable[R], kind: type[R], example: str, error: type[StreamplaceError] = GraphError
) -> list[R]:
    """Rows as a list; every row must be of a kind."""
    noun = kind.__name__.lower()
    if isinstance(raw, str) or not isinstance(raw, Iterable):
        raise error(f"{quoted(raw)} is given for the {noun}s; give a list")
    rows = list(raw)
    for row in rows:
        if not isinstance(row, kind):
            raise error(f"{quoted(row)} is no {noun}; write each {noun} as {example}")
    return rows


def checked_kind(value: T, kind: type, error: type[StreamplaceError] = SettingError) -> T:
    """Value itself, which must be of a kind."""
    if not isinstance(value, kind):
        raise error(f"{quoted(value)} is given where a {kind.__name__} is needed")
    return value


def name_column(
    names: Iterable[str], what: str, error: type[StreamplaceError]
) -> tuple[tuple[str, ...], dict[str, int]]:
    """Names as a tuple, and the row of each; names must be distinct texts, not empty."""
    column = tuple(names)
    try:
        "".join(column).encode()
    except (TypeError, UnicodeEncodeError):
        for name in column:
            check_name(name, what, error)
    column = tuple(name if type(name) is str else str.__str__(name) for name in column)
    position = dict(zip(column, range(len(column)), strict=True))
    if "" in position:
        raise error(f"{what} has an empty name (number {column.index('')}); give it a name")
    if len(position) < len(column):
        copy = next(name for i, name in enumerate(column) if position[name] != i)
        raise error(f"the name of {what} is not unique: {quoted(copy)} occurs twice; rename one")
    return column, position


def distinct_rows(*columns: NDArray[Any]) -> tuple[NDArray[np.intp], Ints]:
    """Group equal rows, compared by the columns in turn.

    Returns the index of one row of each kind, and the kind of every row.

    >>> first, kind = distinct_rows(np.array([2.0, 1.0, 2.0]), np.array([1, 1, 1]))
    >>> first.tolist(), kind.tolist()
    ([1, 0], [1, 0, 1])
    """
    order = np.lexsort(columns[::-1])
    begins = np.ones(len(order), np.bool_)
    begins[1:] = False
    for column in columns:
        ordered = column[order]
        begins[1:] |= ordered[1:] != ordered[:-1]
    kind = np.empty(len(order), np.int32)
    kind[order] = np.cumsum(begins) - 1
    return order[begins], kind


def is_text(value: object) -> bool:
    r"""Whether a value is a text that files can hold: Unicode without lone surrogates.

    >>> is_text("größe"), is_text("\ud800"), is_text(3)
    (True, False, False)
    """
    try:
        return isinstance(value, str) and (value.isascii() or bool(value.encode()))
    except UnicodeEncodeError:
        return False


def check_name(name: object, what: str, error: type[StreamplaceError]) -> None:
    """Raise an error unless a name is a text that is not empty."""
    if not isinstance(name, str):
        raise error(f"{what} is called {quoted(name)}; a name must be a text")
    if not name:
        raise error(f"{what} has an empty name; give it a name")
    if not is_text(name):
        raise error(f"the name of {what} is not valid Unicode; correct the name")


def check_whole(number: object, minimum: int, maximum: int, refused: Refused) -> None:
    """Raise an error unless a value is a whole number in [minimum, maximum]."""
    if type(number) is int and minimum <= number <= maximum:
        return
    rule = f"it must be a whole number from {minimum} to {maximum}"
    if not isinstance(number, Real) or isinstance(number, bool):
        raise refused(quoted(number), rule)
    try:
        value = float(number)
    except OverflowError:
        raise refused(quoted(number), rule) from None
    if not minimum <= value <= maximum or not value.is_integer():
        raise refused(f"{value:g}", rule)


def _check_shape(column: NDArray[Any], size: int) -> None:
    if column.shape != (size,):
        raise BrokenRule("", f"must have {size} values, one each, but has the shape {column.shape}")


def _check_length(column: Sequence[Any], size: int) -> None:
    if len(column) != size:
        raise BrokenRule("", f"must have {size} values, one each, but has {len(column)}")


def _check_each(column: Iterable[Any], check: Callable[[Any], object]) -> None:
    """Check each value of a column."""
    for i, value in enumerate(column):
        try:
            check(value)
        except BrokenRule as error:
            raise BrokenRule(error.value, error.rule, i) from None
