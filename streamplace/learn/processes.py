"""Processes that torchrun started: each computes some shards of every step, all take the same step.

Every process sends gradients and memories to the first one through gloo, and receives their sum.
Since each message has one sender, a lost process is known by its number. A process that ends
writes the reason into torchrun's store.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from types import FrameType
from typing import Any

import numpy as np
import torch

from streamplace.cores import available_cores
from streamplace.errors import SettingError, StreamplaceError
from streamplace.learn.learner import Learner
from streamplace.learn.parameters import prefixed, without_prefix
from streamplace.learn.shards import (
    Arrays,
    BatchShard,
    Gradient,
    gathered,
    gradient_from,
    packed,
    packed_gradient,
    summed,
    unpacked,
)
from streamplace.learn.workers import LocalWorkers, ThreadWorkers, Workers, working
from streamplace.model.arrays import Floats, Longs

FIRST = 0
PATIENCE = timedelta(days=7)
"""Longest wait for another process: the first one may prove optima for days."""
GRACE_S = 0.3
"""Time in which the signal that ended another process, such as Ctrl-C, reaches this one."""
ENDED = "ended"
_TIMES = count()


class Ended(StreamplaceError):
    """Another process reports why all of them end."""


class Lost(Exception):
    """A process does not answer."""

    def __init__(self, rank: int) -> None:
        super().__init__(rank)
        self.rank = rank


def launched() -> bool:
    """Whether torchrun started this process and others."""
    started = {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= os.environ.keys()
    return started and int(os.environ["WORLD_SIZE"]) > 1


def local_rank() -> int:
    """Number of this process on its machine."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def leads() -> bool:
    """Whether this process is the first, or the only one."""
    return not launched() or int(os.environ["RANK"]) == FIRST


def launcher() -> str:
    """Words before the command that started this process; empty if it is alone."""
    each = os.environ.get("LOCAL_WORLD_SIZE", "1")
    return f"torchrun --nproc-per-node {each} -m " if launched() else ""


@contextmanager
def joined() -> Iterator[Workers]:
    """All processes that torchrun started, or this one alone.

    If an error ends them, the first process raises it, and all others raise `Ended`.
    """
    if not launched():
        yield LocalWorkers()
        return
    import torch.distributed as dist
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    store, rank, size = next(rendezvous("env://"))
    store = PrefixStore(f"streamplace/{next(_TIMES)}", store)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=PATIENCE)
    workers = ProcessWorkers(store, rank, size)
    try:
        yield workers
    except BaseException as error:
        ended = workers.left(error)
        if ended is error:
            raise
        raise ended from None
    finally:
        dist.destroy_process_group()


class ProcessWorkers(Workers):
    """One of the processes."""

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self._store, self._rank, self._size = store, rank, size
        self._asked_to_end, self._launcher = False, os.getppid()

    @property
    def leads(self) -> bool:
        """Whether this is the first."""
        return self._rank == FIRST

    def shared(self, make: Callable[[], Arrays]) -> Arrays:
        """Return the result of the first process."""
        mine = packed(make()) if self.leads else b""
        return unpacked(self._met(mine, lambda parts: parts[FIRST]))

    @contextmanager
    def gradient_workers(
        self, learner: Learner, make: Callable[[], Learner], device: str
    ) -> Iterator["ProcessGradientWorkers"]:
        """Threads on this process's part of the cores."""
        each = available_cores() // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        with self._ending_between_steps(), working(learner, device, each) as threads:
            yield ProcessGradientWorkers(self, learner, threads)

    def mine(self, count: int) -> range:
        """Which of so many parts this process computes."""
        return range(self._rank, count, self._size)

    def met(self, mine: bytes, combine: Callable[[list[bytes]], bytes]) -> bytes:
        """Combine the parts of all in the first process; afterwards this one may end."""
        combined = self._met(mine, combine)
        if self._asked_to_end:
            raise KeyboardInterrupt
        if self._is_orphan:
            raise self._orphaned()
        return combined

    def left(self, error: BaseException) -> BaseException:
        """Write why this process ends; return the error to end with."""
        if isinstance(error, Lost):
            try:
                error = self._judged(error)
            except KeyboardInterrupt as interrupt:
                error = interrupt
        if isinstance(error, Ended):
            return error
        if self.leads:
            self._note(ENDED, "1")
            return error
        if isinstance(error, KeyboardInterrupt):
            self._note(_key(self._rank), "")
            return error
        if isinstance(error, StreamplaceError) and not isinstance(error, _Spoken):
            self._note(_key(self._rank), str(error))
            return Ended("the first process reports the reason")
        return error

    def _met(self, mine: bytes, combine: Callable[[list[bytes]], bytes]) -> bytes:
        if not self.leads:
            _send(mine, FIRST)
            return _received(FIRST)
        parts = [mine, *self._parts()]
        combined = combine(parts)
        for rank in range(1, self._size):
            _send(combined, rank)
        return combined

    def _parts(self) -> list[bytes]:
        """Parts of all others; if some are missing, a process that gave no reason was lost."""
        parts, missing = [], []
        for rank in range(1, self._size):
            try:
                parts.append(_received(rank))
            except Lost as lost:
                missing.append(lost)
        if missing:
            raise min(missing, key=lambda lost: self._reason_of(lost.rank) == "")
        return parts

    def _judged(self, lost: Lost) -> BaseException:
        time.sleep(GRACE_S)
        if self._is_orphan:
            return self._orphaned()
        if not self.leads:
            if self._rank > 1 or self._noted(ENDED) is not None:
                return Ended("the first process reports the reason")
            return _Spoken(_gone(FIRST, self._size))
        reason = self._reason_of(lost.rank)
        if reason == "":
            return KeyboardInterrupt()
        if reason is None:
            return SettingError(_gone(lost.rank, self._size))
        return SettingError(f"process {lost.rank} of {self._size}: {reason}")

    def _reason_of(self, rank: int) -> str | None:
        """Why a process ended: its error, empty if it was asked to, None if it gave no reason."""
        return self._noted(_key(rank))

    @property
    def _is_orphan(self) -> bool:
        """Whether torchrun, which started this process, has ended."""
        return os.getppid() != self._launcher

    def _orphaned(self) -> StreamplaceError:
        if self.leads:
            return SettingError("torchrun ended, perhaps because it was killed; use --resume")
        return Ended("the first process reports the reason")

    def _noted(self, key: str) -> str | None:
        try:
            return self._store.get(key).decode() if self._store.check([key]) else None
        except RuntimeError:  # the process with the store has ended
            return None

    def _note(self, key: str, text: str) -> None:
        try:
            self._store.set(key, text)
        except RuntimeError:
            return

    @contextmanager
    def _ending_between_steps(self) -> Iterator[None]:
        """Delay SIGTERM: torchrun sends it when a process is lost, which is reported first."""

        def wait(number: int, frame: FrameType | None) -> None:
            self._asked_to_end = True

        before = signal.signal(signal.SIGTERM, wait)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)


