"""Log: the state and flows of one run, tick by tick."""

from typing import NamedTuple

import numpy as np

from streamsim.arrays import Floats
from streamsim.engine.plan import Plan
from streamsim.engine.stamps import Stamps
from streamsim.engine.state import EngineState, Totals
from streamsim.engine.wiring import Wiring
from streamsim.instance import Instance
from streamsim.jit import kernel


class Log(NamedTuple):
    """One row per tick; queues and backlogs are those at its end."""

    queued: Floats  # [T, M] tuples
    transit: Floats  # [T, M] tuples waiting for the link or in flight
    backlog: Floats  # [T, S] tuples
    taken: Floats  # [T, N] tuples
    emitted: Floats  # [T, K] tuples released by windows
    busy: Floats  # [T, D] core seconds
    link: Floats  # [T, M] seconds
    delay: Floats  # [T, 2, N] Σ tuples · latency, since generation and since admission


def empty_log(instance: Instance, wiring: Wiring) -> Log:
    """Allocate rows for all ticks."""
    t, n, m, d = wiring.ticks, instance.n_operators, instance.n_streams, instance.n_devices
    return Log(
        queued=np.zeros((t, m)),
        transit=np.zeros((t, m)),
        backlog=np.zeros((t, len(wiring.sources))),
        taken=np.zeros((t, n)),
        emitted=np.zeros((t, len(instance.windows))),
        busy=np.zeros((t, d)),
        link=np.zeros((t, m)),
        delay=np.zeros((t, 2, n)),
    )


@kernel
def write_tick(
    tick: int, plan: Plan, state: EngineState, totals: Totals, stamps: Stamps, log: Log
) -> None:
    """Write the row of one tick; totals are those of this tick alone."""
    m = len(plan.remote)
    log.queued[tick] = state.queued[:m]
    log.transit[tick] = state.sending + state.flying
    log.backlog[tick] = state.queued[m:]
    log.taken[tick] = totals.taken
    log.emitted[tick] = totals.emitted
    for k in range(len(plan.devices)):
        log.busy[tick, plan.devices[k]] = totals.busy[k]
    for e in plan.link_streams:
        log.link[tick, e] = totals.moved[e] * plan.wire[e]
    log.delay[tick] = stamps.delay
