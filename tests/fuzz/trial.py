"""One input, given to one reader: it is read or refused as it should be, or it is a finding."""

import logging
import multiprocessing
import resource
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from types import FrameType

from fuzz.mutations import mutated
from fuzz.targets import Target
from numba.core.event import Event, Listener, install_listener

from streamplace.errors import StreamplaceError

SECONDS = 5
"""Processor time that an input may take, apart from what compiling kernels takes."""
MEMORY = 2**30
"""Bytes that a process may take besides what it has at the start."""
LONGEST_MESSAGE = 1200


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that a reader neither read nor refused as it should."""

    target: str
    number: int
    fault: str


class Overdue(BaseException):
    """An input took too long; nothing that is read may catch it."""


def content_of(target: Target, seed: int, number: int) -> bytes:
    """Return the input of a number, which depends on nothing else."""
    return mutated(target.seeds(), Random(f"{seed} {target.name} {number}"))


def tried(target: Target, seed: int, number: int, folder: Path) -> Finding | None:
    """Give a reader an input."""
    content = content_of(target, seed, number)
    try:
        with _timed():
            target.read(content, folder)
    except StreamplaceError as error:
        fault = _fault_of(str(error))
    except Overdue:
        fault = f"took more than {SECONDS} s"
    except BaseException as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__} in {Path(frame.filename).name}:{frame.lineno}: {error!s}"
    else:
        fault = ""
    return Finding(target.name, number, fault) if fault else None


def _fault_of(message: str) -> str:
    if not message.isprintable():
        return f"message is not printable: {message!a}"
    return "" if len(message) <= LONGEST_MESSAGE else f"message of {len(message)} characters"


@contextmanager
def _timed() -> Iterator[None]:
    """Limit the processor time of a block."""
    before = signal.signal(signal.SIGVTALRM, _overdue)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        with install_listener("numba:compiler_lock", _Pause()):
            yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        # Another thread may yet be given the signal, which would end the process by default.
        is_default = before is signal.SIG_DFL
        signal.signal(signal.SIGVTALRM, signal.SIG_IGN if is_default else before)


class _Pause(Listener):
    """Stops the clock while kernels are compiled, which must not be broken off."""

    def __init__(self) -> None:
        self.depth, self.left = 0, 0.0

    def on_start(self, event: Event) -> None:
        """Keep the time that is left."""
        if not self.depth:
            self.left, _ = signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        self.depth += 1

    def on_end(self, event: Event) -> None:
        """Go on with it."""
        self.depth -= 1
        if not self.depth and self.left:
            signal.setitimer(signal.ITIMER_VIRTUAL, self.left)


def _overdue(signum: int, frame: FrameType | None) -> None:
    raise Overdue


def confine(memory: int = MEMORY) -> None:
    """Keep this process quiet, and from taking much more memory than it has."""
    logging.disable()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def refused_in_little(read: Callable[[], object], memory: int) -> str:
    """Message that a read is refused with by a process that may take so much more memory."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_told, args=(read, memory, theirs))
    process.start()
    theirs.close()
    try:
        return str(ours.recv()) if ours.poll(60) else "hung"
    except EOFError:
        return "ended its process"
    finally:
        process.kill()
        process.join()


def _told(read: Callable[[], object], memory: int, pipe: Connection) -> None:
    confine(memory)
    try:
        pipe.send(f"returned {read()}")
    except (StreamplaceError, MemoryError) as error:
        pipe.send(f"{type(error).__name__}: {error}")
