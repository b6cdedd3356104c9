"""Scheduling policies: how a device spends one slice on its operators."""

from streamsim.engine.operators import process
from streamsim.engine.plan import Plan
from streamsim.engine.stamps import Stamps
from streamsim.engine.state import EngineState, Totals
from streamsim.engine.turns import BLOCKED, CAPPED
from streamsim.engine.windows import process_window
from streamsim.engine.wiring import Wiring
from streamsim.instance import Instance
from streamsim.jit import inlined_kernel


@inlined_kernel
def spend(
    k: int,
    slice_index: int,
    instance: Instance,
    wiring: Wiring,
    plan: Plan,
    state: EngineState,
    totals: Totals,
    stamps: Stamps | None,
) -> None:
    """Spend the budget of the k-th device in rounds of turns.

    In the first round every operator may use its share. Fixed shares end there. The dynamic policy
    divides the rest equally among the operators that ran out of CPU, round after round, until the
    budget is used up or nothing moves. Operators that cannot do anything are skipped.
    """
    left = plan.budget[k]
    tolerance = 1e-12 * left
    share = -1.0
    progress = 0.0
    for i in range(plan.turn_start[k], plan.turn_start[k + 1]):
        state.turn[plan.turns[i]] = CAPPED
    while True:
        left, moved, capped, blocked = take_turns(
            k, share, left, slice_index, instance, wiring, plan, state, totals, stamps
        )
        progress += moved
        stuck = capped + blocked == 0 or moved <= 1e-9 * progress
        if stuck or left <= tolerance or wiring.policy != 0:
            break
        share = left / max(capped, 1)
    totals.busy[k] += plan.budget[k] - left + plan.constant[k]


@inlined_kernel
def take_turns(
    k: int,
    share: float,
    left: float,
    slice_index: int,
    instance: Instance,
    wiring: Wiring,
    plan: Plan,
    state: EngineState,
    totals: Totals,
    stamps: Stamps | None,
) -> tuple[float, float, int, int]:
    """Give the operators of a device a turn of at most ``share``, or of their own share if < 0.

    Returns the remaining budget, the tuples moved, and the numbers of operators that ran out of CPU
    and that were blocked.
    """
    moved, capped, blocked = 0.0, 0, 0
    for i in range(plan.turn_start[k], plan.turn_start[k + 1]):
        v = plan.turns[i]
        if state.turn[v] != CAPPED:
            continue
        limit = max(min(plan.share[v] if share < 0.0 else share, left), 0.0)
        if wiring.window_of[v] < 0:
            tuples, seconds, outcome = process(
                v, limit, slice_index, instance, wiring, plan, state, totals, stamps
            )
        else:
            tuples, seconds, outcome = process_window(
                v, limit, slice_index, instance, wiring, plan, state, totals, stamps
            )
        state.turn[v] = outcome
        left -= seconds
        moved += tuples
        capped += outcome == CAPPED
        blocked += outcome == BLOCKED
    return left, moved, capped, blocked
