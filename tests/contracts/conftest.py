"""What holds in every contract."""

import logging

import pytest


@pytest.fixture(autouse=True)
def _no_answer_had_to_be_repaired(caplog):
    """A search whose value or bound is not the objective's has a defect, though it is repaired."""
    yield
    for phase in ("setup", "call"):
        assert not [each for each in caplog.get_records(phase) if each.levelno >= logging.ERROR]
