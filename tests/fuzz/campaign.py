"""Many inputs on several processes; one that dies or hangs is a finding, and the rest goes on."""

import multiprocessing
import os
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic

from fuzz.targets import Target
from fuzz.trial import Finding, confine, tried

CHUNK = 400
"""Inputs of cost 1 that a process is given at once."""
LOOK = 0.5
"""Seconds after which processes are looked at that say nothing."""
PATIENCE = 120.0
"""Seconds without news of an input, after which its process is given up."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Inputs of one target, from a number on."""

    target: int
    start: int
    stop: int


@dataclass(slots=True)
class Tally:
    """What a campaign came to so far."""

    wanted: int
    done: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


class _Worker:
    """A process that tries chunks and tells before each input which it is."""

    def __init__(self, targets: Sequence[Target], seed: int) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, end = context.Pipe()
        self.at = context.Value("q", -1, lock=False)
        self.process = context.Process(target=_work, args=(targets, seed, end, self.at))
        self.process.daemon = True
        self.process.start()
        end.close()
        self.chunk: Chunk | None = None
        self.seen, self.looked, self.waited = -1, monotonic(), 0.0

    def give(self, chunk: Chunk) -> None:
        """Hand out inputs."""
        self.chunk, self.at.value, self.seen = chunk, chunk.start, -1
        self.pipe.send(chunk)

    def hangs(self) -> bool:
        """Whether it has been at one input for too long, the machine's own pauses left out."""
        now, at = monotonic(), self.at.value
        self.waited = 0.0 if at != self.seen else self.waited + min(now - self.looked, 2 * LOOK)
        self.looked, self.seen = now, at
        return self.chunk is not None and self.waited > PATIENCE

    def end(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def campaign(
    targets: Sequence[Target],
    count: int,
    seed: int,
    jobs: int,
    told: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Try this many inputs, shared out by the targets' costs; ``told`` hears of every chunk."""
    for target in targets:
        target.seeds()  # made once, before there are several processes
    chunks = deque(_chunks(targets, count))
    tally = Tally(sum(chunk.stop - chunk.start for chunk in chunks))
    workers = [_Worker(targets, seed) for _ in range(jobs)]
    try:
        while chunks or any(worker.chunk for worker in workers):
            for worker in workers:
                if worker.chunk is None and chunks:
                    worker.give(chunks.popleft())
            ready = set(wait([worker.pipe for worker in workers], timeout=LOOK))
            for i, worker in enumerate(workers):
                if worker.pipe in ready or worker.hangs():
                    left = _heard(worker, targets, tally)
                    if left is not None:
                        worker.end()
                        workers[i] = _Worker(targets, seed)
                        chunks.extendleft(left)
                    told(tally)
    finally:
        for worker in workers:
            worker.end()
    return tally


def _heard(worker: _Worker, targets: Sequence[Target], tally: Tally) -> list[Chunk] | None:
    """Count what a worker did; where it died or hangs, what is left of its chunk."""
    chunk = worker.chunk
    assert chunk is not None
    name = targets[chunk.target].name
    try:
        if not worker.pipe.poll():
            raise TimeoutError
        findings = worker.pipe.recv()
    except (EOFError, ConnectionError, TimeoutError) as error:
        at = worker.at.value
        fault = "hung" if isinstance(error, TimeoutError) else "ended its process"
        tally.findings.append(Finding(name, at, fault))
        tally.done[name] += at + 1 - chunk.start
        return [Chunk(chunk.target, at + 1, chunk.stop)] if at + 1 < chunk.stop else []
    tally.findings += findings
    tally.done[name] += chunk.stop - chunk.start
    worker.chunk = None
    return None


def _chunks(targets: Sequence[Target], count: int) -> Iterator[Chunk]:
    """Inputs of all targets in turn, so that a campaign cut short has seen something of each."""
    share = count / sum(1 / target.cost for target in targets)
    wanted = [max(1, round(share / target.cost)) for target in targets]
    rounds = -(-max(wanted) // CHUNK)
    for turn in range(rounds):
        for i, size in enumerate(wanted):
            start, stop = size * turn // rounds, size * (turn + 1) // rounds
            if start < stop:
                yield Chunk(i, start, stop)


def _work(targets: Sequence[Target], seed: int, pipe: Connection, at: "Counter[str]") -> None:
    """Try chunks until the campaign has ended, be it killed."""
    confine()
    campaign_process = os.getppid()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        while True:
            while not pipe.poll(LOOK):
                if os.getppid() != campaign_process:
                    return
            try:
                chunk = pipe.recv()
            except EOFError:
                return
            found = []
            for number in range(chunk.start, chunk.stop):
                at.value = number
                found.append(tried(targets[chunk.target], seed, number, Path(folder)))
            pipe.send([finding for finding in found if finding])
