"""Turns: how an operator's turn on the CPU ends, and what gives it another."""

from streamsim.engine.state import EngineState
from streamsim.jit import inlined_kernel

# How a turn ends: nothing waits; CPU ran out; a successor is full, or the operator's own cores are.
# A blocked operator rests until room appears, one that is done until a tuple arrives.
DONE, CAPPED, BLOCKED = 0, 1, 2


@inlined_kernel
def wake(v: int, outcome: int, state: EngineState) -> None:
    """Give another turn to an operator whose last one ended so."""
    if state.turn[v] == outcome:
        state.turn[v] = CAPPED
