"""A clock of their own for tests of profiles; programs for other interpreters are no tests."""

import pytest
from lazy_flink import Clock

from streamplace.engines.flink import job_watch, sampling, warm

collect_ignore = ["python"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The only time that the profiler sees; no process of this machine is."""
    made = Clock()
    monkeypatch.setattr(sampling, "time", made)
    monkeypatch.setattr(warm, "time", made)
    monkeypatch.setattr(job_watch, "processes_of", lambda rest: {})
    return made
