"""How kernels are compiled: cached on disk, and with IEEE division instead of exceptions."""

from numba import njit

kernel = njit(cache=True, error_model="numpy")

#: For kernels that allocate nothing. The arrays they borrow are not reference-counted, which halves
#: the cost of a move in the incremental form (`benchmarks/test_steady.py`).
borrowing_kernel = njit(cache=True, error_model="numpy", _nrt=False)
