import numpy as np
import pytest
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
