import itertools
import os
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from engine_deployments import DEPLOYMENTS

from streamplace.api import export
from streamplace.engines.deployment import Deployment
from streamplace.engines.names import slug
from streamplace.errors import FormatError
from streamplace.flink.engines.flink import as_flink
from streamplace.flink.engines.flink_kubernetes import as_flink_kubernetes
from streamplace.flink.pin.pinning import offers
from streamplace.io.placements import parse_document
from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph

yaml = pytest.importorskip("yaml")


@cache
def manifests(deployment):
    """Return the documents of an export."""
    return list(yaml.safe_load_all(as_flink_kubernetes(DEPLOYMENTS[deployment])["session.yaml"]))


@cache
def application(deployment):
    """Return the FlinkDeployment of an export, and the data of its ConfigMaps by name."""
    text = as_flink_kubernetes(DEPLOYMENTS[deployment])["application.yaml"]
    *maps, found = yaml.safe_load_all(text)
    return found, {one["metadata"]["name"]: one["data"] for one in maps}


def managers(deployment):
    """Return the pod specifications of the TaskManagers, in device order."""
    pods = (d["spec"]["template"] for d in manifests(deployment) if d["kind"] == "Deployment")
    return [p["spec"] for p in pods if p["metadata"]["labels"]["component"] == "taskmanager"]


def settings(pod):
    """Return what a TaskManager is told, by key."""
    command, *arguments = pod["containers"][0]["args"]
    assert command == "taskmanager"
    return dict(a.removeprefix("-D").replace("$$", "$").split("=", 1) for a in arguments)


def check_offers(told, deployment, device):
    """Hold that a TaskManager with these settings offers what its device does, and no more."""
    keys = {n: f"external-resource.{n}.amount" for n in told["external-resources"].split(";")}
    offered = {n: int(told[key]) for n, key in keys.items() if key in told}
    placed = DEPLOYMENTS[deployment]
    layers = None if placed.is_split else 0
    assert offered == offers(device, placed.problem.cluster.devices.name, layers)


@pytest.mark.parametrize("deployment", list(DEPLOYMENTS))
def test_every_manifest_is_valid(deployment, check_manifest):
    for document in manifests(deployment):
        check_manifest(document)


def strict(schema):
    """Schema by which fields that it does not name are faults."""
    if isinstance(schema, dict):
        made = {key: strict(value) for key, value in schema.items()}
        names = "properties" in schema and isinstance(schema.get("type"), str)
        return made | ({"additionalProperties": False} if names else {})
    return [strict(one) for one in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize("deployment", list(DEPLOYMENTS))
def test_it_is_a_valid_deployment(deployment, check_manifest):
    """By the schema of Flink's operator, and its templates by that of Kubernetes."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = yaml.safe_load(Path(__file__).with_name("flinkdeployment.yml").read_text())
    found, maps = application(deployment)
    jsonschema.validate(found, strict(schema))
    for name, data in maps.items():
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        check_manifest(document | {"data": data})
    spec = found["spec"]
    own = spec["taskManager"]["podTemplate"]["spec"]
    merged = {"spec": {**spec["podTemplate"]["spec"], **own}}  # as the operator does
    pod = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "p"}, "template": merged}
    check_manifest(pod)


@pytest.mark.parametrize("deployment", list(DEPLOYMENTS))
def test_a_pod_starts_as_the_device_that_its_node_is(deployment, tmp_path):
    """Its shell looks it up; what it then offers is what this device offers, and no more."""
    found, maps = application(deployment)
    for name, data in maps.items():
        folder = tmp_path / name.removeprefix("streamplace-")
        folder.mkdir()
        for key, text in data.items():
            (folder / key).write_text(text.replace("/streamplace", str(tmp_path)))
    (tmp_path / "nodes").mkdir()
    script = tmp_path / "entry" / "entry.sh"
    script.write_text(script.read_text().replace("exec /docker-entrypoint.sh", r"printf '%s\0'"))
    names = list(DEPLOYMENTS[deployment].problem.cluster.devices.name)
    for name in names:
        (tmp_path / "nodes" / "node-1").write_text(slug(name))
        told = subprocess.run(
            ["sh", str(script), "taskmanager"],
            env={**os.environ, "NODE": "node-1"},
            capture_output=True,
            check=True,
        ).stdout.decode()
        command, *options, end = told.split("\0")
        assert (command, end) == ("taskmanager", "")
        own = dict(option.removeprefix("-D").split("=", 1) for option in options)
        assert own["taskmanager.resource-id"] == name
        check_offers(found["spec"]["flinkConfiguration"] | own, deployment, name)
    (tmp_path / "nodes" / "node-1").unlink()
    run = subprocess.run(["sh", str(script), "taskmanager"], env={**os.environ, "NODE": "node-1"})
    assert run.returncode == 1


@pytest.mark.parametrize("deployment", list(DEPLOYMENTS))
def test_every_device_is_one_task_manager_that_offers_what_placements_need(deployment):
    """Its id is the device's name, so that REST answers with it; whole operators need no limits."""
    names = DEPLOYMENTS[deployment].problem.cluster.devices.name
    for name, pod in zip(names, managers(deployment), strict=True):
        assert settings(pod)["taskmanager.resource-id"] == name
        check_offers(settings(pod), deployment, name)


RAY_CLUSTER = {"rayVersion", "authOptions", "headGroupSpec", "workerGroupSpecs"}
RAY_GROUP = {"rayStartParams", "template", "groupName", "replicas", "minReplicas", "maxReplicas"}


def test_the_ray_cluster_is_valid(check_manifest):
    """Its pods by the schemas of Kubernetes, what is around them by the names that KubeRay has."""
    page = Path(__file__).parents[2] / "docs" / "how-to" / "ray-cluster.yaml"
    cluster = yaml.safe_load(page.read_text("utf-8"))
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    assert set(cluster["spec"]) == RAY_CLUSTER
    for group in (cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]):
        assert set(group) <= RAY_GROUP
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, **group["template"]}
        check_manifest(pod)


def test_a_device_of_less_than_a_mebibyte_is_refused():
    cluster = Cluster.of([Device("big"), Device("small", memory=500e3)])
    graph = StreamGraph.of("one", [Operator("a", rate=1)], [])
    with pytest.raises(FormatError, match=r"'small' .*1 MiB"):
        export(graph, {"a": "big"}, "flink-kubernetes", cluster)


def test_a_placement_for_flink_says_what_maximum_parallelism_it_is_for():
    """In its file, which is read again, as the setting that a new job takes, and in its manifest.

    The source has no key groups, and two of the other three operators have equally many.
    """
    operators = [
        Operator("src", ipt=1, rate=100),
        Operator("map", ipt=1, max_parallelism=128),
        Operator("join", ipt=1, parallelism=3, max_parallelism=720),
        Operator("sink", ipt=1, max_parallelism=720),
    ]
    names = [operator.name for operator in operators]
    streams = [Stream(*ends) for ends in itertools.pairwise(names)]
    problem = Problem(StreamGraph.of("shop", operators, streams), Cluster.uniform(2))
    deployment = Deployment(problem, problem.placement(np.zeros(4, np.int32)))
    files = as_flink(deployment)
    placement = parse_document(files["placement.json"].encode(), "placement.json")
    groups = {"map": 128, "join": 720, "sink": 720}
    assert placement["max_parallelism"] == groups
    about = "\n".join(placement["about"])
    assert "-D pipeline.max-parallelism=720" in about
    assert "map: 128" in about
    manifest = as_flink_kubernetes(deployment)["application.yaml"]
    assert '"pipeline.max-parallelism": "720"' in manifest
