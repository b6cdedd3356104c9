"""Conformal intervals: how often they hold for jobs that nobody has seen, and where they end."""

from math import ceil, exp, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.errors import SettingError
from streamplace.model.prediction_intervals import PredictionErrors, conformal_quantile

TRIALS = 1000


def normal(rng, runs):
    """Runs of one job, whose errors have a part in common."""
    return (rng.normal(0.05, 0.1) + rng.normal(0, 0.05, runs)).tolist()


def skewed(rng, runs):
    """Most jobs carry a little less than predicted, some much less."""
    return (-rng.exponential(0.1) * np.ones(runs) - 0.02 * rng.random(runs)).tolist()


def coverage(noise, jobs, runs, confidence):
    """Shares of new jobs of which a run is in its interval, and at least at its lower end."""
    rng = np.random.default_rng(7)
    inside = above = 0
    for _ in range(TRIALS):
        known = {str(i): noise(rng, runs if i % 2 else 1) for i in range(jobs)}
        errors = PredictionErrors.of(known, confidence, "")
        ratio = exp(noise(rng, 1)[0])
        inside += errors.low <= ratio <= errors.high
        above += ratio >= errors.least
    return inside / TRIALS, above / TRIALS


@pytest.mark.parametrize("noise", [normal, skewed])
@pytest.mark.parametrize(("jobs", "confidence"), [(9, 0.9), (19, 0.8), (40, 0.9)])
def test_intervals_cover_new_jobs_as_they_say(noise, jobs, confidence):
    """Within four standard deviations of a binomial, however often each job has run.

    They cover more than asked for by the weight of one job at most.
    """
    error = 4 * sqrt(confidence * (1 - confidence) / TRIALS)
    for runs in (1, 5):
        covered = coverage(noise, jobs, runs, confidence)
        assert min(covered) >= confidence - error
        assert max(covered) <= confidence + 1 / (jobs + 1) + error


def test_too_few_jobs_support_less():
    errors = PredictionErrors.of({"a": [-0.2, 0.1], "b": [0.05]}, 0.9, "")
    assert errors.supported == pytest.approx(2 / 3)
    assert errors.low == pytest.approx(exp(-0.2))


def test_with_one_run_of_each_job_the_quantile_is_the_score_of_its_rank():
    scores = {str(i): [float(i)] for i in range(1, 20)}
    for confidence in (0.5, 0.72, 0.9, 0.95):
        assert conformal_quantile(scores, confidence).value == ceil(20 * confidence - 1e-9)


@given(
    st.dictionaries(
        st.text(max_size=3), st.lists(st.floats(-1, 1), min_size=1, max_size=5), min_size=1
    ),
    st.floats(0.05, 0.95),
    st.floats(0.05, 0.95),
)
def test_confidence_widens_intervals(scores, one, other):
    """And to hold at one end is never more to ask than at both."""
    less, more = (PredictionErrors.of(scores, c, "") for c in sorted((one, other)))
    assert more.low <= less.low <= 1 <= less.high <= more.high
    assert more.least <= less.least <= 1
    assert more.low <= more.least


def test_jobs_weigh_the_same_however_often_they_ran():
    """A hundred good runs of one job do not hide that another is far off."""
    scores = {"often": [0.01] * 100, "once": [-0.5]}
    assert PredictionErrors.of(scores, 0.6, "").least == pytest.approx(exp(-0.5))


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 2.0])
def test_a_confidence_is_between_nothing_and_certainty(confidence):
    with pytest.raises(SettingError):
        PredictionErrors.of({"a": [0.0]}, confidence, "")
