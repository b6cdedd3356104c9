"""How Flink distributes an operator's tuples over its subtasks: by key groups, evenly, or pairwise.

An operator of maximum parallelism M has M key groups. Subtask i of p owns the groups g with
⌊g · p / M⌋ = i (`KeyGroupRangeAssignment` of Flink), so it has ⌊M / p⌋ or ⌈M / p⌉ of them. The
splits of a source are distributed in the same numbers. With M = 0, each subtask has 1/p of the
tuples.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from streamplace.model.arrays import Floats, Ints, Longs
from streamplace.model.streams import FORWARD, HASHED, REBALANCED, RESCALED

if TYPE_CHECKING:
    from streamsim.flow import Flow


def subtask_parts(groups: ArrayLike, parallelism: ArrayLike) -> Floats:
    """Return the divisor of its operator's tuples for each subtask, operator by operator, [S].

    >>> (1 / subtask_parts([8, 0], [3, 2])).round(12).tolist()
    [0.375, 0.375, 0.25, 0.5, 0.5]
    """
    m, p = np.asarray(groups, np.int64), np.asarray(parallelism, np.int64)
    subtask = np.arange(p.sum()) - np.repeat(np.cumsum(p) - p, p)
    m, p = np.repeat(m, p), np.repeat(p, p)
    owned = -(-(subtask + 1) * m // p) - -(-subtask * m // p)
    return np.where(m > 0, m / np.maximum(owned, 1), p)


def busiest_parts(groups: ArrayLike, parallelism: ArrayLike) -> Floats:
    """Return the divisor of each operator's tuples for its busiest subtask, M / ⌈M / p⌉, [N].

    >>> busiest_parts([128, 128, 0], [64, 100, 100]).tolist()
    [64.0, 64.0, 100.0]
    """
    m, p = np.asarray(groups, np.int64), np.asarray(parallelism, np.int64)
    if not m.any():
        return p.astype(np.float64)
    return np.where(m > 0, m / np.maximum(-(-m // p), 1), p)


def joined_subtasks(pair: Longs, senders: Longs, receivers: Longs) -> tuple[Longs, Longs, Longs]:
    """Sender and receiver of each pair of a pointwise stream, and the sender's receivers.

    Each subtask on the side with more subtasks is in one pair
    (`computeVertexInputInfoForPointwise` of Flink).

    >>> [ends.tolist() for ends in joined_subtasks(np.arange(3), np.array(3), np.array(2))]
    [[0, 1, 2], [0, 1, 1], [1, 1, 1]]
    >>> [ends.tolist() for ends in joined_subtasks(np.arange(3), np.array(2), np.array(3))]
    [[0, 0, 1], [0, 1, 2], [2, 2, 1]]
    """
    fewer = senders <= receivers
    sender = np.where(fewer, pair * senders // receivers, pair)
    receiver = np.where(fewer, pair, ((pair + 1) * receivers - 1) // senders)
    last = -(-(sender + 1) * receivers // senders)
    return sender, receiver, np.where(fewer, last - -(-sender * receivers // senders), 1)


def received_shares(
    flow: "Flow", parallelism: Ints, key_shares: Sequence[Floats | None], distribution: Longs
) -> list[Floats | None]:
    """Shares of each operator's tuples that its subtasks receive; None for equal shares, [N].

    Hashed streams and splits distribute tuples by ``key_shares`` [N], the other streams of the flow
    by their ``distribution`` [M].
    """
    shares = list(key_shares)
    for v in flow.order.tolist():
        into = flow.in_streams[flow.in_start[v] : flow.in_start[v + 1]]
        parts = []
        for u, way in zip(flow.source[into].tolist(), distribution[into].tolist(), strict=True):
            arriving = {HASHED: key_shares[v], FORWARD: shares[u], REBALANCED: None}
            if way == RESCALED:
                arriving[RESCALED] = _rescaled(shares[u], int(parallelism[u]), int(parallelism[v]))
            parts.append(arriving[way])
        if all(part is parts[0] for part in parts):
            shares[v] = parts[0] if parts else key_shares[v]
            continue
        even = np.full(parallelism[v], 1 / parallelism[v])
        weights = np.maximum(flow.tuples[into], np.finfo(np.float64).tiny)
        parts = [even if part is None else part for part in parts]
        shares[v] = np.average(parts, axis=0, weights=weights)
    return shares


def _rescaled(shares: Floats | None, senders: int, receivers: int) -> Floats | None:
    """Shares of the receivers of a rescaled stream, from the shares of its senders."""
    if receivers == 1 or (shares is None and receivers % senders == 0):
        return None
    pairs = np.arange(max(senders, receivers))
    sender, receiver, number = joined_subtasks(pairs, np.array(senders), np.array(receivers))
    sent = (np.full(senders, 1 / senders) if shares is None else shares)[sender] / number
    return np.asarray(np.bincount(receiver, sent, receivers), np.float64)


def balanced_parallelism(
    groups: Ints, parallelism: Ints, distribution: Longs, flow: "Flow"
) -> Floats:
    """Number of equal subtasks with the load of the busiest subtask of each operator, [N].

    It is the parallelism if all subtasks get equally many tuples (see `received_shares`), and less
    otherwise.
    """
    busiest = busiest_parts(groups, parallelism)
    if (busiest == parallelism).all() and not (distribution == RESCALED).any():
        return busiest
    key_shares = [
        1 / subtask_parts([m], [p]) if parts < p else None
        for m, p, parts in zip(groups.tolist(), parallelism.tolist(), busiest.tolist(), strict=True)
    ]
    for v, share in enumerate(received_shares(flow, parallelism, key_shares, distribution)):
        if share is not key_shares[v]:
            busiest[v] = parallelism[v] if share is None else 1 / share.max()
    return busiest


def useful_parallelisms(groups: int, limit: int) -> Longs:
    """Return the parallelisms up to ``limit`` that lower the load of the busiest subtask.

    >>> len(useful_parallelisms(128, 128)), len(useful_parallelisms(720, 720))
    (22, 53)
    >>> useful_parallelisms(8, 8).tolist(), useful_parallelisms(0, 3).tolist()
    ([1, 2, 3, 4, 8], [1, 2, 3])
    """
    parallelism = np.arange(1, limit + 1)
    if not groups:
        return parallelism
    busiest = -(-groups // parallelism[:groups])
    return parallelism[:groups][np.diff(busiest, prepend=groups + 1) < 0]
