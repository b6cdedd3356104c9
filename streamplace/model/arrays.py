"""Array types, one per kind of element."""

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Words = NDArray[np.uint64]
