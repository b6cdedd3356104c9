import json
from typing import Any

import pytest
from engine_deployments import DEPLOYMENTS

from streamplace.api import export
from streamplace.engines.kubernetes import as_kubernetes
from streamplace.model import Operator, StreamGraph

yaml = pytest.importorskip("yaml")


def documents(deployment):
    """Return the documents of an export by their kind."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for document in yaml.safe_load_all(as_kubernetes(deployment)):
        kinds.setdefault(document["kind"], []).append(document)
    return kinds


def environment(document):
    """Return the variables of a Deployment's container; they are annotations of its pod."""
    template = document["spec"]["template"]
    (container,) = template["spec"]["containers"]
    annotations = {
        f"metadata.annotations['{name}']": text
        for name, text in template["metadata"]["annotations"].items()
    }
    return {
        row["name"]: annotations[row["valueFrom"]["fieldRef"]["fieldPath"]]
        for row in container["env"]
    }


@pytest.mark.parametrize("name", list(DEPLOYMENTS))
def test_every_document_is_valid(name, check_manifest):
    for document in yaml.safe_load_all(as_kubernetes(DEPLOYMENTS[name])):
        check_manifest(document)


@pytest.mark.parametrize("name", list(DEPLOYMENTS))
def test_every_device_that_is_used_has_one_deployment_with_its_operators(name):
    """Together they are the placement, whatever operators and devices are called.

    Every pod mounts a file with the whole placement in the native form.
    """
    expected, kinds = DEPLOYMENTS[name].placement.as_dict(), documents(DEPLOYMENTS[name])
    (shared,) = kinds["ConfigMap"]
    assert json.loads(shared["data"]["placement.json"])["assignment"] == expected
    placed = {}
    for document in kinds["Deployment"]:
        told = environment(document)
        operators = json.loads(told["STREAMPLACE_OPERATORS"])
        placed |= dict.fromkeys(operators, told["STREAMPLACE_DEVICE"])
        (volume,) = document["spec"]["template"]["spec"]["volumes"]
        assert volume["configMap"]["name"] == shared["metadata"]["name"]
    assert placed == expected


def test_a_device_asks_for_the_memory_of_its_operators():
    """In whole mebibytes; operators that say nothing ask for nothing."""
    operators = [Operator("a", rate=1, memory=3e6), Operator("b", rate=1, memory=1e6)]
    graph = StreamGraph.of("g", [*operators, Operator("c", rate=1)], [])
    placed = {"a": "x", "b": "x", "c": "y"}
    (text,) = export(graph, placed, "kubernetes").values()
    pods = [d for d in yaml.safe_load_all(text) if d["kind"] == "Deployment"]
    containers = [pod["spec"]["template"]["spec"]["containers"][0] for pod in pods]
    requests = [container["resources"].get("requests") for container in containers]
    assert requests == [{"memory": "4Mi"}, None]


def test_another_placement_changes_only_the_deployments_of_the_operators_that_moved():
    """So applying it starts no other pod."""
    graph = StreamGraph.of("g", [Operator(name, rate=1) for name in "abcd"], [])
    placements = [dict(zip("abcd", devices, strict=True)) for devices in ("xxyz", "xyyz")]
    before, after = (
        {
            d["metadata"]["name"]: d
            for d in yaml.safe_load_all(export(graph, placement, "kubernetes")["placement.yaml"])
            if d["kind"] == "Deployment"
        }
        for placement in placements
    )
    assert {name for name in before if before[name] != after[name]} == {"dev-x", "dev-y"}
