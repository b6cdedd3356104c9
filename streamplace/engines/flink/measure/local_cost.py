"""Cost of tuples between threads of a device, from stacks.

One thread writes the tuples, another reads them. The stacks of a task show which parts of its CPU
are spent on reading and writing. The part for writing is divided among its outputs, and the part
for reading among its inputs, in proportion to

    tuples/s · (bytes per tuple + BYTES_OF_A_TUPLE)

of the streams. Tasks with few samples get the mean costs of the others.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from streamplace.engines.flink.cpu.stack_samples import StackCounts
from streamplace.engines.flink.measure.sending_cost import BYTES_OF_A_TUPLE
from streamplace.engines.flink.rest.plan import Edge
from streamplace.model.arrays import Floats
from streamplace.model.graph import StreamGraph

LOCAL_COST = "local cost"
"""Attribute of a graph that says how the ``ipt`` of its streams was measured."""
ASSUMED = "assumed"
"""First word of its text if nothing was measured."""
ASSUMED_PER_BYTE = 1.4e-9
"""Core seconds per byte at each end, as measured by benchmarks/calibration.py."""
MORE_SAMPLES = "profile for longer with --seconds, or while operators take more CPU"
"""Advice if stacks are sampled, but too few."""
LEAST_SAMPLES = 20
"""Minimum number of samples of a task, and of an end of its streams, for using its cost."""


class StreamLoad(NamedTuple):
    """Traffic of a stream: tuples/s, and bytes per tuple."""

    tuples: float
    payload: float

    @property
    def size(self) -> float:
        """Bytes per tuple, including a constant number for the tuple itself."""
        return self.payload + BYTES_OF_A_TUPLE


class LocalCost(NamedTuple):
    """Core seconds per tuple of every stream, for both ends together, and their origin."""

    seconds: tuple[float, ...]
    source: str


class _End(NamedTuple):
    """One end of all streams."""

    tasks: Sequence[str]  # task of each stream at this end
    saved: Mapping[str, int]  # number of samples of each task that a chain would not have


def local_cost(
    edges: Sequence[Edge],
    loads: Sequence[StreamLoad],
    cores: Mapping[str, float],
    stacks: Mapping[str, StackCounts],
    *,
    reuses_objects: bool = False,
    unsampled: str = "",
) -> LocalCost:
    """Estimate the cost of tuples on all streams.

    ``loads``: traffic by the number of a stream.
    ``cores``: core seconds per second of each task.
    ``stacks``: samples of each task; empty if there are none.
    ``reuses_objects``: whether chains pass tuples on without copying them.
    ``unsampled``: instruction that makes stacks available; empty if they are.
    """
    saved = {t: one.saved_by_chains(reuses_objects=reuses_objects) for t, one in stacks.items()}
    sender = _End([edge.source for edge in edges], {t: one[0] for t, one in saved.items()})
    receiver = _End([edge.target for edge in edges], {t: one[1] for t, one in saved.items()})
    seconds, measured = np.zeros(len(edges)), set[str]()
    for end in (sender, receiver):
        spent, per_byte = _spent(end, loads, cores, stacks)
        measured |= spent.keys()
        each = [spent.get(task, per_byte) for task in end.tasks]
        seconds += [unit * load.size for unit, load in zip(each, loads, strict=True)]
    samples = sum(stacks[task].total for task in measured)
    tasks = {*sender.tasks, *receiver.tasks}
    return LocalCost(
        tuple(seconds.tolist()), _source(samples, len(measured), len(tasks), unsampled)
    )


def _spent(
    end: _End,
    loads: Sequence[StreamLoad],
    cores: Mapping[str, float],
    stacks: Mapping[str, StackCounts],
) -> tuple[dict[str, float], float]:
    """Core seconds per byte at one end: of each task with samples, and of all other tasks."""
    traffic: dict[str, float] = defaultdict(float)
    for task, load in zip(end.tasks, loads, strict=True):
        traffic[task] += load.tuples * load.size
    seen = [t for t in traffic if t in stacks and stacks[t].total >= LEAST_SAMPLES and traffic[t]]
    spent = {task: cores[task] * end.saved[task] / stacks[task].total for task in seen}
    clear = [task for task in seen if end.saved[task] >= LEAST_SAMPLES]
    whole = sum(traffic[task] for task in clear)
    per_byte = sum(spent[task] for task in clear) / whole if clear else ASSUMED_PER_BYTE
    return {task: spent[task] / traffic[task] for task in seen}, per_byte


def _source(samples: int, measured: int, tasks: int, unsampled: str) -> str:
    if not measured:
        ends = f"{1e9 * ASSUMED_PER_BYTE:g} ns per byte and "
        ends += f"{1e9 * ASSUMED_PER_BYTE * BYTES_OF_A_TUPLE:.0f} ns per tuple at each end"
        return (
            f"{ASSUMED} to be {ends}, because no or too few stacks of threads were sampled; to "
            f"measure it, {unsampled or MORE_SAMPLES}"
        )
    text = f"measured by {samples:,} samples of the stacks of {measured} operators"
    if measured < tasks:
        text += (
            f"; that of {tasks - measured} operators with few samples is estimated from their bytes"
        )
    return text


class ChainSaving(NamedTuple):
    """Streams that Flink could chain, and the part of the CPU of all operators that this saves."""

    streams: tuple[str, ...]
    share: float


def chain_saving(graph: StreamGraph) -> ChainSaving:
    """Return the savings by chaining forward streams that are the only input of their target.

    >>> from streamplace.model import Operator, Stream
    >>> ends = [Operator("a", ipt=30, rate=1.0), Operator("b", ipt=30)]
    >>> stream = Stream("a", "b", partitioning="forward", ipt=20)
    >>> chain_saving(StreamGraph.of("two", ends, [stream]))
    ChainSaving(streams=('a→b',), share=0.25)
    """
    streams, flow = graph.streams, graph.flow
    inputs = np.bincount(streams.target, minlength=graph.n_operators)
    is_forward = np.array([kind == "forward" for kind in streams.partitioning], np.bool_)
    can = is_forward & (inputs[streams.target] == 1)
    rates = np.zeros(len(streams))
    rates[flow.stream_index] = flow.tuples
    saved = float((rates * streams.ipt)[can].sum())
    whole = float((graph.charged_ipt * graph.input_rate + 1e6 * graph.operators.constant).sum())
    labels = tuple(streams.label(e) for e in np.flatnonzero(can).tolist())
    return ChainSaving(labels, saved / (whole or 1.0))


def with_local_cost(graph: StreamGraph, cost: LocalCost, mips: float) -> StreamGraph:
    """Return the graph with the costs as ``ipt`` of streams, deducted from that of operators.

    The sum of both is unchanged for every operator, per tuple and for both ends. Where an
    operator would have less than none, the costs of its streams are reduced.
    """
    each = np.array(cost.seconds, np.float64) * mips * 1e6
    before = graph.operators.ipt
    parts = _charged(graph, each)
    ratio = np.divide(before, parts, out=np.ones_like(parts), where=parts > before)
    each = each * np.minimum(ratio[graph.streams.source], ratio[graph.streams.target])
    left = np.maximum(before - _charged(graph, each), 0.0)
    attributes = {**graph.attributes, LOCAL_COST: cost.source}
    return replace(_with_ipt(graph, left, each), attributes=attributes)


def _charged(graph: StreamGraph, each: Floats) -> Floats:
    """Cost per tuple of the streams of each operator, without its own work."""
    return _with_ipt(graph, np.zeros_like(graph.operators.ipt), each).charged_ipt


def _with_ipt(graph: StreamGraph, work: Floats, each: Floats) -> StreamGraph:
    operators = replace(graph.operators, ipt=work)
    return replace(
        graph, operators=operators, streams=replace(graph.streams, operators=operators, ipt=each)
    )
