"""A clock, and jobs for tests of profiles and moves; programs of other interpreters are none."""

from typing import Any

import pytest
from fake_flink import CPU, Clock, LazyFlink, Shop, shop_vertices

from streamplace.engines.flink.measure import cluster as clusters
from streamplace.engines.flink.measure import sampling, source_lag, steadiness, windows

collect_ignore = ["python"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The only time that the profiler sees; no process of this machine is."""
    made = Clock()
    for timed in (sampling, windows, steadiness):
        monkeypatch.setattr(timed, "time", made)
    for module in (windows, source_lag, clusters):
        monkeypatch.setattr(module, "processes_of", lambda rest: {})
    return made


@pytest.fixture
def shop(clock: Clock) -> Shop:
    """A job of a source, a splitter and a sink on three TaskManagers of two cores each."""

    def make(blocked: float = 0.0, pending: float | None = None, **facts: Any) -> LazyFlink:
        devices = ("dev-0", "dev-1", "dev-2")
        usual: dict[str, Any] = {
            "devices": devices,
            "duration": 10 * 60_000,
            "process_cpu": dict.fromkeys(devices, sum(CPU.values())),
            "settings": {"jobmanager.scheduler": "adaptive"},
            "facts": {"schedulerType": "Default"},
            "key_groups": 128,
        }
        return LazyFlink(clock, shop_vertices(blocked, pending), **(usual | facts))

    return make
