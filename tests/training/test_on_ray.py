"""Training on Ray: the same bits as on one machine, whoever dies."""

import os
from dataclasses import replace

import pytest
import stub_model
from histories import assert_same
from problems import chain

from streamplace.api.training import Train
from streamplace.errors import SettingError
from streamplace.learn.history import Watcher
from streamplace.learn.registry import MODELS
from streamplace.model import Cluster, Problem
from streamplace.training.run import TrainRequest, run_training

ray = pytest.importorskip("ray")
ray.cloudpickle.register_pickle_by_value(stub_model)
pytestmark = pytest.mark.xdist_group("ray")

PROBLEMS = tuple(
    Problem(chain(3 + i % 4, ipt=4e4 * (1 + i % 5), rate=5e3), Cluster.uniform(3))
    for i in range(12)
)


class Removes(Watcher):
    """Removes a node of a cluster after the third step."""

    def __init__(self, cluster, node):
        self._cluster, self._node, self._steps = cluster, node, 0

    def step(self, epoch, report):
        """Count."""
        self._steps += 1
        if self._steps == 3:
            self._cluster.remove_node(self._node, allow_graceful=False)


@pytest.fixture
def training(monkeypatch, tmp_path):
    """A supervised stub, with four shards."""
    assert "pilot" in list(MODELS)  # all are found before the stub is among them
    pupil = stub_model.model(name="pupil", supervised=True)
    monkeypatch.setattr(MODELS, "_registered", {**MODELS._registered, "pupil": pupil})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "four.toml").write_text("[training]\nshards = 4\n")
    return TrainRequest("pupil", PROBLEMS, tmp_path / "run", config=tmp_path / "four.toml")


@pytest.mark.slow
def test_lost_nodes_alter_no_bit(training, tmp_path, monkeypatch):
    from ray.cluster_utils import Cluster as RayCluster

    run_training(replace(training, folder=tmp_path / "here"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    cluster = RayCluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
        cluster.wait_for_nodes()
        watcher = Removes(cluster, nodes[0])
        there = replace(training, folder=tmp_path / "there", on=cluster.address)
        run_training(there, watcher=watcher)
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert_same(tmp_path / "there", tmp_path / "here", "last.safetensors")


def test_real_passes_are_not_measured_on_ray():
    with pytest.raises(SettingError, match="reward ray"):
        Train.of({"model": "dream", "graphs": (), "out": "x", "on": "ray", "reward": "ray"})
