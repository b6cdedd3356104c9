"""Canonical placements: equal devices renumbered by first appearance."""

import numpy as np

from streamsim.arrays import Ints
from streamsim.jit import kernel


@kernel
def canonical(placements: Ints, order: Ints, classes: Ints) -> Ints:
    """Renumber, in each row, the devices of every class by first appearance along ``order``.

    ``classes[d]`` is the class of device d, less than the number of devices; devices of one class
    are interchangeable. The k-th device of a class to appear becomes the class's k-th device.
    """
    result = np.empty_like(placements)
    name = np.empty(len(classes), np.int32)
    cursor = np.empty(len(classes), np.int32)
    for i in range(len(placements)):
        name[:] = -1
        cursor[:] = 0
        for v in order:
            d = placements[i, v]
            c = classes[d]
            if name[d] < 0:
                while classes[cursor[c]] != c:
                    cursor[c] += 1
                name[d] = cursor[c]
                cursor[c] += 1
            result[i, v] = name[d]
    return result
