"""The command line, as ``streamplace`` and as ``python -m streamplace``."""

import gc
import os
import signal
import sys

YOUNG_OBJECTS = (100_000, 10, 10)
"""Thresholds of the garbage collector: libraries create a million permanent objects to scan."""

LATER = 0.01
"""Seconds after which an interrupt that was dropped comes again."""


def main() -> None:
    """Run the command line and exit; Ctrl-C and SIGTERM exit with status 130 from here on."""
    gc.set_threshold(*YOUNG_OBJECTS)
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
        exec("")  # an interrupt in such a text, as dataclasses run, would else end Python by SIGINT
        gc.freeze()  # the last collection takes 15 ms, and memory is freed without it


def raise_again(dropped: "sys.UnraisableHookArgs") -> None:
    """Interrupt later where Python drops it: in a destructor, or a call-back of a compiler."""
    if issubclass(dropped.exc_type, KeyboardInterrupt):
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, LATER)
    else:
        sys.__unraisablehook__(dropped)


if __name__ == "__main__":
    main()
