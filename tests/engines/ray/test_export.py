import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from engine_deployments import DEPLOYMENTS

from streamplace import Cluster, Device, Operator, StreamGraph, export
from streamplace.engines.names import resource

CLUSTER = """
import json, os, sys
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # nodes on loopback
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray
from ray.cluster_utils import Cluster
import placement
offers = json.loads(sys.argv[1])
small = {"num_cpus": 0, "object_store_memory": 80 * 2**20, "include_log_monitor": False}
cluster = Cluster(initialize_head=True, connect=True,
                  head_node_args={**small, "include_dashboard": False, "resources": offers[0]})
try:
    for offer in offers[1:]:
        cluster.add_node(**small, resources=offer)
    cluster.wait_for_nodes()
"""
STOPPED = """finally:
    ray.shutdown()
    cluster.shutdown()
"""

REAL = (
    CLUSTER
    + """
    @ray.remote
    class Operator:
        def resources(self):
            home = ray.get_runtime_context().get_node_id()
            node = next(node for node in ray.nodes() if node["NodeID"] == home)
            return [name for name in node["Resources"] if name.startswith("dev-")]

    actors = {name: Operator.options(**options).remote()
              for name, options in placement.OPTIONS.items()}
    found = {name: ray.get(actor.resources.remote()) for name, actor in actors.items()}
    wrong = placement.check(actors)
    first, *_ = placement.OPTIONS
    stray = {first: actors[next(n for n in actors if found[n] != found[first])]}
    print(json.dumps([found, wrong, placement.check(stray)]))
"""
    + STOPPED
)

REAL_PASS = (
    CLUSTER
    + """    told = lambda name: lambda *taken: [name, *taken]
    results = placement.run({name: told(name) for name in placement.INPUTS})
    right = placement.check()
    print(json.dumps([results, right]))
"""
    + STOPPED
)


def offers(folder, devices):
    """What each node would offer, told by a stand-in for `ray` that prints its arguments."""
    stand_in = folder / "ray"
    stand_in.write_text('#!/bin/sh\nfor a in "$@"; do printf "%s\\n" "$a"; done\n')
    stand_in.chmod(0o755)
    found = []
    for i, device in enumerate(devices):
        lines = subprocess.run(
            ["bash", str(folder / "ray_start.sh"), device, *(["10.0.0.1:6379"] if i else [])],
            env={"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        assert lines[:2] == ["start", "--address=10.0.0.1:6379" if i else "--head"]
        found.append(json.loads(lines[-1].removeprefix("--resources=")))
    stand_in.unlink()
    return found


def printed(folder, script, devices):
    """What a script prints last where Ray has a node for each device."""
    (folder / "real.py").write_text(script)
    run = subprocess.run(
        [sys.executable, "real.py", json.dumps(offers(folder, devices))],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("deployment", list(DEPLOYMENTS))
def test_actors_ask_for_their_node(module, deployment):
    """The start lines and the options fit, with whatever names."""
    options = module("ray", deployment)
    devices = DEPLOYMENTS[deployment].problem.cluster.devices.name
    offered = offers(Path(options.__file__).parent, devices)
    for name, device in DEPLOYMENTS[deployment].placement.items():
        wanted = set(options.OPTIONS[name]["resources"])
        able = [d for d, offer in zip(devices, offered, strict=True) if wanted <= set(offer)]
        assert able == [device]
        assert resource(device) in wanted


def test_an_unknown_device_is_refused(written):
    script = written("ray") / "ray_start.sh"
    run = subprocess.run(["bash", str(script), "box7"], capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr == "unknown device: box7\n"


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_on_a_real_cluster_every_actor_runs_where_it_should(written):
    """Five nodes on loopback; check finds nothing wrong, and an actor that is elsewhere."""
    placed = DEPLOYMENTS["spread over five"]
    devices = placed.problem.cluster.devices.name
    assert len(devices) == 5
    found, wrong, stray = printed(written("ray", "spread over five"), REAL, devices)
    assert found == {name: [resource(device)] for name, device in placed.placement.items()}
    assert wrong == {}
    ((_, lacks),) = stray.items()
    assert lacks == [resource(next(iter(placed.placement.values())))]


def test_a_task_asks_for_a_core_of_its_device(module):
    """Of three cores a third, as whole units; tags as others do; it takes in what feeds it."""
    tasks = module("ray", "tasks")
    asked = {name: options["resources"] for name, options in tasks.OPTIONS.items()}
    assert asked["load"] == asked["right"] == {"dev-cpu": 333}
    assert asked["left"] == {"dev-gpu": 1000, "tag-gpu": 0.001}
    assert tasks.INPUTS == {
        "load": [],
        "left": ["load"],
        "right": ["load"],
        "add": ["left", "right"],
    }


def test_as_many_tasks_run_on_a_device_as_it_has_cores():
    """Whatever their number: the units that a node offers are a multiple of it."""
    graph = StreamGraph.of("one", [Operator("a", ipt=1e6)], [], fires="all")
    for cores in range(1, 257):
        files = export(graph, {"a": "d"}, "ray", Cluster.of([Device("d", cores=cores)]))
        asked = re.search(r"'dev-d': (\d+)", files["placement.py"])
        offered = re.search(r'"dev-d": (\d+)', files["ray_start.sh"])
        assert int(offered[1]) // int(asked[1]) == cores


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
@pytest.mark.parametrize("deployment", ["tasks", "schedule"])
def test_a_pass_runs_where_placed(written, deployment):
    """Two nodes on loopback; every task takes in what its inputs returned."""
    results, wrong = printed(written("ray", deployment), REAL_PASS, ("cpu", "gpu"))
    assert results == {"add": ["add", ["left", ["load"]], ["right", ["load"]]]}
    assert wrong == {}
