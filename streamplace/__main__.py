"""The command line, as ``streamplace`` and as ``python -m streamplace``."""

import gc
import signal
import sys

YOUNG_OBJECTS = (10_000, 10, 10)
"""Thresholds of the garbage collector: libraries create a million permanent objects to scan."""


def main() -> None:
    """Run the command line and exit; Ctrl-C and SIGTERM exit with status 130 from here on."""
    gc.set_threshold(*YOUNG_OBJECTS)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from streamplace.cli.main import main as run

        run()
    except KeyboardInterrupt:  # while modules are imported
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one, while Python ends
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


if __name__ == "__main__":
    main()
