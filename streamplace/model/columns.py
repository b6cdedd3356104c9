"""Checks of operators, streams and devices: read-only columns of them, and single rows."""

from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamplace.errors import GraphError, StreamplaceError, UnitError
from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.messages import quoted
from streamplace.model.units import LARGEST, Quantity

Fail = Callable[[int, str, str], StreamplaceError]
"""Builds the error for row i (-1: the whole column), its value and the rule that it breaks."""
Refused = Callable[[str, str], StreamplaceError]
"""Builds the error for a value and the rule that it breaks."""

_Array = TypeVar("_Array", bound=NDArray[Any])


def float_column(
    values: ArrayLike | None,
    size: int,
    default: float,
    fail: Fail,
    *,
    least: float = 0.0,
    unset: bool = False,
) -> Floats:
    """Numbers in [least, LARGEST] as a read-only float column of the given size.

    ``unset`` lets NaN stand for "not given".
    """
    if values is None:
        return frozen(np.full(size, default))
    try:
        column = np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise fail(-1, "", "must be numbers") from None
    if column.shape != (size,):
        raise fail(-1, "", f"must have {size} values, one each, but comes as {column.shape}")
    good = (column >= least) & (column <= LARGEST)
    if unset:
        good |= np.isnan(column)
    if np.count_nonzero(good) < size:
        bad = int(np.argmin(good))
        rule = f"it must be ≥ {least:g} and at most {LARGEST:g}"
        raise fail(bad, f"{column[bad]:g}", rule)
    return frozen(column)


def plain_number(
    value: object, owner: str, column: str, parse: Callable[[Quantity], float] | None = None
) -> float:
    """Check one row's number against [0, LARGEST]; ``parse`` reads it if it is a text.

    >>> from streamplace.model.units import size_bytes
    >>> plain_number("12.5 kB", "operator 'join'", "payload", size_bytes)
    12500.0
    """
    if parse is not None and isinstance(value, str):
        try:
            return parse(value)
        except UnitError as error:
            raise UnitError(f"{owner}: {error}") from None
    if not isinstance(value, Real):
        raise GraphError(f"{owner} has {column} {quoted(value)}; it must be a number")
    if not 0 <= float(value) <= LARGEST:
        raise GraphError(
            f"{owner} has {column} {float(value):g}; it must be ≥ 0 and at most {LARGEST:g}"
        )
    return value  # type: ignore[return-value]  # whole numbers stay whole


def int_column(
    values: ArrayLike | None, size: int, default: int, fail: Fail, *, least: int, most: int
) -> Ints:
    """Whole numbers in [least, most] as a read-only column of the given size."""
    if values is None:
        return frozen(np.full(size, default, np.int32))
    try:
        numbers = np.asarray(values)
        column = numbers if numbers.dtype.kind in "iu" else numbers.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise fail(-1, "", "must be whole numbers") from None
    if column.shape != (size,):
        raise fail(-1, "", f"must have {size} values, one each, but comes as {column.shape}")
    if least == 0 and column.dtype == np.int32:
        good = column.view(np.uint32) <= most  # negative numbers are large ones
    else:
        good = (column >= least) & (column <= most)
    if column.dtype.kind == "f":
        good &= column == np.floor(column)
    if np.count_nonzero(good) < size:
        bad = int(np.argmin(good))
        rule = f"it must be a whole number from {least} to {most}"
        raise fail(bad, f"{column[bad]:g}", rule)
    return frozen(column.astype(np.int32))


def flag_column(values: ArrayLike | None, size: int, fail: Fail) -> Bools:
    """Booleans as a read-only column of the given size, all False by default."""
    column = np.zeros(size, np.bool_) if values is None else np.array(values)
    if column.dtype != np.bool_ or column.shape != (size,):
        raise fail(-1, "", f"must have {size} truth values, one each")
    return frozen(column)


