"""Compiling an instance to one pass: work, bytes and ranks of σ seconds' worth of tuples."""

import numpy as np
from numpy.typing import ArrayLike

from streamsim import _core
from streamsim.arrays import Floats, Ints, Longs, Records
from streamsim.instance import Instance
from streamsim.pass_costs import pass_seconds
from streamsim.passes.compiled import DEVICE, LINK, OPERATOR, STREAM, Pass, records
from streamsim.platform import Platform


def compile_pass(
    instance: Instance, *, streams: Records | None = None, links: Records | None = None
) -> Pass:
    """Compile the work and bytes of σ seconds' worth of tuples.

    w(v, c) = σ · λ(v) · s(v, c) core seconds, and σ · traffic(e) bytes on stream e, where σ is the
    time of one tuple of the fastest source. Priorities are the upward rank (`upward_rank`).

    Parameters
    ----------
    streams
        Existing `stream_records`; by default every stream carries an output of its own.
    links
        Existing `link_records`; by default made from the instance.

    Examples
    --------
    Each tuple takes 1 ms in the source and 5 ms in the operator that it feeds:

    >>> from streamsim import build_instance
    >>> instance = build_instance(rate=[100, 0], seconds=[[1e-3], [5e-3]], source=[0], target=[1],
    ...                           payload=[20_000], device_type=[0, 0],
    ...                           seconds_per_byte=[[0, 1e-6], [1e-6, 0]])
    >>> one_pass = compile_pass(instance)
    >>> one_pass.work.ravel().tolist(), one_pass.streams["size"].tolist()
    ([0.001, 0.005], [20000.0])
    """
    span = pass_seconds(instance)
    compiled = Pass(
        operators=_operators(instance),
        streams=stream_records(instance) if streams is None else streams,
        devices=_devices(instance),
        links=link_records(instance.platform) if links is None else links,
        work=np.ascontiguousarray((span * instance.input_rate)[:, None] * instance.seconds),
        order=instance.order,
        stream_index=instance.stream_index,
        gap=instance.gap,
        overhead=instance.overhead,
        overhead_per_byte=instance.overhead_per_byte,
    )
    compiled.operators["priority"] = upward_rank(compiled)
    return compiled


def _operators(instance: Instance) -> Records:
    return records(
        OPERATOR,
        level=_core.levels(instance.n_operators, instance.source, instance.target),
        inputs=instance.in_start[1:] - instance.in_start[:-1],
        out_start=instance.out_start,
        out_end=instance.out_end,
    )


def _devices(instance: Instance) -> Records:
    return records(
        DEVICE,
        egress=instance.egress,
        ingress=instance.ingress,
        type=instance.device_type,
        cores=np.maximum(instance.cores, 1),
    )


def stream_records(instance: Instance, *, message: ArrayLike | None = None) -> Records:
    """Streams of a pass, which do not depend on the platform.

    Streams of one operator with the same number from 0 to 2 M − 1 in ``message`` (shape [M], in the
    caller's order) carry one output, which some networks send once. By default every stream carries
    an output of its own.
    """
    span = pass_seconds(instance)
    size, tuples = span * instance.traffic, span * instance.tuples
    carried: dict[str, ArrayLike] = {"first": np.arange(instance.n_streams), "more": -1}
    if message is not None:
        outputs = _shared_outputs(instance, _by_source(instance, message), size, tuples)
        carried = dict(zip(carried, outputs, strict=True))
    return records(
        STREAM,
        size=size,
        tuples=tuples,
        source=instance.source,
        target=instance.target,
        **carried,
    )


def link_records(platform: Platform) -> Records:
    """Links of a pass, which depend on the platform alone."""
    wire = platform.wire
    np.fill_diagonal(wire, 0.0)
    return records(
        LINK,
        latency=platform.latency,
        link=platform.seconds_per_byte,
        seconds_per_byte=wire,
    )


def _by_source(instance: Instance, message: ArrayLike) -> Longs:
    """Number of the output that each stream carries, in the instance's order of streams."""
    numbers = np.asarray(message, np.int64)
    if numbers.shape != (instance.n_streams,):
        raise ValueError(f"message has shape {numbers.shape}; give one number per stream")
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < 2 * len(numbers):
        raise ValueError(f"message numbers must be from 0 to {2 * len(numbers) - 1}; renumber them")
    return numbers[instance.stream_index]


def _shared_outputs(
    instance: Instance, message: Longs, size: Floats, tuples: Floats
) -> tuple[Ints, Ints]:
    """Chain the streams that carry one output: ``first`` and ``more`` of `STREAM`."""
    opening, stream = np.empty(2 * len(message), np.int32), np.arange(len(message))
    opening[message[::-1]] = stream[::-1]  # the first stream of an output is written last
    first, more = opening[message], np.full(len(message), -1, np.int32)
    along = np.argsort(message, kind="stable")
    follows = first[along[1:]] == first[along[:-1]]
    more[along[:-1][follows]] = along[1:][follows]
    differs = (instance.source[first] != instance.source) | (size[first] != size)
    differs |= tuples[first] != tuples
    if differs.any():
        e = int(differs.argmax())
        pair = sorted([int(instance.stream_index[first[e]]), int(instance.stream_index[e])])
        raise ValueError(
            f"streams {pair[0]} and {pair[1]} share a message but differ in operator, bytes or"
            " tuples; give them numbers of their own"
        )
    return first, more


def upward_rank(one_pass: Pass) -> Floats:
    """Upward rank of HEFT (Topcuoglu et al., 2002, eq. 8), shape [N], in seconds.

    rank(v) = w̄(v) + max over streams (v, u) of (c̄(v, u) + rank(u)), where w̄ is the mean over
    devices and c̄ the mean over ordered pairs of different devices.
    """
    d, links = one_pass.n_devices, one_pass.links
    share = np.bincount(one_pass.devices["type"], minlength=one_pass.work.shape[1]) / d
    pairs = max(1, d * (d - 1))
    latency, wire = links["latency"].sum() / pairs, links["seconds_per_byte"].sum() / pairs
    work = one_pass.work @ share
    return _core.longest_to_end(one_pass, work, float(latency), float(wire))
