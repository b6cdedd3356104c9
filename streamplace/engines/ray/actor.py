"""An operator of a running pipeline: an actor that computes, and sends what it makes.

It computes for as long as its operator's cost says, on a core of its device. A device has a file
for each of its cores, and whoever holds the lock of the file has the core, so that all actors of a
device together get no more than it has. A core of a device is part of a core of this machine: an
actor computes for its share of the time and sleeps in between, as under a quota of CPU.

Tuples travel in batches of real bytes. The tuples of a stream are numbered, and every receiver
checks that it gets each number once.
"""

import fcntl
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

BATCH_S = 0.05
"""Time between two batches of a source."""
WINDOW = 2
"""Batches of a stream that may be under way before its sender waits."""
PERIOD_S = 0.005
"""An actor that has computed so much ahead of its share sleeps."""


@dataclass(frozen=True, slots=True)
class OutputStream:
    """A stream that an operator sends.

    Attributes
    ----------
    number
        Of the stream in its graph.
    tuples
        Sent per tuple that the operator takes in.
    payload
        Bytes per tuple.
    """

    number: int
    tuples: float
    payload: int


@dataclass(frozen=True, slots=True)
class OperatorTask:
    """What an actor does, on the device where it runs.

    Attributes
    ----------
    seconds
        Core seconds of its device per tuple.
    share
        Part of a core of this machine that is a core of the device.
    rate
        Tuples/s that it generates; 0 where it is no source.
    cores
        File of each core of its device.
    """

    name: str
    seconds: float
    share: float
    rate: float
    outputs: tuple[OutputStream, ...]
    cores: tuple[Path, ...]


@dataclass(slots=True)
class OperatorCounts:
    """The state of an operator: what it has done since its job was started.

    Attributes
    ----------
    tuples
        Taken in, or generated.
    core_s
        Core seconds that it computed, of its device.
    sent, received
        Tuples by the number of the stream.
    sent_bytes
        By the number of the stream.
    faults
        Tuples that were lost or came twice, in words.
    """

    tuples: int = 0
    core_s: float = 0.0
    sent: dict[int, int] = field(default_factory=dict)
    received: dict[int, int] = field(default_factory=dict)
    sent_bytes: dict[int, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


class OperatorSnapshot(NamedTuple):
    """What an operator had done at some second of this machine's clock."""

    at: float
    counts: OperatorCounts


class OperatorActor:
    """An operator; Ray runs its methods one after the other."""

    def __init__(self, task: OperatorTask) -> None:
        self._task, self._counts = task, OperatorCounts()
        self._cores = [path.open("w") for path in task.cores]
        self._targets: dict[int, Any] = {}
        self._under_way: dict[int, deque[Any]] = {}
        self._run = 0

    def take(self, counts: OperatorCounts) -> None:
        """Go on from what another actor of the operator has done."""
        self._counts = counts

    def connect(self, targets: Mapping[int, Any]) -> None:
        """Send each stream to this actor from now on."""
        self._targets = dict(targets)

    def home(self) -> str:
        """Id of the node that it runs on."""
        import ray

        return str(ray.get_runtime_context().get_node_id())

    def look(self) -> OperatorSnapshot:
        """What it has done so far."""
        return OperatorSnapshot(time.monotonic(), self._counts)

    def start(self) -> None:
        """Have a source generate tuples."""
        self._run += 1
        self._generate_at(time.monotonic())

    def pause(self) -> None:
        """Have a source generate no more tuples."""
        self._run += 1

    def drain(self) -> None:
        """Wait until everything that it has sent was taken in."""
        import ray

        for batches in self._under_way.values():
            ray.get([*batches])
            batches.clear()

    def generate(self, run: int, due: float) -> None:
        """Generate a batch when it is due; what a source is late for is not made up for."""
        if run != self._run:
            return
        time.sleep(max(0.0, due - time.monotonic()))
        batch = max(1, round(self._task.rate * BATCH_S))
        self._process(batch)
        self._generate_at(max(due + batch / self._task.rate, time.monotonic()))

    def _generate_at(self, due: float) -> None:
        """Call itself again, after whatever others have asked for meanwhile."""
        import ray

        ray.get_runtime_context().current_actor.generate.remote(self._run, due)

    def receive(self, stream: int, first: int, count: int, payload: bytes) -> None:
        """Take in a batch of a stream, whose first tuple bears a number."""
        due = self._counts.received.get(stream, 0)
        if first != due:
            self._counts.faults.append(
                f"operator {self._task.name} took in tuple {first} of stream {stream}, not {due}"
            )
        self._counts.received[stream] = first + count
        self._process(count)

    def _process(self, count: int) -> None:
        """Compute for some tuples, and send what they make."""
        with self._core():
            self._counts.core_s += compute_for(count * self._task.seconds, self._task.share)
        self._counts.tuples += count
        for output in self._task.outputs:
            self._send(output)

    def _send(self, output: OutputStream) -> None:
        """Send what is due on a stream; wait where too much is under way."""
        import ray

        number = output.number
        first = self._counts.sent.get(number, 0)
        count = int(self._counts.tuples * output.tuples + 1e-9) - first
        if count <= 0:
            return
        batches = self._under_way.setdefault(number, deque())
        while len(batches) >= WINDOW:
            ray.get(batches.popleft())
        payload = bytes(count * output.payload)
        batches.append(self._targets[number].receive.remote(number, first, count, payload))
        self._counts.sent[number] = first + count
        self._counts.sent_bytes[number] = self._counts.sent_bytes.get(number, 0) + len(payload)

    @contextmanager
    def _core(self) -> Iterator[None]:
        """Have a core of the device while the block runs."""
        core = next((core for core in self._cores if _take(core)), None)
        if core is None:
            core = self._cores[self._counts.tuples % len(self._cores)]
            fcntl.flock(core, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(core, fcntl.LOCK_UN)


def _take(core: Any) -> bool:
    """Take a core unless another actor has it."""
    try:
        fcntl.flock(core, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def compute_for(seconds: float, share: float) -> float:
    """Compute for some seconds of a core of which this machine has a share; returns those it took.

    >>> compute_for(0.0, 0.5)
    0.0
    """
    begin, spent = time.monotonic(), time.thread_time()
    while (computed := (time.thread_time() - spent) / share) < seconds:
        ahead = computed - (time.monotonic() - begin)
        if ahead > PERIOD_S:
            time.sleep(ahead)
    if seconds:
        time.sleep(max(0.0, seconds - (time.monotonic() - begin)))
    return computed if seconds else 0.0
