"""`benchmarks/constant_speed.py`: quotas of devices follow how much slower the CPU is."""

import threading
import time
from collections.abc import Callable
from functools import partial

import pytest
from benchmark_modules import benchmark_modules


class FakeCpu:
    """A CPU on which code takes some multiple of what it takes on a quiet machine."""

    def __init__(self, quiet_ns: dict[str, float]) -> None:
        self.quiet_ns, self.slow, self.own = quiet_ns, 1.0, threading.local()

    def run(self, kind: str, rounds: int) -> None:
        """Take the CPU time of so many rounds."""
        self.own.ns = self.now() + round(rounds * self.quiet_ns[kind] * self.slow)

    def now(self) -> int:
        """CPU time of this thread."""
        return int(getattr(self.own, "ns", 0))


def waited(is_done: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not is_done() and time.monotonic() < end:
        time.sleep(0.02)
    return is_done()


def test_quotas_follow_the_speed_of_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A core of a quiet machine is as many cores as code takes longer at the time."""
    module = benchmark_modules("constant_speed").constant_speed
    cpu, granted = FakeCpu(module.QUIET_NS), dict[int, float]()
    monkeypatch.setattr(module, "CODE", {kind: partial(cpu.run, kind) for kind in module.CODE})
    monkeypatch.setattr(module.time, "thread_time_ns", cpu.now)
    monkeypatch.setattr(module, "grant", granted.__setitem__)
    monkeypatch.setattr(module, "UPDATE_SECONDS", 0.05)
    monkeypatch.setattr(module, "RECENT_SECONDS", 0.3)
    with module.ConstantSpeed() as speed:
        speed.hold({0: 0.2, 1: 0.1}, "independent")
        assert granted == pytest.approx({0: 0.2, 1: 0.1})
        cpu.slow = 1.5
        assert waited(lambda: granted == pytest.approx({0: 0.3, 1: 0.15}, rel=1e-3))
        begun = time.monotonic()
        speed.let_go()
        granted.clear()
        assert waited(lambda: speed.slowness("dependent", begun)[0] > 1)
        assert speed.slowness("dependent", begun)[0] == pytest.approx(1.5, rel=1e-3)
        assert not granted
