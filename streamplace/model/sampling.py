"""Random placements."""

import numpy as np

from streamplace.model.arrays import Ints
from streamplace.model.problem import Problem


def random_placements(problem: Problem, size: int, rng: np.random.Generator) -> Ints:
    """Legal placements [size, N]: uniform over k random devices, k uniform."""
    n, d = problem.n_operators, problem.n_devices
    most = rng.integers(1, d, size=(size, 1), endpoint=True)
    drawn = np.floor(rng.random((size, n)) * most).astype(np.int32)
    shuffled = rng.permuted(np.tile(np.arange(d, dtype=np.int32), (size, 1)), axis=1)
    return problem.repaired(np.take_along_axis(shuffled, drawn, axis=1))
