"""Devices of constant speed: their quotas follow how much slower the CPU is at the time.

A core of the computer runs two threads at a time, and the other one is often that of another
virtual machine. Instructions that do not wait for each other then take up to 1.8 times the CPU
time, while those that wait for each result take what they always take, as do accesses to memory.
So two loops run on every core of this machine, for about 1 % of the time: six independent chains of
instructions, and one chain of multiplications as in the rounds of ``GraphJob``. Quotas of devices
are what was asked for, times what the kind of code of a job takes at the time, relative to a core
whose other thread is idle.
"""

import ctypes
import os
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from limited import core_of, grant

ROUNDS = {"independent": 400_000, "dependent": 100_000}
QUIET_NS = {"independent": 0.63, "dependent": 1.10}
"""CPU time of a round while the other thread of the core is idle (AMD EPYC of generation 4)."""
PAUSE_SECONDS, UPDATE_SECONDS, RECENT_SECONDS, KEPT_SECONDS = 0.04, 0.5, 1.5, 120.0


SOURCE = """
long independent(long rounds) {
    long a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
    for (long k = 0; k < rounds; k++) {
        a = a * 3 + k; b ^= b << 1; c += c >> 1;
        d = d * 5 ^ k; e += k ^ e; f = (f << 3) - f;
    }
    return a + b + c + d + e + f;
}
long dependent(long rounds) {
    long a = 1;
    for (long k = 0; k < rounds; k++) a = a * 6364136223846793005L ^ k;
    return a;
}
"""


def _compiled() -> ctypes.CDLL:
    """Both loops; a call leaves the lock of the interpreter to others."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "loops.so")
        command = ["cc", "-O2", "-fwrapv", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
        subprocess.run(command, input=SOURCE.encode(), check=True)
        return ctypes.CDLL(str(library))


LOOPS = _compiled()
CODE = {kind: getattr(LOOPS, kind) for kind in ROUNDS}


class ConstantSpeed:
    """How much slower each core of this machine is, and quotas of devices that make up for it."""

    def __init__(self) -> None:
        cores = range(os.cpu_count() or 1)
        kept = round(KEPT_SECONDS / PAUSE_SECONDS)
        self._seen = [deque[tuple[float, dict[str, float]]](maxlen=kept) for _ in cores]
        self._granted: tuple[Mapping[int, float], str] | None = None
        self._is_over, self._lock = threading.Event(), threading.Lock()
        self._threads = [threading.Thread(target=self._probe, args=(core,)) for core in cores]
        self._threads.append(threading.Thread(target=self._follow))

    def __enter__(self) -> "ConstantSpeed":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def slowness(self, kind: str, since: float) -> list[float]:
        """CPU time that a kind of code took since a moment, relative to a quiet core, by core."""
        each = ([one[kind] for moment, one in [*seen] if moment >= since] for seen in self._seen)
        return [round(float(np.mean(own)), 4) if own else 1.0 for own in each]

    def hold(self, cores: Mapping[int, float], kind: str) -> None:
        """Give devices, by number, so many cores of a quiet machine from now on."""
        with self._lock:
            self._granted = cores, kind
        self._update()

    def let_go(self) -> None:
        """Leave quotas alone from now on."""
        with self._lock:
            self._granted = None

    def _update(self) -> None:
        with self._lock:
            if self._granted is None:
                return
            cores, kind = self._granted
            slow = self.slowness(kind, time.monotonic() - RECENT_SECONDS)
            for device, number in cores.items():
                grant(device, number * slow[core_of(device)])

    def _follow(self) -> None:
        while not self._is_over.wait(UPDATE_SECONDS):
            self._update()

    def _probe(self, core: int) -> None:
        os.sched_setaffinity(threading.get_native_id(), {core})
        while not self._is_over.wait(PAUSE_SECONDS):
            taken = {}
            for kind, code in CODE.items():
                begun = time.thread_time_ns()
                code(ctypes.c_long(ROUNDS[kind]))
                taken[kind] = (time.thread_time_ns() - begun) / ROUNDS[kind] / QUIET_NS[kind]
            self._seen[core].append((time.monotonic(), taken))
