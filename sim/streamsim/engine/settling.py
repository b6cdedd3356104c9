"""Settling: whether the input of every operator agrees with the admitted tuples."""

import numpy as np

from streamsim.arrays import Floats, Ints
from streamsim.instance import Instance
from streamsim.jit import kernel

#: Share of its full rate by which the input of an operator may be off in a settled run.
SETTLED = 0.01


@kernel
def drifts(
    instance: Instance, sources: Ints, admitted: Floats, taken: Floats, emitted: Floats
) -> Floats:
    """Imbalance of each operator's input, as a share of its full rate, ``[B, N]``.

    ``admitted`` [B, S], ``taken`` [B, N] and ``emitted`` [B, K] are tuples/s of B runs. While
    queues, send buffers, links or panes still fill, operators downstream take in less than follows
    from the admitted tuples. For a window that is not linear, the emitted tuples are used instead,
    since its output for changing counts differs from its output for their mean.

    Examples
    --------
    The source admits 100 tuples/s, of which 60 arrive; the other 40 stay in the queue:

    >>> from streamsim.instance import build_instance
    >>> instance = build_instance(rate=[100, 0], seconds=[[0], [0]], source=[0], target=[1],
    ...                           device_type=[0], seconds_per_byte=[[0]])
    >>> drifts(instance, instance.sources, np.array([[100.0]]), np.array([[100.0, 60.0]]),
    ...        np.zeros((1, 0))).tolist()
    [[0.0, 0.4]]
    """
    row = np.full(len(instance.rate), -1, np.int32)
    for k in range(len(instance.windows)):
        row[int(instance.windows[k, 0])] = k
    drift = np.zeros(taken.shape)
    for b in range(len(taken)):
        _drift(instance, sources, row, admitted[b], taken[b], emitted[b], drift[b])
    return drift


@kernel
def _drift(
    instance: Instance,
    sources: Ints,
    row: Ints,
    admitted: Floats,
    taken: Floats,
    emitted: Floats,
    drift: Floats,
) -> None:
    """Drifts of one run."""
    arriving = np.zeros(instance.port_start[len(instance.rate)])
    for s in range(len(sources)):
        v = sources[s]
        arriving[instance.port_start[v] : instance.port_start[v + 1]] = admitted[s]
    for v in instance.order:
        comes = arriving[instance.port_start[v] : instance.port_start[v + 1]].max()
        if instance.input_rate[v] > 0.0:
            drift[v] = abs(comes - taken[v]) / instance.input_rate[v]
        leaves = comes
        if row[v] >= 0:
            window = instance.windows[row[v]]
            leaves = comes * window[4] * window[1] / window[2]
            if window[3] > 0.0 or window[5] < np.inf:
                leaves = emitted[row[v]]
        for e in range(instance.out_start[v], instance.out_end[v]):
            arriving[instance.port[e]] += instance.selectivity[e] * leaves
