"""A clock, and jobs for tests of profiles and moves; programs of other interpreters are none."""

from pathlib import Path

import pytest
from lazy_flink import Clock, Shop, shop_maker
from moving_cases import MoveCase

from streamplace.engines.flink.measure import cluster as clusters
from streamplace.engines.flink.measure import profile, sampling, sources
from streamplace.io.store import Store

collect_ignore = ["python"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The only time that the profiler sees; no process of this machine is."""
    made = Clock()
    for timed in (sampling, profile):
        monkeypatch.setattr(timed, "time", made)
    for module in (sampling, sources, clusters):
        monkeypatch.setattr(module, "processes_of", lambda rest: {})
    return made


@pytest.fixture
def shop(clock: Clock) -> Shop:
    """A job of a source, a splitter and a sink on three TaskManagers of two cores each."""
    return shop_maker(clock)


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> MoveCase:
    """A move of a job that ends with a savepoint when it is asked to."""
    return MoveCase(monkeypatch, tmp_path / "saved")


@pytest.fixture
def store() -> Store:
    """The user's store, which is empty."""
    return Store.usual()