class ProcessGradientWorkers:
    """Each process computes its shards; see `streamplace.learn.workers.GradientWorkers`."""

    def __init__(self, workers: ProcessWorkers, learner: Learner, threads: ThreadWorkers) -> None:
        self._workers, self._learner, self._threads = workers, learner, threads

    def gradient(self, shards: Sequence[BatchShard]) -> Gradient:
        """Sum of the gradients, made by the first process."""
        mine = self._workers.mine(len(shards))
        gradients = self._threads.gradients([shards[i] for i in mine])
        sent: dict[str, Any] = {}
        for i, gradient in zip(mine, gradients, strict=True):
            sent |= prefixed(f"{i}", packed_gradient(gradient))
            sent |= prefixed(f"{i}/state", self._learner.state(shards[i].rows))
        received = unpacked(
            self._workers.met(packed(sent), lambda parts: _summed(parts, len(shards)))
        )
        for i, shard in enumerate(shards):
            if i not in mine:
                self._learner.restore(without_prefix(f"{i}/state", received), shard.rows)
        device = next(self._learner.module.parameters()).device
        return gradient_from(without_prefix("sum", received), device)

    def values(self, parts: Sequence[Longs]) -> Floats:
        """Values of all validation problems."""
        mine = self._workers.mine(len(parts))
        values_of = self._threads.values_of([parts[i] for i in mine])
        sent = packed({str(i): values for i, values in zip(mine, values_of, strict=True)})
        received = unpacked(self._workers.met(sent, lambda parts: packed(_united(parts))))
        return gathered(parts, [received[str(i)] for i in range(len(parts))])


class _Spoken(SettingError):
    """An error that this process reports itself, because the first one is lost."""


def _gone(rank: int, size: int) -> str:
    return (
        f"process {rank} of {size} was lost: it was killed, perhaps because memory ran out, or it "
        "ended with the error above; continue with --resume"
    )


def _key(rank: int) -> str:
    return f"{ENDED}/{rank}"


def _united(parts: list[bytes]) -> dict[str, Any]:
    return {name: array for part in parts for name, array in unpacked(part).items()}


def _summed(parts: list[bytes], count: int) -> bytes:
    """Sum of the gradients of all shards, and the memories of each."""
    combined = _united(parts)
    total = summed(gradient_from(without_prefix(f"{i}", combined), "cpu") for i in range(count))
    memories = {name: array for name, array in combined.items() if name.split("/")[1] == "state"}
    return packed({**memories, **prefixed("sum", packed_gradient(total))})


def _send(content: bytes, rank: int) -> None:
    import torch.distributed as dist

    try:
        dist.send(torch.tensor([len(content)]), rank)
        if content:
            dist.send(torch.frombuffer(bytearray(content), dtype=torch.uint8), rank)
    except RuntimeError:
        raise Lost(rank) from None


def _received(rank: int) -> bytes:
    import torch.distributed as dist

    size = torch.zeros(1, dtype=torch.int64)
    try:
        dist.recv(size, rank)
        content = torch.zeros(int(size), dtype=torch.uint8)
        if len(content):
            dist.recv(content, rank)
    except RuntimeError:
        raise Lost(rank) from None
    return np.asarray(content).tobytes()
