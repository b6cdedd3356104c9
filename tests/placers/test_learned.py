"""Placers with the trained weights that are shipped."""

import numpy as np
import pytest
from placer_cases import case

from streamplace.families.branched import Branched, branched
from streamplace.model import Cluster, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget

BRANCHED = Branched(branches=3, depth=4, devices=5, copies=24)
FLOWING = [Problem(g.at_rate(2e4), Cluster.uniform(5)) for g in branched(BRANCHED, seed=7)]


@pytest.mark.parametrize(
    ("name", "mean"),
    [
        case("dream", 0.36665),
        case("encdec", 0.3474),
        case("encdec-gnn", 0.3306),
        case("pilot:refine=none", 0.3745),
    ],
)
def test_shipped_weights_place_as_they_did_when_they_were_trained(name, mean):
    """Without search: whoever changes a feature or a network has to train its model again."""
    placer, throughput = named_placer(name), OBJECTIVES["throughput"]
    values = [placer.place(p, throughput, budget=Budget(1e6)).value for p in FLOWING]
    assert np.mean(values) == pytest.approx(mean, rel=1e-3)
