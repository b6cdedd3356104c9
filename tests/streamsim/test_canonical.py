import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamsim import throughput
from streamsim.canonical import canonical
from streamsim_strategies import Description, Ints, placed


def ints(*values: int) -> Ints:
    return np.array(values, np.int32)


def test_equal_devices_are_numbered_by_first_appearance() -> None:
    rows = np.array([[2, 2, 0, 1], [1, 0, 1, 2]], np.int32)
    found = canonical(rows, ints(0, 1, 2, 3), ints(0, 0, 0))
    assert found.tolist() == [[0, 0, 1, 2], [0, 1, 0, 2]]


def test_first_appearance_is_along_the_given_order() -> None:
    assert canonical(ints(2, 1, 1)[None], ints(2, 0, 1), ints(0, 0, 0)).tolist() == [[1, 0, 0]]


def test_devices_of_different_classes_are_never_exchanged() -> None:
    classes = ints(0, 1, 0, 1)
    found = canonical(ints(3, 2, 1, 0)[None], ints(0, 1, 2, 3), classes)
    assert found.tolist() == [[1, 0, 3, 2]]


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


@given(placed(alike=True, plain=True))
def test_the_canonical_placement_is_as_good(case: tuple[Description, Ints]) -> None:
    problem, batch = case
    instance = problem.instance
    found = canonical(batch, instance.order, np.zeros(problem.n_devices, np.int32))
    assert throughput(instance, found) == pytest.approx(throughput(instance, batch), rel=1e-9)
