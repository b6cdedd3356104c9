"""Inputs that a reader reads or refuses as it should, or they are findings; many in processes."""

import logging
import multiprocessing
import resource
import signal
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
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
CHUNK = 400
"""Inputs of cost 1 that a process is given at once."""
CAMPAIGN: list[tuple[Sequence[Target], int]] = []
"""Targets and seed of the campaign that this process works for."""
Chunk = tuple[int, int, int]
"""Row of a target, and the numbers of its first input and of the one after its last."""


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


@dataclass(slots=True)
class Tally:
    """What a campaign came to so far."""

    wanted: int
    done: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


def campaign(targets: Sequence[Target], count: int, seed: int, jobs: int) -> Iterator[Tally]:
    """Try this many inputs, shared out by the targets' costs; yield the tally after every chunk.

    It ends with an error if an input ends the process of its reader.
    """
    for target in targets:
        target.seeds()  # made once, before there are several processes
    chunks = list(_chunks(targets, count))
    tally = Tally(sum(stop - start for _, start, stop in chunks))
    context = multiprocessing.get_context("fork")  # targets cannot be pickled
    with ProcessPoolExecutor(jobs, context, _begin, (targets, seed)) as pool:
        given = {pool.submit(_work, *chunk): chunk for chunk in chunks}
        for future in as_completed(given):
            row, start, stop = given[future]
            tally.findings += future.result()
            tally.done[targets[row].name] += stop - start
            yield tally


def _chunks(targets: Sequence[Target], count: int) -> Iterator[Chunk]:
    """Inputs of all targets in turn, so that a campaign cut short has seen something of each."""
    share = count / sum(1 / target.cost for target in targets)
    wanted = [max(1, round(share / target.cost)) for target in targets]
    rounds = -(-max(wanted) // CHUNK)
    for turn in range(rounds):
        for row, size in enumerate(wanted):
            start, stop = size * turn // rounds, size * (turn + 1) // rounds
            if start < stop:
                yield row, start, stop


def _begin(targets: Sequence[Target], seed: int) -> None:
    CAMPAIGN.append((targets, seed))
    confine()


def _work(row: int, start: int, stop: int) -> list[Finding]:
    ((targets, seed),) = CAMPAIGN
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        found = [tried(targets[row], seed, i, Path(folder)) for i in range(start, stop)]
    return [finding for finding in found if finding]
