"""Array types, one for each kind of element."""

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Indices = NDArray[np.uint32]  # unsigned, so that no access checks for a negative index
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Records = NDArray[np.void]


class WithCoreCopy:
    """Columns that cache the core's copy of them; pickles leave the copy out."""

    def __getstate__(self) -> None:
        """Nothing beside the columns."""
