from typing import Any

import numpy as np
import pytest
from problems import PROBLEMS, chain, constrained
from streamsim import throughput

from streamplace.learn.models.pilot.learner import elsewhere
from streamplace.model import Cluster, Problem


def clusters(count: Any = 60, problem: Any = PROBLEMS["chain"]) -> Any:
    """Clusters that a problem is put on."""
    rng = np.random.default_rng(0)
    return [elsewhere(problem, rng).cluster for _ in range(count)]


def test_clusters_have_two_to_five_devices() -> None:
    """Of every number some."""
    assert {cluster.n_devices for cluster in clusters()} == {2, 3, 4, 5}


def test_some_clusters_are_even_and_some_are_not() -> None:
    """Pilot must know both."""
    kinds = [len(set(cluster.interchangeable.tolist())) for cluster in clusters()]
    assert 10 < sum(kind == 1 for kind in kinds) < 50


def test_speeds_and_bandwidths_stay_near_the_usual_ones() -> None:
    """At most four times as fast or as slow, and not always the same."""
    for cluster in clusters():
        wires = cluster.bandwidth_bps[~np.eye(cluster.n_devices, dtype=bool)]
        assert (
            2500 / 4.001 < cluster.devices.mips.min() <= cluster.devices.mips.max() < 2500 * 4.001
        )
        assert 1e9 / 4.001 < wires.min() <= wires.max() < 1e9 * 4.001
    assert len({cluster.devices.mips[0] for cluster in clusters()}) > 50


def test_the_same_generator_gives_the_same_cluster() -> None:
    """Randomness is passed in."""
    one, same = (elsewhere(PROBLEMS["diamond"], np.random.default_rng(4)) for _ in range(2))
    assert one.cluster == same.cluster
    assert one.cluster != elsewhere(PROBLEMS["diamond"], np.random.default_rng(5)).cluster


@pytest.mark.parametrize("name", PROBLEMS)
def test_any_problem_can_be_elsewhere(name: Any) -> None:
    """What flows is the same, nothing is forbidden, and placements have a value.

    Constant loads may fill slower devices, so that nothing flows there.
    """
    rng = np.random.default_rng(1)
    for _ in range(5):
        problem = elsewhere(PROBLEMS[name], rng)
        anywhere = rng.integers(problem.n_devices, size=(3, problem.n_operators))
        assert np.array_equal(problem.instance.traffic, PROBLEMS[name].instance.traffic)
        assert problem.legal(anywhere).all()
        assert len(problem.instance.constant) or (throughput(problem.instance, anywhere) > 0).all()


def test_constraints_stay_behind() -> None:
    """They name devices that are not there."""
    assert elsewhere(constrained(), np.random.default_rng(0)).rules is None


def test_a_single_device_has_links_elsewhere() -> None:
    """There is no usual bandwidth to go by."""
    problem = elsewhere(Problem(chain(), Cluster.uniform(1)), np.random.default_rng(0))
    assert problem.n_devices > 1
    assert np.isfinite(problem.instance.seconds_per_byte).all()
