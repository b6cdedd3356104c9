"""The command line, as ``streamplace`` and as ``python -m streamplace``."""

import atexit
import gc
import os
import signal
import sys

TYPE_CHECKING = False  # as in the package
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

INTERRUPTED = 130
YOUNG_OBJECTS = (10_000, 10, 10)
"""Libraries make a million objects that stay; Python would look through them again and again."""


def main() -> "NoReturn":
    """Run the command line and exit; Ctrl-C exits with 130 as soon as this runs."""
    gc.set_threshold(*YOUNG_OBJECTS)
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeded:  # an import that is interrupted may raise anything
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
    """Exit with a status, whatever Python thinks of a signal that came before or comes now."""
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
    os._exit(status)  # Python would take down every module first, for a fifth of a second


def _exit_at_once(number: int = signal.SIGINT, frame: "FrameType | None" = None) -> "NoReturn":
    try:
        os.write(2, b"error: interrupted\n")
    finally:
        os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
