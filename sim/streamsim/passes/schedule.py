"""Schedule of one pass under one placement: the times of all events, and the critical chain.

The critical chain consists of consecutive intervals that add up to the makespan.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from streamsim import _core
from streamsim.arrays import Floats, Ints
from streamsim.equation import link_loads
from streamsim.instance import as_ints
from streamsim.pass_rules import GIPH, Rules
from streamsim.passes.batches import ranks, rows, stream_rows
from streamsim.passes.compiled import Pass
from streamsim.passes.queue import lines


class Part(IntEnum):
    """Kind of an interval in the critical chain."""

    RUNNING = 1
    CORE = 2  # waiting for a core
    NETWORK = 3  # waiting for the network
    SENDING = 4
    TRAILING = 5  # the pause of a core or spacing of a channel at the end of the pass


class Chain(NamedTuple):
    """K consecutive parts without gaps, from 0 to the makespan.

    Part k lasts from ``times[k]`` to ``times[k + 1]``, so that the parts add up to the makespan
    exactly.
    """

    parts: tuple[Part, ...]  # K
    operator: Ints  # [K] operator that runs, waits for a core, or sends
    stream: Ints  # [K] stream that is sent or waits for the network, in the caller's order, or -1
    times: Floats  # [K + 1]

    @property
    def seconds(self) -> Floats:
        """Duration of each part, shape [K]."""
        return np.diff(self.times)


class Schedule(NamedTuple):
    """Times of all events in seconds, with streams in the caller's order."""

    makespan: float
    ready: Floats  # [N] arrival of the last input of an operator
    start: Floats  # [N]
    finish: Floats  # [N]
    departure: Floats  # [M] begin of the transfer of a stream
    arrival: Floats  # [M]
    device_busy: Floats  # [D] core seconds spent running
    chain: Chain


def schedule(
    one_pass: Pass,
    placement: ArrayLike,
    rules: Rules = GIPH,
    *,
    priorities: ArrayLike | None = None,
    work_factors: ArrayLike | None = None,
    send_factors: ArrayLike | None = None,
) -> Schedule:
    """Simulate one pass under one placement (shape [N]); other parameters as for `makespans`.

    Examples
    --------
    >>> from streamsim import build_instance
    >>> from streamsim.passes import compile_pass, schedule
    >>> instance = build_instance(rate=[100, 0], seconds=[[1e-3], [5e-3]], source=[0], target=[1],
    ...                           payload=[20_000], device_type=[0, 0],
    ...                           seconds_per_byte=[[0, 1e-6], [1e-6, 0]])
    >>> result = schedule(compile_pass(instance), [0, 1])
    >>> result.start.tolist(), result.finish.round(6).tolist()
    ([0.0, 0.021], [0.001, 0.026])
    >>> [part.name for part in result.chain.parts], result.chain.seconds.round(6).tolist()
    (['RUNNING', 'SENDING', 'RUNNING'], [0.001, 0.02, 0.005])
    """
    place = as_ints(placement)
    factor = stream_rows(one_pass, send_factors, 1)[0]
    rank = ranks(one_pass, rules, priorities, 1)
    work_factor = rows("work_factors", work_factors, 1, one_pass.n_operators)[0]
    makespan, operators, streams = _core.pass_times(
        one_pass.core, place, rules, rank[0], work_factor, factor
    )
    if makespan == np.inf:
        raise ValueError("the order of a device contradicts the streams; correct the priorities")
    times = _Times(*operators.T, *streams.T)
    journeys = np.empty_like(streams)
    journeys[one_pass.stream_index] = streams
    line = lines(one_pass, rank)[0] if rules.queue == "order" else np.zeros(0, np.int32)
    busy = np.bincount(place, times.finish - times.start, one_pass.n_devices)
    trace = _Trace(one_pass, times, place, line)
    return Schedule(
        makespan=makespan,
        ready=times.ready.copy(),
        start=times.start.copy(),
        finish=times.finish.copy(),
        departure=journeys[:, 0].copy(),
        arrival=journeys[:, 1].copy(),
        device_busy=busy.astype(np.float64),
        chain=trace.critical_chain(
            _channel_seconds(one_pass, place, factor), rules.pause, makespan
        ),
    )


