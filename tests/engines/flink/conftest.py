"""A clock and a job for tests of profiles; programs for other interpreters are no tests."""

from collections.abc import Callable

import pytest
from lazy_flink import Clock
from shop_flink import ShopFlink, shop_maker

from streamplace.engines.flink.measure import cluster as clusters
from streamplace.engines.flink.measure import job_watch, sampling, warm

collect_ignore = ["python"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The only time that the profiler sees; no process of this machine is."""
    made = Clock()
    monkeypatch.setattr(sampling, "time", made)
    monkeypatch.setattr(warm, "time", made)
    monkeypatch.setattr(job_watch, "processes_of", lambda rest: {})
    return made


@pytest.fixture
def shop(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ShopFlink]:
    """A job of a source, a splitter and a sink on three TaskManagers of two cores each."""
    monkeypatch.setattr(clusters, "processes_of", lambda rest: {})
    return shop_maker(clock)
