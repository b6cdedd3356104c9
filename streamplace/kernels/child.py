"""A process that carries out the rehearsals whose names it reads, and tells of every kernel."""

import logging
import os
import signal
import sys
from typing import Any, Final

DONE: Final = "done"
"""What is printed after a rehearsal; before, there is an empty line for every kernel."""


def main() -> None:
    """Carry out the rehearsals of stdin, one per line, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    logging.disable()
    from numba.core import event
    from streamsim.jit import compile_at_once

    from streamplace.kernels.rehearsals import REHEARSALS

    class Counter(event.Listener):
        """Tells of every kernel that was compiled."""

        def on_start(self, event: Any) -> None:
            """Wait for the end."""

        def on_end(self, event: Any) -> None:
            """Tell of it."""
            _tell("")

    event.register("numba:compile", Counter())  # type: ignore[no-untyped-call]
    compile_at_once()
    for line in sys.stdin:
        REHEARSALS[line.strip()].call()
        _tell(DONE)


def _tell(word: str) -> None:
    try:
        print(word, flush=True)
    except OSError:  # the parent was killed
        os._exit(1)


if __name__ == "__main__":
    main()
