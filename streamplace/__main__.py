"""The command line, as ``streamplace`` and as ``python -m streamplace``."""

import atexit
import os
import signal
import sys

TYPE_CHECKING = False  # as in the package
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

INTERRUPTED = 130


def main() -> "NoReturn":
    """Run the command line and exit; Ctrl-C exits with 130 as soon as this runs."""
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
    if status == INTERRUPTED:
        atexit._run_exitfuncs()
        os._exit(INTERRUPTED)
    raise SystemExit(status)


def _exit_at_once(number: int = signal.SIGINT, frame: "FrameType | None" = None) -> "NoReturn":
    try:
        os.write(2, b"error: interrupted\n")
    finally:
        os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
