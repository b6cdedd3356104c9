"""Columns of operators."""

import numpy as np
import pytest

from streamplace.errors import GraphError
from streamplace.model import Operator, Operators, Window


def test_rows_become_columns_and_rows_again():
    rows = [
        Operator("src", 10, 20, 30, kind="source", about="reads the log"),
        Operator("win", 1.5, parallelism=4, requires=frozenset({"gpu"}), window=Window(2, 1)),
    ]
    assert list(Operators.of(rows)) == rows
    assert Operators(["a", "b"])[1] == Operator("b")


@pytest.mark.parametrize("make", [list, np.float32])
def test_columns_are_read_only_copies_of_lists_or_arrays(make):
    given = make([1, 2])
    operators = Operators(["a", "b"], ipt=given, parallelism=make([1, 3]))
    given[0] = 9
    assert operators.ipt.dtype == np.float64
    assert operators.ipt.tolist() == [1, 2]
    assert operators.parallelism.tolist() == [1, 3]
    with pytest.raises(ValueError, match="read-only"):
        operators.ipt[0] = 9


def test_operators_are_found_by_name():
    operators = Operators(["a", "b"], ipt=[1, 2])
    assert operators.index("b") == 1
    assert operators["b"].ipt == 2
    assert "b" in operators
    assert "c" not in operators
    with pytest.raises(GraphError, match="'c'"):
        operators.index("c")


def test_names_from_an_array_are_plain_texts():
    """Exports write them as Python does, and numpy writes its own texts otherwise."""
    (name,) = Operators(np.array(["a"]), ipt=[1]).name
    assert type(name) is str


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"name": ["a", "b", "a"]}, "the name of an operator is not unique: 'a' occurs twice"),
        ({"name": ["a", ""]}, r"an operator has an empty name \(number 1\)"),
        ({"name": ["a", 3]}, "an operator is called 3; a name must be a text"),
        ({"name": ["a", "\ud800"]}, "the name of an operator is not valid Unicode"),
        ({"ipt": [1, -0.5]}, "operator 'b' has ipt -0.5"),
        ({"max_rate": [0, 1e-9]}, "operator 'b' has max_rate"),
        ({"rate": [1e16, 1]}, "operator 'a' has rate 1e.16; .* at most 1e.15"),
        ({"memory": [1, "much"]}, "operators' column memory must be numbers"),
        ({"memory": [1, 10**400]}, "operators' column memory must be numbers"),
        ({"ipt": [1]}, "operators' column ipt must have 2 values"),
        ({"parallelism": [1, 0]}, "operator 'b' has parallelism 0"),
        ({"parallelism": [1, 10**9]}, "operator 'b' has parallelism 1e.09"),
        ({"kind": ["map", "\ud800"]}, r"operator 'b' has kind '\\ud800'"),
        ({"requires": [(), ["gpu", 3]]}, "operator 'b' has requires 3"),
        ({"requires": [(), "gpu"]}, "operator 'b' has requires 'gpu'"),
        ({"window": {2: Window(1, 1)}}, "a window is for row 2"),
    ],
)
def test_a_bad_column_is_refused(columns, message):
    with pytest.raises(GraphError, match=message):
        Operators(**{"name": ["a", "b"], **columns})


def test_operators_without_tags_share_one_empty_set():
    """A set each would take 200 bytes per operator."""
    operators = Operators(["a", "b", "c"], rate=[1, 0, 0], requires=[(), [], {"gpu"}])
    assert operators.requires == (frozenset(), frozenset(), frozenset({"gpu"}))
    assert operators.requires[0] is operators.requires[1]
