"""A clock, and jobs for tests of profiles and moves; programs of other interpreters are none."""

from typing import Any

import pytest
from fake_flink import Clock, LazyFlink, shop_vertices
from operator_stand_in import reconciled

from streamplace.flink.cpu import reporter, thread_dumps
from streamplace.flink.measure import cluster as clusters
from streamplace.flink.measure import profile as profiling
from streamplace.flink.measure import sampling, source_lag, windows
from streamplace.flink.measure.profile import CpuOrigin

collect_ignore = ["python"]


@pytest.fixture
def clock(monkeypatch):
    """The only time that the profiler sees; no process of this machine is."""
    made = Clock()
    for timed in (sampling, windows, profiling, reporter, thread_dumps):
        monkeypatch.setattr(timed, "time", made)
    for module in (windows, source_lag, clusters):
        monkeypatch.setattr(module, "processes_of", lambda rest: {})
    return made


@pytest.fixture
def context(pods, monkeypatch):
    """The cluster's own."""
    monkeypatch.setenv("KUBECONFIG", str(pods.work / "kubeconfig"))


@pytest.fixture
def operator(pods, context):
    """The operator of a resource whose status alone shows what is done."""
    with reconciled(pods, "count") as running:
        yield running


@pytest.fixture
def shop(clock, monkeypatch):
    """A job of a source, a splitter and a sink on three TaskManagers of two cores each.

    Their CPU is what they are busy, which is no error.
    """
    monkeypatch.setattr(profiling, "BY_BUSY_TIME", CpuOrigin("busy time"))

    def make(blocked=0.0, pending=None, **facts):
        devices = ("dev-0", "dev-1", "dev-2")
        usual: dict[str, Any] = {
            "devices": devices,
            "duration": 10 * 60_000,
            "process_cpu": None,
            "settings": {"jobmanager.scheduler": "adaptive"},
            "facts": {"schedulerType": "Default"},
            "key_groups": 128,
        }
        return LazyFlink(clock, shop_vertices(blocked, pending), **(usual | facts))

    return make
