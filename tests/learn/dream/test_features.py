"""Features and their scale."""

import numpy as np
import pytest
from dream_cases import batch_of
from hypothesis import given
from problems import PROBLEMS, diamond, lone
from strategies import problems

from streamplace.learn.models.dream.features import MIN_SHARE, operator_features, operator_scale
from streamplace.model import Cluster, Problem

DIAMOND = Problem(diamond(), Cluster.uniform(2))


def test_loads_and_transfers_of_a_diamond():
    """10,000 tuples/s of 3e4 bytes on links of 1000 Mbps, half of them to the left."""
    found = operator_features(batch_of([DIAMOND]))[0].numpy()
    load = np.array([0.04, 0.4, 0.6, 0.04])
    transfer = np.array([2.4, 0.4, 0.8, 0.0])
    assert found[:, 2] == pytest.approx(load)
    assert found[:, 3] == pytest.approx(transfer)
    assert found[:, :2] == pytest.approx(np.log(np.maximum(np.c_[load, transfer], MIN_SHARE)))


@given(problems())
def test_features_are_finite(problem):
    assert operator_features(batch_of([problem])).isfinite().all()


def test_a_scale_standardises_what_it_was_made_of():
    """Mean 0 and deviation 1, but for features that do not vary; padding does not count."""
    batch = batch_of([PROBLEMS["fork-join"], DIAMOND])
    scale = operator_scale(batch)
    values = (operator_features(batch)[batch.present].numpy() - scale.mean) / scale.std
    assert values.mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert values.std(axis=0) == pytest.approx(1)
    alone = operator_scale(batch_of([Problem(lone(), Cluster.uniform(1))]))
    assert alone.std.tolist() == [1.0] * 4
