"""Features and their scale."""

import numpy as np
import pytest
from hypothesis import given
from problems import PROBLEMS, diamond, lone
from strategies import problems

from streamplace.learn.models.dream.graphs import LEAST, OperatorScale, operator_features
from streamplace.model import Cluster, Problem

DIAMOND = Problem(diamond(), Cluster.uniform(2))


def test_loads_and_transfers_of_a_diamond():
    """10,000 tuples/s of 3e4 bytes on links of 1000 Mbps, half of them to the left."""
    found = operator_features(DIAMOND)
    load = np.array([0.04, 0.4, 0.6, 0.04])
    transfer = np.array([2.4, 0.4, 0.8, 0.0])
    assert found[:, 2] == pytest.approx(load)
    assert found[:, 3] == pytest.approx(transfer)
    assert found[:, :2] == pytest.approx(np.log(np.maximum(np.c_[load, transfer], LEAST)))


@given(problems())
def test_features_are_finite(problem):
    assert np.isfinite(operator_features(problem)).all()


def test_a_scale_standardises_what_it_was_made_of():
    """Mean 0 and deviation 1, but for features that do not vary."""
    several = [PROBLEMS["fork-join"], DIAMOND]
    scale = OperatorScale.of(several)
    values = np.concatenate([scale.operators(problem) for problem in several])
    assert values.mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert values.std(axis=0) == pytest.approx(1)
    alone = Problem(lone(), Cluster.uniform(1))
    assert not OperatorScale.of([alone]).operators(alone).any()