class _Times(NamedTuple):
    """Times of all events, with streams in the order of the pass."""

    ready: Floats  # [N]
    start: Floats  # [N]
    finish: Floats  # [N]
    work: Floats  # [N] seconds of running
    departure: Floats  # [M]
    arrival: Floats  # [M]


def _channel_seconds(one_pass: Pass, place: Ints, factor: Floats) -> Floats:
    """Seconds for which each stream occupies the network, shape [M]."""
    streams = one_pass.streams
    a, b = place[streams["source"]], place[streams["target"]]
    wire = one_pass.links["seconds_per_byte"][a, b]
    seconds = link_loads(streams["size"], streams["tuples"], wire, one_pass.gap) * factor
    return np.where(a == b, 0.0, seconds)


class _Trace:
    """The chain so far, from its end.

    With a ``line``, an operator that waited for its turn waited for the operators before it.
    """

    def __init__(self, one_pass: Pass, times: _Times, place: Ints, line: Ints) -> None:
        self.one_pass, self.times, self.place, self.line = one_pass, times, place, line
        self.parts: list[tuple[Part, int, int, float]] = []
        order = np.argsort(one_pass.streams["target"], kind="stable")
        self.in_streams = order
        self.in_start = np.searchsorted(
            one_pass.streams["target"][order], np.arange(one_pass.n_operators + 1)
        )

    def critical_chain(self, held: Floats, pause: float, makespan: float) -> Chain:
        """Trace back the causes of the end of a pass; ``held`` is the channel time of streams."""
        times = self.times
        rested = times.finish + np.where(times.work > 0, pause, 0.0)
        v = int(np.argmax(rested))
        if rested[v] >= makespan:
            self.add(Part.TRAILING, v, -1, float(times.finish[v]), makespan)
        else:
            through = times.departure + held
            e = int(np.argmax(through))
            v = int(self.one_pass.streams["source"][e])
            self.add(Part.TRAILING, v, e, float(through[e]), makespan)
            self.back_to_producer(e, float(through[e]))
        while v >= 0:
            v = self.back_through(v)
        return self.chain(makespan)

    def add(self, part: Part, v: int, e: int, begin: float, end: float) -> None:
        """Prepend a part, unless it takes no time."""
        if end > begin:
            self.parts.append((part, v, e, begin))

    def back_through(self, v: int) -> int:
        """Trace from the finish of an operator to that of the producer it waited for, or -1.

        In a line, an operator also waits for the operators before it and for their inputs.
        """
        times = self.times
        ready, start = float(times.ready[v]), float(times.start[v])
        self.add(Part.RUNNING, v, -1, start, float(times.finish[v]))
        before = self.before_in_line(v) if len(self.line) and start > ready else []
        for u in before:
            if times.finish[u] == start:
                return u
        for u in before:
            if times.ready[u] == start:  # a core was idle until the inputs of u came
                v, ready = u, start
                break
        self.add(Part.CORE, v, -1, ready, start)
        streams = self.in_streams[self.in_start[v] : self.in_start[v + 1]]
        last = streams[times.arrival[streams] == ready]
        if len(last) == 0:
            return -1
        return self.back_to_producer(int(last[0]), ready)

    def before_in_line(self, v: int) -> list[int]:
        """Operators before v in the line of its device, the nearest first."""
        line = self.line[self.place[self.line] == self.place[v]]
        before: list[int] = line[: int(np.flatnonzero(line == v)[0])][::-1].tolist()
        return before

    def back_to_producer(self, e: int, end: float) -> int:
        """Trace from the end of a transfer to the finish of its sender."""
        u = int(self.one_pass.streams["source"][e])
        departure = float(self.times.departure[e])
        self.add(Part.SENDING, u, e, departure, end)
        self.add(Part.NETWORK, u, e, float(self.times.finish[u]), departure)
        return u

    def chain(self, makespan: float) -> Chain:
        """The parts from first to last."""
        parts = self.parts[::-1]
        index = self.one_pass.stream_index
        return Chain(
            parts=tuple(part for part, *_ in parts),
            operator=np.array([v for _, v, _, _ in parts], np.int32),
            stream=np.array([index[e] if e >= 0 else -1 for _, _, e, _ in parts], np.int32),
            times=np.array([begin for *_, begin in parts] + [makespan]),
        )
