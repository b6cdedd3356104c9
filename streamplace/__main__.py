"""The command line, as ``streamplace`` and as ``python -m streamplace``."""

import atexit
import gc
import os
import signal
import sys

TYPE_CHECKING = False  # importing typing takes long, as in __init__.py
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

INTERRUPTED = 130
YOUNG_OBJECTS = (10_000, 10, 10)
"""Thresholds of the garbage collector: libraries create a million permanent objects to scan."""


def main() -> "NoReturn":
    """Run the command line and exit; Ctrl-C exits with status 130 from here on."""
    gc.set_threshold(*YOUNG_OBJECTS)
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeded:  # an interrupted import may raise any exception
        signal.signal(signal.SIGINT, _exit_at_once)
    from streamplace.cli.main import main as run

    if heeded:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run()
    except KeyboardInterrupt:
        _exit_at_once()
    except SystemExit as ended:
        _exit(ended.code)
    sys.exit(0)


def _exit(status: object) -> "NoReturn":
    """Exit with a status, ignoring any interrupt that is pending or arrives now."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not isinstance(status, int) or sys.getprofile() or sys.gettrace():
        raise SystemExit(status)
    import threading
    from contextlib import suppress

    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)  # tearing down all modules would take a fifth of a second


def _exit_at_once(number: int = signal.SIGINT, frame: "FrameType | None" = None) -> "NoReturn":
    try:
        os.write(2, b"error: interrupted\n")
    finally:
        os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
