"""Spinners show what is logged, and leave the loggers of a program as they are."""

import logging
import sys

from streamplace.progress import waiting


def test_waiting_leaves_the_level_of_loggers(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    log = logging.getLogger("streamplace")
    before = log.level, log.handlers[:]
    with waiting("placing"):
        assert log.level == before[0]
        assert len(log.handlers) == len(before[1]) + 1
    assert (log.level, log.handlers) == before
