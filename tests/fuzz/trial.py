"""Inputs that a reader reads or refuses as it should, or there is a fault."""

import multiprocessing
import resource
import signal
import traceback
from contextlib import contextmanager
from pathlib import Path
from random import Random

from fuzz.mutations import mutated

from streamplace.errors import StreamplaceError

SECONDS = 5
"""Processor time that an input may take."""
MEMORY = 2**31
"""Bytes that a process may take for an input besides what it has."""
LONGEST_MESSAGE = 1200


class Overdue(BaseException):
    """An input took too long; nothing that is read may catch it."""


def content_of(target, seed, number):
    """Return the input of a number, which depends on nothing else."""
    return mutated(target.seeds(), Random(f"{seed} {target.name} {number}"))


def fault_of(target, seed, number, folder):
    """Give a reader an input; what it does but to read it or to refuse it as it should."""
    content = content_of(target, seed, number)
    try:
        with confined(MEMORY), _timed():
            target.read(content, folder)
    except StreamplaceError as error:
        message = str(error)
        if not message.isprintable():
            return f"message is not printable: {message!a}"
        return "" if len(message) <= LONGEST_MESSAGE else f"message of {len(message)} characters"
    except Overdue:
        return f"took more than {SECONDS} s"
    except BaseException as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {Path(frame.filename).name}:{frame.lineno}: {error!s}"
    return ""


@contextmanager
def _timed():
    """Limit the processor time of a block."""
    before = signal.signal(signal.SIGVTALRM, _overdue)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        # Another thread may yet be given the signal, which would end the process by default.
        is_default = before is signal.SIG_DFL
        signal.signal(signal.SIGVTALRM, signal.SIG_IGN if is_default else before)


def _overdue(signum, frame):
    raise Overdue


@contextmanager
def confined(memory):
    """Keep this process from taking much more memory than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def refused_in_little(read, memory):
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


def _told(read, memory, pipe):
    try:
        with confined(memory):
            answer = f"returned {read()}"
    except (StreamplaceError, MemoryError) as error:
        answer = f"{type(error).__name__}: {error}"
    pipe.send(answer)
