"""The command line, as ``streamplace`` and as ``python -m streamplace``."""

import gc
import os
import signal
import sys

GC_THRESHOLDS = (100_000, 10, 10)
"""Few collections, as libraries create a million permanent objects to scan."""

RETRY_S = 0.01
"""Seconds until a dropped interrupt is raised again."""


def main() -> None:
    """Run the command line and exit; Ctrl-C and SIGTERM exit with status 130 from here on."""
    gc.set_threshold(*GC_THRESHOLDS)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them takes 4 ms
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.unraisablehook = raise_again
    try:
        from streamplace.cli.main import main as run

        run()
    except KeyboardInterrupt:  # while modules are imported
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one, while Python ends
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        exec("")  # after an interrupt inside an exec, as of dataclasses, Python would end by SIGINT
        gc.freeze()  # the last collection takes 15 ms, and memory is freed without it


def raise_again(dropped: "sys.UnraisableHookArgs") -> None:
    """Raise an interrupt again that Python dropped in a destructor or a callback."""
    if issubclass(dropped.exc_type, KeyboardInterrupt):
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, RETRY_S)
    else:
        sys.__unraisablehook__(dropped)


if __name__ == "__main__":
    main()
