"""Cost of tuples between threads of a device: what is assumed of it.

One thread writes the tuples, another reads them. At each end, a tuple costs `PER_BYTE` core seconds
for each of its bytes, and for as many more as `BYTES_OF_A_TUPLE` says. A chain saves both.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from streamplace.engines.flink.measure.sending_cost import BYTES_OF_A_TUPLE
from streamplace.model.arrays import Floats
from streamplace.model.graph import StreamGraph

PER_BYTE = 1.4e-9
"""Core seconds per byte at each end, as measured by benchmarks/calibration.py."""


def with_local_cost(graph: StreamGraph, payloads: Sequence[float], mips: float) -> StreamGraph:
    """Return the graph with the costs as ``ipt`` of streams, deducted from that of operators.

    The sum of both is unchanged for every operator, per tuple and for both ends. Where an
    operator would have less than none, the costs of its streams are reduced.

    ``payloads``: bytes per tuple of every stream.
    """
    sizes = np.array(payloads, np.float64) + BYTES_OF_A_TUPLE
    each = 2 * PER_BYTE * sizes * mips * 1e6
    before = graph.operators.ipt
    parts = _charged(graph, each)
    ratio = np.divide(before, parts, out=np.ones_like(parts), where=parts > before)
    each = each * np.minimum(ratio[graph.streams.source], ratio[graph.streams.target])
    left = np.maximum(before - _charged(graph, each), 0.0)
    return _with_ipt(graph, left, each)


def _charged(graph: StreamGraph, each: Floats) -> Floats:
    """Cost per tuple of the streams of each operator, without its own work."""
    return _with_ipt(graph, np.zeros_like(graph.operators.ipt), each).charged_ipt


def _with_ipt(graph: StreamGraph, work: Floats, each: Floats) -> StreamGraph:
    operators = replace(graph.operators, ipt=work)
    return replace(
        graph, operators=operators, streams=replace(graph.streams, operators=operators, ipt=each)
    )
