"""Program that runs a command within limits on one core, and reports what it used; for Linux.

    python limited_program.py REPORT SECONDS ELAPSED MEMORY CORE COMMAND...

REPORT is the number of an open file descriptor to which one JSON object is written at the end.
SECONDS limits the processor time of each process, ELAPSED the elapsed time, MEMORY the address
space of each process in bytes. SIGTERM ends the command, and so does the end of this program.

It runs in a separate process, because Linux counts the memory of whoever starts a command as if
the command itself had used it: this program is small.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time
from contextlib import suppress

DEATH_SIGNAL = 1
"""Option of prctl: send a signal when the parent ends."""
LARGEST_FILE = 2**30


def main(words: list[str]) -> None:
    """Run the command and write the report."""
    report, seconds, elapsed, memory, core = (int(word) for word in words[:5])
    begin = time.monotonic()
    end_with_parent()
    child = os.fork()
    if not child:
        os.close(report)
        begin_command(words[5:], seconds, memory, core)

    def end(*_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGALRM, end)
    signal.alarm(elapsed)
    _, status, used = os.wait4(child, 0)
    end()  # what the command has started
    document = {
        "status": os.waitstatus_to_exitcode(status),
        "seconds": used.ru_utime + used.ru_stime,
        "elapsed": time.monotonic() - begin,
        "memory": 1024 * used.ru_maxrss,
    }
    os.write(report, json.dumps(document).encode())


def end_with_parent() -> None:
    """Have the system kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)


def begin_command(command: list[str], seconds: int, memory: int, core: int) -> None:
    """Restrict this process, and replace it by the command in a separate process group."""
    sizes = {
        # The hard limit is a second later, for programs that ignore the signal.
        resource.RLIMIT_CPU: (seconds, seconds + 1),
        resource.RLIMIT_AS: (memory, memory),
        resource.RLIMIT_FSIZE: (LARGEST_FILE, LARGEST_FILE),
        resource.RLIMIT_CORE: (0, 0),
    }
    try:
        end_with_parent()
        os.setpgid(0, 0)
        os.sched_setaffinity(0, {core})
        for limit, pair in sizes.items():
            hard = resource.getrlimit(limit)[1]
            allowed = sys.maxsize if hard == resource.RLIM_INFINITY else hard
            resource.setrlimit(limit, (min(pair[0], allowed), min(pair[1], allowed)))
        os.execvp(command[0], command)
    except (OSError, ValueError) as error:
        os.write(2, f"{command[0]}: {getattr(error, 'strerror', error)}\n".encode())
    os._exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
