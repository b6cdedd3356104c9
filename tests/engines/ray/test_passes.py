"""Real passes on a local Ray: what they take, and that a policy learns from them."""

import importlib.util
import json
import subprocess
import sys

import pytest
from problems import chain
from rooms import needs_papers
from streamsim.passes import schedule

from streamplace.api import train
from streamplace.engines.ray.passes import MAX_DEVICES, RayPasses, StretchedPass
from streamplace.errors import SettingError
from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph

REAL = """
import json, sys
import numpy as np
from streamplace import Cluster, Device, Operator, Problem, Stream, StreamGraph, train
from streamplace.engines.ray.passes import RayPasses
from streamplace.objectives.registry import OBJECTIVES

names = ["load", "left", "right", "add"]
work = [0.0, 1e9, 1e9, 1e8]
operators = [Operator(n, ipt=w, payload=1e6) for n, w in zip(names, work)]
ends = [("load", "left"), ("load", "right"), ("left", "add"), ("right", "add")]
graph = StreamGraph.of("tasks", operators, [Stream(*pair) for pair in ends], fires="all")
devices = [Device(f"d{d}", mips=1000.0) for d in range(2)]
problem = Problem(graph, Cluster.of(devices, bandwidth="100 MB/s"))
places = np.array([[0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 1, 0]], np.int32)
judge = OBJECTIVES["makespan"]
with RayPasses([problem], pass_s=0.6) as measure:
    real = measure(problem, places)
    asked = []
    def counted(problem, places):
        asked.append(len(places))
        return measure(problem, places)
    with open("small.toml", "w") as file:
        file.write("[model]\\nimitation = 0\\nsteps = 1\\nepisodes = 3\\nwidth = 8\\n")
    trained = train("doppler", [problem], "run", config="small.toml", epochs=1, reward=counted)
    reward = trained.history.epochs[0].reward
simulated = judge.values(problem, places)
print(json.dumps([simulated.tolist(), real.tolist(), asked, reward]))
"""


@needs_papers
@pytest.mark.slow
@pytest.mark.xdist_group("ray")
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_a_real_pass_takes_what_is_simulated_and_ray_besides(tmp_path):
    """Side by side is faster than in turn, sending takes its time, and a policy learns from it."""
    (tmp_path / "real.py").write_text(REAL)
    run = subprocess.run(
        [sys.executable, "real.py"], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert run.returncode == 0, run.stderr
    simulated, real, asked, reward = json.loads(run.stdout.splitlines()[-1])
    assert all(r >= s for s, r in zip(simulated, real, strict=True))
    assert real[1] < real[0]
    assert asked == [3]
    assert 0 < reward < 1


def test_a_stretched_transfer_takes_what_the_simulated_one_takes():
    """Latency, bytes, and what every tuple costs whatever the link."""
    operators = [Operator("a", ipt=1e6, payload=1e4), Operator("b")]
    graph = StreamGraph.of("pair", operators, [Stream("a", "b")], fires="all")
    devices = [Device(name, mips=1000.0) for name in ("d0", "d1")]
    costs = {"latency": "2 ms", "overhead": "3 ms", "gap": "5 ms"}
    problem = Problem(graph, Cluster.of(devices, bandwidth="1 MB/s", **costs))
    stretched = StretchedPass.of(problem, pass_s=1.0)
    seen = schedule(problem.one_pass, [0, 1])
    seconds = float(seen.arrival[0] - seen.departure[0])
    assert seconds == pytest.approx(0.002 + 1e4 / 1e6 + 0.005 + 2 * 0.003)
    assert stretched.sending(0, 0, 1) == pytest.approx(stretched.factor * seconds)


def test_a_cluster_too_large_for_one_machine_is_refused():
    large = Problem(chain(3), Cluster.uniform(MAX_DEVICES + 1))
    with pytest.raises(SettingError, match=f"{MAX_DEVICES} devices, not 17"):
        RayPasses([large])


def test_nothing_but_the_makespan_is_measured(tmp_path):
    options = {"objective": "throughput", "reward": "ray", "epochs": 1}
    with pytest.raises(SettingError, match="throughput"):
        train("pilot-makespan", [chain(3), chain(4)], tmp_path / "run", **options)
