import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamsim.canonical import canonical
from streamsim_strategies import Ints


def ints(*values: int) -> Ints:
    return np.array(values, np.int32)


@pytest.mark.parametrize(
    ("rows", "order", "classes", "expected"),
    [
        ([[2, 2, 0, 1], [1, 0, 1, 2]], [0, 1, 2, 3], [0, 0, 0], [[0, 0, 1, 2], [0, 1, 0, 2]]),
        ([[2, 1, 1]], [2, 0, 1], [0, 0, 0], [[1, 0, 0]]),
        ([[3, 2, 1, 0]], [0, 1, 2, 3], [0, 1, 0, 1], [[1, 0, 3, 2]]),
    ],
)
def test_devices_of_a_class_are_numbered_by_first_appearance_along_the_order(
    rows: list[list[int]], order: list[int], classes: list[int], expected: list[list[int]]
) -> None:
    assert canonical(np.array(rows, np.int32), ints(*order), ints(*classes)).tolist() == expected


@given(st.lists(st.integers(0, 2), min_size=3, max_size=6), st.data())
def test_swapping_equal_devices_gives_the_same_canonical_placement(
    classes: list[int], data: st.DataObject
) -> None:
    d = len(classes)
    row = ints(*data.draw(st.lists(st.integers(0, d - 1), min_size=1, max_size=10)))
    order = np.arange(len(row), dtype=np.int32)
    rename = np.arange(d, dtype=np.int32)
    for kind in set(classes):
        members = [i for i, c in enumerate(classes) if c == kind]
        rename[members] = data.draw(st.permutations(members))
    found = canonical(row[None], order, ints(*classes))
    assert (canonical(rename[row][None], order, ints(*classes)) == found).all()
    assert (canonical(found, order, ints(*classes)) == found).all()
    assert [classes[a] for a in found[0]] == [classes[a] for a in row]
