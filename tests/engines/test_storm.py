import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from engine_deployments import DEPLOYMENTS

from streamplace.engines.deployment import Deployment
from streamplace.engines.names import resource, tag_resource
from streamplace.engines.storm import as_storm
from streamplace.model import Cluster, Device, Operator, Problem, StreamGraph

STUBS = Path(__file__).parent / "storm"
"""What Storm's own classes promise, as far as Placement.java asks for it."""


def compile_placement(folder: Path) -> None:
    """Compile a class in a folder against them."""
    sources = [str(file) for file in (folder / "Placement.java", *STUBS.rglob("*.java"))]
    subprocess.run(["javac", "-encoding", "UTF-8", "-d", str(folder), *sources], check=True)


@pytest.mark.parametrize("deployment", list(DEPLOYMENTS))
def test_each_supervisor_offers_its_own_resource_and_its_tags(deployment: str) -> None:
    """In valid YAML, under the key that Storm reads."""
    yaml = pytest.importorskip("yaml")
    files = as_storm(DEPLOYMENTS[deployment])
    offers = [yaml.safe_load(t) for name, t in files.items() if name.startswith("supervisor-")]
    expected = [
        [resource(device.name), *map(tag_resource, sorted(device.tags))]
        for device in DEPLOYMENTS[deployment].problem.cluster.devices
    ]
    assert [list(offer["supervisor.resources.map"]) for offer in offers] == expected


def test_memory_that_a_supervisor_lacks_by_default_is_named() -> None:
    """Executors take 128 MB each, and supervisors offer 4096 MB unless they say otherwise."""
    operators = [Operator(f"v{i}", rate=1.0) for i in range(40)]
    devices = [Device("d0"), Device("d1", memory="8 GiB"), Device("d2", memory="1 GiB")]
    problem = Problem(StreamGraph.of("many", operators, []), Cluster.of(devices))
    files = as_storm(Deployment(problem, problem.placement([0] * 35 + [1] * 5)))
    assert "on d0 need 4736 MB, and its supervisor\n// offers 4096;" in files["Placement.java"]
    assert "on d1" not in files["Placement.java"]
    assert '"topology.worker.max.heap.size.mb", 4736.0' in files["Placement.java"]
    assert "supervisor.memory.capacity.mb: 8192.0\n" in files["supervisor-d1.yaml"]
    assert "capacity" not in files["supervisor-d0.yaml"]


@pytest.mark.skipif(shutil.which("javac") is None, reason="no Java compiler")
@pytest.mark.parametrize("deployment", ["shop by subtasks", "odd names"])
def test_components_ask_for_their_device(written: Callable[..., Path], deployment: str) -> None:
    """Compiled and run against the interfaces of Storm that it uses, with whatever names."""
    folder = written("storm", deployment)
    compile_placement(folder)
    placed = DEPLOYMENTS[deployment]
    operators = placed.placed.graph.operators
    run = subprocess.run(
        ["java", "-XX:+UseSerialGC", "-cp", str(folder), "Main"],
        input="\0".join(operators.name).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    expected = ""
    for (name, device), tags in zip(placed.placement.items(), operators.requires, strict=True):
        wanted = [resource(device), *map(tag_resource, sorted(tags))]
        expected += name + "\n" + "".join(f"  {r} 1.0\n" for r in wanted)
    assert run.stdout.decode().startswith(expected)
    assert "topology.scheduler.strategy" in run.stdout.decode()
