"""Errors of predictions, from runs whose rates were predicted and measured."""

from math import exp, hypot, log, sqrt

import numpy as np
import pytest

from streamplace import Operator, StreamGraph
from streamplace.errors import SettingError
from streamplace.io.ledger import LedgerEntry, errors_for, errors_of_runs, recorded_runs
from streamplace.model.graph import PROFILE_DRIFT, PROFILE_SPREAD, PROFILE_WINDOWS

ENTRY = LedgerEntry("clicks", 100.0, 90.0, True, 80.0, 120.0, 0.9, "flink move")
MEASURED = StreamGraph.of("clicks", [Operator("a", rate=1.0)], [], {PROFILE_WINDOWS: 4})


def runs(job, *ratios):
    """Runs that were held back at these shares of what was predicted."""
    return [LedgerEntry(job, 100.0, 100.0 * ratio) for ratio in ratios]


def test_an_interval_is_judged_where_the_run_tells_it():
    """A job that keeps up may carry more than it was offered."""
    assert ENTRY.held is True
    assert LedgerEntry("a", 100.0, 70.0, True, 80.0, 120.0).held is False
    assert LedgerEntry("a", 100.0, 70.0, False, 80.0, 120.0).held is None
    assert LedgerEntry("a", 100.0, 130.0, False, 80.0, 120.0).held is False
    assert LedgerEntry("a", 100.0, 90.0).held is None
    assert LedgerEntry("a", 100.0, 70.0, False).score is None
    assert LedgerEntry("a", 100.0, 70.0).score == pytest.approx(log(0.7))


def test_what_was_allowed_for_is_no_error_of_a_prediction():
    """A job that was not warm may change by half, and only half of the rate was predicted."""
    cold = LedgerEntry("a", 100.0, 60.0, drift=0.5)
    assert cold.score == pytest.approx(log(0.6 * 1.5))
    assert LedgerEntry("a", 100.0, 140.0, drift=0.5).score == 0.0
    assert LedgerEntry("a", 100.0, 80.0, kept=50.0).score == pytest.approx(log(30 / 50))
    assert LedgerEntry("a", 100.0, 40.0, kept=50.0).score == pytest.approx(log(0.4))


def test_errors_come_from_the_runs_of_other_jobs():
    """Those of the job itself would make its predictions look better than those of a new job."""
    others = [run for i in range(9) for run in runs(f"other {i}", 0.9, 0.9)]
    errors = errors_of_runs([*others, *runs("clicks", 0.1)], "clicks")
    assert errors.least == pytest.approx(0.9)
    assert errors.origin == "errors of 18 runs of 9 jobs recorded with streamplace"


def test_recorded_runs_of_the_package_are_whole():
    found = recorded_runs()
    assert len({entry.job for entry in found}) >= 8
    assert all(entry.score is not None for entry in found if entry.is_limited)


def test_a_graph_that_was_not_measured_has_no_interval():
    drawn = StreamGraph.of("drawn", [Operator("a", rate=1.0)], [])
    assert errors_for(drawn) is None
    with pytest.raises(SettingError, match="was not measured"):
        errors_for(drawn, 0.8)


def profiled(spread, drift=0.0):
    """A graph whose profile has a spread, as far as it is recorded."""
    facts = {PROFILE_WINDOWS: 6.0} | ({} if spread is None else {PROFILE_SPREAD: spread})
    facts |= {PROFILE_DRIFT: drift} if drift else {}
    return StreamGraph.of("clicks", [Operator("a", rate=1.0)], [], facts)


def test_a_profile_that_is_less_steady_has_a_wider_interval():
    """One that is as steady as usual has the same; what a cold job varied by is in its drift."""
    usual = errors_for(profiled(None))
    assert usual.of_spread == 1.0
    assert errors_for(profiled(0.03)) == usual
    wide = errors_for(profiled(0.2))
    ratio = hypot(0.1, 0.2) / hypot(0.1, 0.03)
    assert [log(end) for end in (wide.low, wide.high, wide.least)] == pytest.approx(
        [ratio * log(end) for end in (usual.low, usual.high, usual.least)]
    )
    assert wide.least * wide.of_spread == pytest.approx(usual.least)
    assert errors_for(profiled(0.2, drift=0.5)) == errors_for(profiled(None, 0.5))


@pytest.mark.parametrize(
    "spread", [*(pytest.param(s, marks=pytest.mark.slow) for s in (0.01, 0.1)), 0.3]
)
def test_intervals_hold_as_often_as_they_say_whatever_the_spread(spread):
    """The errors of jobs grow with the spread of their profiles, which differs between jobs."""
    rng, jobs, trials, confidence = np.random.default_rng(5), 19, 600, 0.9
    spreads = (0.01, 0.1, 0.3)

    def ratio(of):
        return exp(rng.normal(0, hypot(0.1, max(0.03, of))))

    held = above = 0
    for _ in range(trials):
        drawn = [float(rng.choice(spreads)) for _ in range(jobs)]
        known = [LedgerEntry(f"{i}", 1.0, ratio(s), spread=s) for i, s in enumerate(drawn)]
        errors = errors_of_runs(known, "new", confidence).for_spread(spread)
        measured = ratio(spread)
        held += errors.low <= measured <= errors.high
        above += measured >= errors.least
    error = 4 * sqrt(confidence * (1 - confidence) / trials)
    for share in (held / trials, above / trials):
        assert confidence - error <= share <= confidence + 1 / (jobs + 1) + error
