"""An operator of a running pipeline: an actor that computes, and sends its results.

It computes for the time that follows from its operator's cost, on a core of its device. A device
has a file for each of its cores, and an actor that locks the file holds the core, so all actors of
a device together use no more cores than it has. A core of a device is a share of a core of this
machine: an actor computes for that share of the time and sleeps in between, as under a CPU quota.

Tuples are sent in batches of real bytes. The tuples of a stream are numbered, and every receiver
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
"""Maximum number of unacknowledged batches of a stream, beyond which its sender waits."""
PERIOD_S = 0.005
"""An actor that is ahead of its share by this time sleeps."""


@dataclass(frozen=True, slots=True)
class OutputStream:
    """A stream that an operator sends."""

    number: int  # in its graph
    tuples: float  # sent per tuple that the operator receives
    payload: int  # bytes per tuple


@dataclass(frozen=True, slots=True)
class OperatorTask:
    """Task of an actor on its device."""

    name: str
    seconds: float  # core seconds of its device per tuple
    share: float  # of a core of this machine that represents a core of the device
    rate: float  # tuples/s that it generates; 0 if it is not a source
    outputs: tuple[OutputStream, ...]
    cores: tuple[Path, ...]  # file of each core of its device


@dataclass(slots=True)
class OperatorCounts:
    """State of an operator: its counters since the start of its job, of streams by their number."""

    tuples: int = 0  # received, or generated
    core_s: float = 0.0  # core seconds of its device that it computed
    sent: dict[int, int] = field(default_factory=dict)
    received: dict[int, int] = field(default_factory=dict)
    sent_bytes: dict[int, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)  # sentences on tuples lost or received twice


class OperatorSnapshot(NamedTuple):
    """Counters of an operator at a time of this machine's clock, in seconds."""

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
        """Continue from the counters of another actor of the operator."""
        self._counts = counts

    def connect(self, targets: Mapping[int, Any]) -> None:
        """Send each stream to this actor from now on."""
        self._targets = dict(targets)

    def home(self) -> str:
        """Id of the node on which it runs."""
        import ray

        return str(ray.get_runtime_context().get_node_id())

    def look(self) -> OperatorSnapshot:
        """Current counters."""
        return OperatorSnapshot(time.monotonic(), self._counts)

    def start(self) -> None:
        """Make a source generate tuples."""
        self._run += 1
        self._generate_at(time.monotonic())

    def pause(self) -> None:
        """Make a source stop generating tuples."""
        self._run += 1

    def drain(self) -> None:
        """Wait until everything that it has sent was received."""
        import ray

        for batches in self._under_way.values():
            ray.get([*batches])
            batches.clear()

    def generate(self, run: int, due: float) -> None:
        """Generate a batch when it is due; batches that are late are not made up for."""
        if run != self._run:
            return
        time.sleep(max(0.0, due - time.monotonic()))
        batch = max(1, round(self._task.rate * BATCH_S))
        self._process(batch)
        self._generate_at(max(due + batch / self._task.rate, time.monotonic()))

    def _generate_at(self, due: float) -> None:
        """Schedule the next batch behind the calls that are already queued."""
        import ray

        ray.get_runtime_context().current_actor.generate.remote(self._run, due)

    def receive(self, stream: int, first: int, count: int, payload: bytes) -> None:
        """Receive a batch of a stream, with the number of its first tuple."""
        due = self._counts.received.get(stream, 0)
        if first != due:
            self._counts.faults.append(
                f"operator {self._task.name} took in tuple {first} of stream {stream}, not {due}"
            )
        self._counts.received[stream] = first + count
        self._process(count)

    def _process(self, count: int) -> None:
        """Compute for some tuples, and send the results."""
        with self._core():
            self._counts.core_s += compute_for(count * self._task.seconds, self._task.share)
        self._counts.tuples += count
        for output in self._task.outputs:
            self._send(output)

    def _send(self, output: OutputStream) -> None:
        """Send the due tuples of a stream; wait if too many batches are unacknowledged."""
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
        """Hold a core of the device while the block runs."""
        core = next((core for core in self._cores if _take(core)), None)
        if core is None:
            core = self._cores[self._counts.tuples % len(self._cores)]
            fcntl.flock(core, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(core, fcntl.LOCK_UN)


def _take(core: Any) -> bool:
    """Lock a core unless another actor holds it."""
    try:
        fcntl.flock(core, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def compute_for(seconds: float, share: float) -> float:
    """Compute for some seconds of a core with this share of a real core; return the actual seconds.

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
