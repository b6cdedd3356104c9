"""Array types, one per kind of element, and the relative difference that rounding may make."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = dict[str, Array]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Words = NDArray[np.uint64]
ROUNDING: Final = 1e-9
"""Share up to which two values count as equal: far above rounding, far below what matters."""
TIE: Final = 1e-12
"""Share by which sums of the same terms in another order may differ."""