def name_column(
    names: Iterable[str], what: str, error: type[StreamplaceError]
) -> tuple[tuple[str, ...], dict[str, int]]:
    """Names as a tuple, and the row of each; they must be texts, not empty, and differ."""
    column = tuple(names)
    try:
        "".join(column).encode()
        column = tuple(name if type(name) is str else str.__str__(name) for name in column)
    except TypeError:
        bad = next(name for name in column if not isinstance(name, str))
        raise error(f"{what} is called {quoted(bad)}; a name must be a text") from None
    except UnicodeEncodeError:
        raise error(f"the name of {what} is not valid Unicode; correct the name") from None
    position = dict(zip(column, range(len(column)), strict=True))
    if "" in position:
        raise error(f"{what} has an empty name (number {column.index('')}); give it a name")
    if len(position) < len(column):
        twice = quoted(_first_twice(column))
        raise error(f"the name of {what} is not unique: {twice} occurs twice; rename one")
    return column, position


def frozen(array: _Array) -> _Array:
    """Return the array itself, read-only from here on."""
    array.setflags(write=False)
    return array


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


def text_column(values: Sequence[str] | None, size: int, fail: Fail) -> tuple[str, ...]:
    """Texts as a tuple, empty texts by default."""
    column = ("",) * size if values is None else tuple(values)
    if len(column) != size:
        raise fail(-1, "", f"must have {size} values, one each, but has {len(column)}")
    try:
        "".join(column).encode()
    except (TypeError, UnicodeEncodeError):
        i = next(i for i, text in enumerate(column) if not is_text(text))
        raise fail(i, quoted(column[i]), "it must be a text") from None
    return column


def tag_column(
    values: Sequence[Iterable[str]] | None, size: int, fail: Fail
) -> tuple[frozenset[str], ...]:
    """Sets of tags as a tuple, empty sets by default."""
    if values is None:
        return (frozenset(),) * size
    if len(values) != size:
        raise fail(-1, "", f"must have {size} values, one each, but has {len(values)}")
    if not set(map(type, values)) <= {tuple, list, set, frozenset}:
        for i, tags in enumerate(values):
            if isinstance(tags, str) or not isinstance(tags, Iterable):
                raise fail(i, quoted(tags), "it must be a set of texts")
    none = frozenset[str]()  # one for all, as every empty set takes 200 bytes
    column = tuple(tags_of_row if (tags_of_row := frozenset(tags)) else none for tags in values)
    for i, tags in enumerate(column):
        if bad := [tag for tag in tags if not is_text(tag)]:
            raise fail(i, quoted(bad[0]), "it must be a text")
    return column


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


def check_text(text: object, refused: Refused) -> None:
    """Raise an error unless a value is a text."""
    if not is_text(text):
        raise refused(quoted(text), "it must be a text")


def check_tags(tags: object, refused: Refused) -> None:
    """Raise an error unless a value is a set of texts."""
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise refused(quoted(tags), "it must be a set of texts")
    for tag in tags:
        check_text(tag, refused)


def check_whole(number: object, least: int, most: int, refused: Refused) -> None:
    """Raise an error unless a value is a whole number in [least, most]."""
    if type(number) is int and least <= number <= most:
        return
    rule = f"it must be a whole number from {least} to {most}"
    if not isinstance(number, Real) or isinstance(number, bool):
        raise refused(quoted(number), rule)
    try:
        value = float(number)
    except OverflowError:
        raise refused(quoted(number), rule) from None
    if not least <= value <= most or not value.is_integer():
        raise refused(f"{value:g}", rule)


def plain_item(column: Any, row: int) -> Any:
    """Return a row of a column as a Python value.

    >>> plain_item(np.array([0.5]), 0), plain_item(("a", "b"), 1)
    (0.5, 'b')
    """
    value = column[row]
    return value.item() if isinstance(value, np.generic) else value


def _first_twice(names: Sequence[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    raise AssertionError("all names differ")
