"""Compilation of the kernels of learned placers; see `streamsim.jit`."""

from streamsim.jit import borrowing_kernel as borrowing_kernel
from streamsim.jit import inlined_kernel as inlined_kernel
from streamsim.jit import kernel as kernel
from streamsim.jit import relaxed_kernel as relaxed_kernel
