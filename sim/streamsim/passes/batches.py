"""Makespans and times of a batch of placements."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from streamsim import _core
from streamsim.arrays import Floats, Ints
from streamsim.instance import as_ints
from streamsim.pass_rules import GIPH, Rules
from streamsim.passes.compiled import Pass


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
    batch = as_ints(placements)
    return _core.makespans(
        one_pass.core,
        batch,
        rules,
        ranks(one_pass, rules, priorities, len(batch)),
        rows("work_factors", work_factors, len(batch), one_pass.n_operators),
        stream_rows(one_pass, send_factors, len(batch)),
    )


class OperatorTimes(NamedTuple):
    """Times of the operators under each placement of a batch, in seconds."""

    start: Floats  # [B, N]
    finish: Floats  # [B, N]
    # [B, N] operator that sends the last input, in a tie the one with the highest index; -1
    # without inputs
    producer: Ints


def operator_times(one_pass: Pass, placements: ArrayLike, rules: Rules = GIPH) -> OperatorTimes:
    """Simulate one pass under each placement (shape [B, N]).

    Examples
    --------
    >>> from streamsim import build_instance
    >>> from streamsim.passes import compile_pass, operator_times
    >>> instance = build_instance(rate=[100, 0], seconds=[[1e-3], [5e-3]], source=[0], target=[1],
    ...                           payload=[20_000], device_type=[0, 0],
    ...                           seconds_per_byte=[[0, 1e-6], [1e-6, 0]])
    >>> times = operator_times(compile_pass(instance), [[0, 0], [0, 1]])
    >>> times.start.tolist(), times.producer.tolist()
    ([[0.0, 0.001], [0.0, 0.021]], [[-1, 0], [-1, 0]])
    """
    rank = ranks(one_pass, rules, None, 1)[0]
    return OperatorTimes(*_core.operator_times(one_pass.core, as_ints(placements), rules, rank))


def ranks(one_pass: Pass, rules: Rules, priorities: ArrayLike | None, count: int) -> Floats:
    """Ranks of operators in a queue, shape [1 or B, N]; the highest goes first."""
    if rules.queue == "depth":
        priorities = one_pass.operators["level"]
    elif rules.queue == "breadth":
        priorities = -one_pass.operators["level"]
    elif priorities is None:
        priorities = one_pass.operators["priority"]
    return rows("priorities", priorities, count, one_pass.n_operators)


def rows(name: str, values: ArrayLike | None, count: int, size: int) -> Floats:
    """One row for all placements, or one for each; ones by default."""
    if values is None:
        return _ones(size)
    table = np.atleast_2d(np.asarray(values, np.float64))
    if table.ndim != 2 or len(table) not in (1, count) or table.shape[1] != size:
        raise ValueError(
            f"{name} have shape {np.shape(values)}; give [{size}] or [{count}, {size}]"
        )
    return table


@lru_cache(maxsize=256)
def _ones(size: int) -> Floats:
    """Factors of 1, shape [1, size]; cached, because they are only read."""
    return np.ones((1, size))


def stream_rows(one_pass: Pass, send_factors: ArrayLike | None, count: int) -> Floats:
    """Permute factors of streams from the caller's order to that of the pass."""
    table = rows("send_factors", send_factors, count, one_pass.n_streams)
    return table if send_factors is None else table[:, one_pass.stream_index]
