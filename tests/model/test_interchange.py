"""Interchangeable devices, found by fingerprints and checked cell by cell."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamplace.model import Device, Devices
from streamplace.model.cluster import interchangeable


def by_definition(matrix: Any) -> Any:
    """Classes by trying every swap."""
    n = len(matrix)
    classes = list(range(n))
    for d in range(n):
        for r in range(d):
            order = np.arange(n)
            order[[r, d]] = d, r
            if np.array_equal(matrix[np.ix_(order, order)], matrix):
                classes[d] = classes[r]
                break
    return np.unique(classes, return_inverse=True)[1].tolist()


@given(
    st.integers(1, 6).flatmap(lambda n: st.lists(st.integers(1, 2), min_size=n * n, max_size=n * n))
)
def test_classes_are_those_of_the_definition(cells: Any) -> None:
    """Swapping rows and columns leaves the matrix as it is."""
    n = int(len(cells) ** 0.5)
    matrix = np.array(cells, float).reshape(n, n)
    np.fill_diagonal(matrix, np.inf)
    devices = Devices([f"d{i}" for i in range(n)])
    assert interchangeable(devices, [matrix]).tolist() == by_definition(matrix)


def test_devices_of_different_tags_are_not_interchangeable() -> None:
    """Even where the network treats them alike."""
    devices = Devices("abc", tags=[("gpu",), (), ("gpu",)])
    assert interchangeable(devices, [np.ones((3, 3))]).tolist() == [0, 1, 0]


def test_devices_that_differ_in_any_field_are_not_interchangeable() -> None:
    """Also in one that is added."""
    plain, other = Device("a"), Device("b", 1500, 4, frozenset({"gpu"}), 2000, 1e9, 2e9, 3)
    for field in fields(Device):
        if field.name != "name":
            assert getattr(other, field.name) != field.default, field.name
            differs = replace(plain, name="b", **{field.name: getattr(other, field.name)})
            devices = Devices.of([plain, differs])
            assert interchangeable(devices, [np.ones((2, 2))]).tolist() == [0, 1], field.name
