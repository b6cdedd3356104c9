"""Data of one pass: the work of operators and the bytes of streams, with devices and links."""

from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from streamsim import _core
from streamsim.arrays import Floats, Ints, Records, WithCoreCopy


class _PassColumns(NamedTuple):
    operators: Records  # [N] of OPERATOR
    streams: Records  # [M] of STREAM
    devices: Records  # [D] of DEVICE
    links: Records  # [D, D] of LINK
    work: Floats  # [N, C] core seconds on a device of each type
    order: Ints  # [N] operators in topological order
    stream_index: Ints  # [M] position in the caller's order
    gap: float  # link seconds per tuple
    overhead: float  # seconds per tuple, at each end
    overhead_per_byte: float  # seconds per byte, at each end


class Pass(WithCoreCopy, _PassColumns):
    """One pass, as arrays: N operators, M streams, D devices, C types.

    Operators, devices and streams have the order of `Instance`. Streams out of one operator are
    adjacent and keep the caller's order among themselves, on which ties depend.
    """

    @cached_property
    def core(self) -> _core.Pass:
        """The core's copy of the arrays, made and checked at the first use."""
        return _core.Pass(self)

    @property
    def n_operators(self) -> int:
        """Number of operators, N."""
        return len(self.operators)

    @property
    def n_streams(self) -> int:
        """Number of streams, M."""
        return len(self.streams)

    @property
    def n_devices(self) -> int:
        """Number of devices, D."""
        return len(self.devices)


OPERATOR: Final = np.dtype(
    [
        ("priority", np.float64),  # higher goes first
        ("level", np.int32),  # most streams on a path from an operator without inputs
        ("inputs", np.int32),
        ("out_start", np.int32),  # first stream out of it
        ("out_end", np.int32),  # index after the last
    ],
    align=True,
)

STREAM: Final = np.dtype(
    [
        ("size", np.float64),  # bytes
        ("tuples", np.float64),
        ("source", np.int32),  # operator that sends
        ("target", np.int32),  # operator that receives
        ("first", np.int32),  # first stream that carries the same output of its operator
        ("more", np.int32),  # next stream that carries this output, -1 after the last
    ],
    align=True,
)

DEVICE: Final = np.dtype(
    [
        ("egress", np.float64),  # seconds per byte sent, 0 if the card is uncapped
        ("ingress", np.float64),  # seconds per byte received, 0 if the card is uncapped
        ("type", np.int32),  # column of `Pass.work`
        ("cores", np.int32),
    ],
    align=True,
)

LINK: Final = np.dtype(
    [
        ("latency", np.float64),  # seconds
        ("link", np.float64),  # seconds per byte of the link alone
        ("seconds_per_byte", np.float64),  # of the slowest of link and network cards
    ],
    align=True,
)


def records(kind: np.dtype[np.void], **columns: object) -> Records:
    """Build records from columns of equal shape."""
    shape = np.shape(next(iter(columns.values())))  # type: ignore[call-overload]
    table: Records = np.zeros(shape, kind)
    for name, values in columns.items():
        table[name] = values
    return table
