"""Makespans of a batch of placements."""

import threading
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from streamsim.arrays import Floats, Ints
from streamsim.instance import writable
from streamsim.jit import kernel
from streamsim.pass_rules import GIPH, Rules
from streamsim.passes.compiled import Pass
from streamsim.passes.event_loop import run
from streamsim.passes.network import NETWORKS, Transfers, new_transfers
from streamsim.passes.queue import QUEUES, lines
from streamsim.passes.state import Case, State, new_state

KEPT: Final = 300
"""Most operators and devices of a pass whose buffers are kept until the next one."""


def makespans(
    one_pass: Pass,
    placements: ArrayLike,
    rules: Rules = GIPH,
    *,
    priorities: ArrayLike | None = None,
    work_factors: ArrayLike | None = None,
    send_factors: ArrayLike | None = None,
) -> Floats:
    """Makespan in seconds of one pass under each placement, shape [B].

    Parameters
    ----------
    placements
        Device of every operator, shape [B, N].
    priorities
        Priorities for the queues ``priority`` and ``order``, shape [N] or [B, N]; by default those
        of the pass. Under ``order``, a placement with operators that wait forever takes ∞.
    work_factors
        Noise: factors of the work of operators, shape [N] or [B, N].
    send_factors
        Noise: factors of the times of transfers, streams in the caller's order, shape [M] or
        [B, M].

    Examples
    --------
    >>> from streamsim import build_instance
    >>> from streamsim.passes import compile_pass, makespans
    >>> instance = build_instance(rate=[100, 0], seconds=[[1e-3], [5e-3]], source=[0], target=[1],
    ...                           payload=[20_000], device_type=[0, 0],
    ...                           seconds_per_byte=[[0, 1e-6], [1e-6, 0]])
    >>> makespans(compile_pass(instance), [[0, 0], [0, 1]])  # 20 kB take 20 ms
    array([0.006, 0.026])
    """
    batch = writable(placements)
    buffers, net, case = _prepared(one_pass, rules)
    rank = ranks(one_pass, rules, priorities, len(batch))
    inputs = _Inputs(
        batch,
        rank,
        held_lines(one_pass, rules, rank),
        rows("work_factors", work_factors, len(batch), one_pass.n_operators),
        stream_rows(one_pass, send_factors, len(batch)),
    )
    return _all(one_pass, case, inputs, buffers, net)


class _Inputs(NamedTuple):
    """Inputs of B passes; each but the placements may have one row for all passes."""

    placements: Ints  # [B, N]
    priorities: Floats  # [1 or B, N]
    lines: Ints  # [1 or B, N], [1, 0] if no order is held
    work_factors: Floats  # [1 or B, N]
    send_factors: Floats  # [1 or B, M]


class _Latest(threading.local):
    """Buffers of the latest pass of this thread, which the next one of that size uses again."""

    prepared: tuple[Pass, Rules, tuple[State, Transfers | None, Case]] | None = None


_latest = _Latest()


def _prepared(one_pass: Pass, rules: Rules) -> tuple[State, Transfers | None, Case]:
    """Buffers and rules for the kernels; on small passes, making them takes longer than a run.

    A run leaves nothing in them but the number of cores of each device.
    """
    kept = _latest.prepared
    if kept is not None and kept[1] is rules and kept[0] is one_pass:
        return kept[2]
    if kept is not None and kept[1] is rules and _size(kept[0]) == _size(one_pass):
        made = kept[2]
        made[0].devices["free"] = one_pass.devices["cores"]
    else:
        made = *new_buffers(one_pass, rules), new_case(one_pass, rules)
    if max(one_pass.n_operators, one_pass.n_devices) <= KEPT:
        _latest.prepared = one_pass, rules, made
    return made


def _size(one_pass: Pass) -> tuple[int, int, int]:
    return one_pass.n_operators, one_pass.n_streams, one_pass.n_devices


def new_buffers(one_pass: Pass, rules: Rules) -> tuple[State, Transfers | None]:
    """Allocate buffers for `streamsim.passes.event_loop.run`."""
    contended = rules.network != "free"
    return new_state(one_pass, contended), new_transfers(one_pass) if contended else None


def new_case(one_pass: Pass, rules: Rules) -> Case:
    """Encode rules for the kernels, without noise."""
    return Case(
        QUEUES[rules.queue],
        NETWORKS[rules.network],
        float(rules.pause),
        float(rules.spacing),
        _ones(one_pass.n_streams)[0],
        np.zeros(0, np.int32),
    )


def ranks(one_pass: Pass, rules: Rules, priorities: ArrayLike | None, count: int) -> Floats:
    """Ranks for a queue by rank, shape [1 or B, N]; higher goes first."""
    if rules.queue == "depth":
        priorities = one_pass.operators["level"]
    elif rules.queue == "breadth":
        priorities = -one_pass.operators["level"]
    elif priorities is None:
        priorities = one_pass.operators["priority"]
    return rows("priorities", priorities, count, one_pass.n_operators)


def held_lines(one_pass: Pass, rules: Rules, rank: Floats) -> Ints:
    """Lines of devices by rank, shape [1 or B, N]; [1, 0] if no order is held."""
    return lines(one_pass, rank) if rules.queue == "order" else np.zeros((1, 0), np.int32)


def rows(name: str, values: ArrayLike | None, count: int, size: int) -> Floats:
    """One row for all placements, or one for each; ones by default."""
    if values is None:
        return _ones(size)
    table = np.array(values, np.float64, copy=None, order="C", ndmin=2)
    if not table.flags.writeable:
        table = table.copy()
    if table.ndim != 2 or len(table) not in (1, count) or table.shape[1] != size:
        raise ValueError(
            f"{name} have shape {np.shape(values)}; give [{size}] or [{count}, {size}]"
        )
    return table


@lru_cache(maxsize=256)
def _ones(size: int) -> Floats:
    """Factors of 1, shape [1, size]; cached, because kernels only read them."""
    return np.ones((1, size))


def stream_rows(one_pass: Pass, send_factors: ArrayLike | None, count: int) -> Floats:
    """Permute factors of streams from the caller's order to that of the pass."""
    table = rows("send_factors", send_factors, count, one_pass.n_streams)
    return table if send_factors is None else np.ascontiguousarray(table[:, one_pass.stream_index])


@kernel
def _all(
    one_pass: Pass, rules: Case, inputs: _Inputs, buffers: State, net: Transfers | None
) -> Floats:
    out = np.empty(len(inputs.placements))
    for i in range(len(out)):
        send_factor = inputs.send_factors[i % len(inputs.send_factors)]
        line = inputs.lines[i % len(inputs.lines)]
        case = Case(rules.queue, rules.network, rules.pause, rules.spacing, send_factor, line)
        priority = inputs.priorities[i % len(inputs.priorities)]
        work_factor = inputs.work_factors[i % len(inputs.work_factors)]
        out[i] = run(one_pass, case, inputs.placements[i], priority, work_factor, buffers, net)
    return out
