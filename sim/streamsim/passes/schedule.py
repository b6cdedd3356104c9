"""Schedule of one pass under one placement: the times of all events."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from streamsim.arrays import Floats, Ints
from streamsim.equation import link_loads
from streamsim.instance import writable
from streamsim.pass_rules import GIPH, Rules
from streamsim.passes.chain import Chain, critical_chain
from streamsim.passes.compiled import Pass
from streamsim.passes.makespans import held_lines, new_buffers, new_case, ranks, rows, stream_rows
from streamsim.passes.run import run


class Schedule(NamedTuple):
    """Times of all events in seconds, with streams in the caller's order."""

    makespan: float
    ready: Floats  # [N] arrival of the last input of an operator
    start: Floats  # [N]
    finish: Floats  # [N]
    departure: Floats  # [M] begin of the transfer of a stream
    arrival: Floats  # [M]
    device_busy: Floats  # [D] core seconds spent running
    link_busy: Floats  # [D, D] seconds of transfers, each as if it were alone on the link
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
    >>> seen = schedule(compile_pass(instance), [0, 1])
    >>> seen.start.tolist(), seen.finish.round(6).tolist()
    ([0.0, 0.021], [0.001, 0.026])
    >>> [part.name for part in seen.chain.parts], seen.chain.seconds.round(6).tolist()
    (['RUNNING', 'SENDING', 'RUNNING'], [0.001, 0.02, 0.005])
    """
    place = writable(placement)
    factor = stream_rows(one_pass, send_factors, 1)[0]
    rank = ranks(one_pass, rules, priorities, 1)
    line = held_lines(one_pass, rules, rank)[0]
    case = new_case(one_pass, rules)._replace(send_factor=factor, line=line)
    state, net = new_buffers(one_pass, rules)
    work_factor = rows("work_factors", work_factors, 1, one_pass.n_operators)[0]
    makespan = run(one_pass, case, place, rank[0], work_factor, state, net)
    if makespan == np.inf:
        raise ValueError("the order of a device contradicts the streams; correct the priorities")
    operators, held = state.operators, _held(one_pass, place, factor)
    journeys = np.empty_like(state.streams)
    journeys[one_pass.stream_index] = state.streams
    busy = np.bincount(place, operators["finish"] - operators["start"], one_pass.n_devices)
    return Schedule(
        makespan=float(makespan),
        ready=operators["ready"].copy(),
        start=operators["start"].copy(),
        finish=operators["finish"].copy(),
        departure=journeys["departure"].copy(),
        arrival=journeys["arrival"].copy(),
        device_busy=busy.astype(np.float64),
        link_busy=_link_busy(one_pass, place, held, rules),
        chain=critical_chain(one_pass, state, held, line, rules.pause, float(makespan)),
    )


def _held(one_pass: Pass, place: Ints, factor: Floats) -> Floats:
    """Seconds for which each stream occupies the network, shape [M]."""
    streams = one_pass.streams
    a, b = place[streams["source"]], place[streams["target"]]
    wire = one_pass.links["seconds_per_byte"][a, b]
    held = link_loads(streams["size"], streams["tuples"], wire, one_pass.gap) * factor
    return np.where(a == b, 0.0, held)


def _link_busy(one_pass: Pass, place: Ints, held: Floats, rules: Rules) -> Floats:
    """Seconds of transfers on every link; an output sent once to a device counts once."""
    d, streams = one_pass.n_devices, one_pass.streams
    a, b = place[streams["source"]].astype(np.int64), place[streams["target"]]
    output = np.arange(len(a)) if rules.network == "free" else streams["first"]
    _, transfer = np.unique(output.astype(np.int64) * d + b, return_inverse=True)
    longest, link = np.zeros(len(a)), np.zeros(len(a), np.int64)
    np.maximum.at(longest, transfer.ravel(), held)
    link[transfer.ravel()] = a * d + b
    return np.bincount(link, longest, d * d).astype(np.float64).reshape(d, d)
