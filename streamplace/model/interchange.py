"""Interchangeable devices: pairs that can be swapped without changing the cluster.

Swappability is transitive ((a c) = (a b)(b c)(a b)), so a device is compared with one
representative of each class. Fingerprints that swaps do not change tell most devices apart, so
that few pairs are compared cell by cell.
"""

from collections.abc import Hashable, Sequence

import numpy as np

from streamplace.model.arrays import Floats, Ints, Words
from streamplace.model.devices import NUMERIC_COLUMNS, Devices

BLOCK = 256


def interchangeable(devices: Devices, matrices: Sequence[Floats]) -> Ints:
    """Class of every device, numbered by first device.

    Examples
    --------
    >>> devices = Devices(("a", "b", "c"), mips=[1000, 2000, 1000])
    >>> interchangeable(devices, [np.ones((3, 3))]).tolist()
    [0, 1, 0]
    """
    prints = [_fingerprints(matrix) for matrix in matrices]
    representatives: dict[Hashable, list[tuple[int, int]]] = {}
    classes = np.empty(len(devices), np.int32)
    n_classes = 0
    for d, facts in enumerate(_facts(devices)):
        alike = representatives.setdefault((facts, *(p[d] for p in prints)), [])
        for r, of_r in alike:
            if all(_symmetric(matrix, r, d) for matrix in matrices):
                classes[d] = of_r
                break
        else:
            alike.append((d, n_classes))
            classes[d] = n_classes
            n_classes += 1
    return classes


def _facts(devices: Devices) -> Sequence[Hashable]:
    columns = [getattr(devices, name).tolist() for name in NUMERIC_COLUMNS]
    return list(zip(*columns, devices.tags, strict=True))


def _fingerprints(matrix: Floats) -> list[tuple[int, int]]:
    """Sum of hashed cells of every row and of every column: the same for swappable devices."""
    rows = np.empty(len(matrix), np.uint64)
    columns = np.zeros(len(matrix), np.uint64)
    for start in range(0, len(matrix), BLOCK):
        block = slice(start, start + BLOCK)
        bits = _mixed(np.ascontiguousarray(matrix[block]).view(np.uint64))
        rows[block] = bits.sum(axis=1)
        columns += bits.sum(axis=0)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def _mixed(bits: Words) -> Words:
    """Scramble the bits of numbers (splitmix64), so that equal sums mean equal cells."""
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _symmetric(matrix: Floats, a: int, b: int) -> bool:
    """Whether swapping rows a and b and columns a and b leaves the matrix as it is."""
    rows = matrix[a] == matrix[b]
    columns = matrix[:, a] == matrix[:, b]
    rows[[a, b]] = columns[[a, b]] = True
    return bool(matrix[a, b] == matrix[b, a] and rows.all() and columns.all())
