"""Turns: the outcomes of an operator's turn on the CPU, and wake-ups."""

from streamsim.engine.state import EngineState
from streamsim.jit import inlined_kernel

# Outcomes: DONE, no tuple waits; CAPPED, out of CPU; BLOCKED, a successor or the operator's own
# cores are full. DONE lasts until a tuple arrives, BLOCKED until space becomes free.
DONE, CAPPED, BLOCKED = 0, 1, 2


@inlined_kernel
def wake(v: int, outcome: int, state: EngineState) -> None:
    """Give another turn to an operator whose last turn had this outcome."""
    if state.turn[v] == outcome:
        state.turn[v] = CAPPED
