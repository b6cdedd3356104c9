"""ENAS's recurrent cells for Penn Treebank, which `ptb` and `enas_ptb` unroll.

A cell is a chain of nodes. The first takes in a word and the state of the step before; every other
one transforms what an earlier node makes. What no node reads is averaged into the new state.
"""

import numpy as np

READS_LAST = 0.6
"""Share of nodes that read the node just before them; others any earlier one."""
ACTIVATIONS = ("tanh", "relu", "sigmoid", "identity")
Cell = list[tuple[int, str]]
"""For every node: the earlier one that it reads (-1 for the first), and its activation."""


def draw_cell(nodes: int, rng: np.random.Generator) -> Cell:
    """Draw a cell.

    >>> [before for before, _ in draw_cell(5, np.random.default_rng(0))]
    [-1, 0, 1, 2, 2]
    """
    return [(_read(rng, i), ACTIVATIONS[int(rng.integers(len(ACTIVATIONS)))]) for i in range(nodes)]


def ends_of(cell: Cell) -> list[int]:
    """Nodes that no other one reads."""
    read = {before for before, _ in cell}
    return [i for i in range(len(cell)) if i not in read]


def depth_of(cell: Cell) -> int:
    """Nodes on the longest way through a cell.

    >>> depth_of([(-1, "tanh"), (0, "relu"), (0, "tanh"), (2, "relu")])
    3
    """
    depth: list[int] = []
    for before, _ in cell:
        depth.append(1 + (depth[before] if before >= 0 else 0))
    return max(depth)


def _read(rng: np.random.Generator, node: int) -> int:
    last = rng.random() < READS_LAST
    return node - 1 if last or node == 0 else int(rng.integers(node))
