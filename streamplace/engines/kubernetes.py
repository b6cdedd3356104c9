"""Kubernetes: one Deployment per device, which runs its operators on the node with its label.

Flink on Kubernetes uses the same labels of nodes.
"""

import json
import math
from collections.abc import Iterator

from streamplace.engines.deployment import Deployment, Element
from streamplace.engines.names import slug
from streamplace.engines.registry import export
from streamplace.engines.text import comment, group_notes, listed, quoted_yaml
from streamplace.io.placements import order_facts
from streamplace.model.devices import Device

IMAGE = "registry.example/my-app:1"
NAME = "streamplace-placement"
FOLDER = "/etc/streamplace"

SHARED = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
data:
  placement.json: {document}
"""

DEVICE = """\
---
{title}apiVersion: v1
kind: Service
metadata:
  name: {resource}
spec:
  clusterIP: None  # the name leads to the pod itself, whatever its ports are
  selector: {{device: {resource}}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {resource}
spec:
  replicas: 1
  strategy: {{type: Recreate}}  # an operator never runs twice
  selector:
    matchLabels: {{device: {resource}}}
  template:
    metadata:
      labels: {{device: {resource}}}
      annotations:
        streamplace-device: {device}
        streamplace-operators: {operators}
    spec:
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
              - matchExpressions:
{terms}
      containers:
        - name: operators
          image: {image}
          env:
            - name: STREAMPLACE_DEVICE
              valueFrom:
                fieldRef: {{fieldPath: "metadata.annotations['streamplace-device']"}}
            - name: STREAMPLACE_OPERATORS
              valueFrom:
                fieldRef: {{fieldPath: "metadata.annotations['streamplace-operators']"}}
          resources: {resources}
          volumeMounts:
            - {{name: placement, mountPath: {folder}}}
      volumes:
        - {{name: placement, configMap: {{name: {name}}}}}
"""
DEVICE_LABEL = "streamplace-device"


@export("kubernetes", suffix=".yaml", keeps_order=True)
def as_kubernetes(deployment: Deployment) -> str:
    """Kubernetes manifest for any engine: one Deployment per device, on the node of its label."""
    document = json.dumps(
        {
            "graph": deployment.problem.graph.name,
            "parallelism": deployment.problem.graph.operators.parallel,
            "assignment": deployment.placement.as_dict(),
            **order_facts(deployment.placement),
        },
        ensure_ascii=False,
    )
    shared = SHARED.format(name=NAME, document=quoted_yaml(document))
    resources = deployment.resources
    devices = (_device(deployment, e, resources[e.device]) for e in deployment.elements)
    return comment(_notes(deployment)) + shared + "".join(devices)


def _notes(deployment: Deployment) -> Iterator[str]:
    yield f"{deployment.title}."
    yield ""
    yield "For applications of your own, of any engine. For Flink: streamplace export --to"
    yield "flink-kubernetes."
    yield ""
    yield from node_labels(deployment)
    yield f"     2. Put the image of your application for {IMAGE}. It runs the operators"
    yield "        that STREAMPLACE_OPERATORS lists (a JSON list of names), and finds the others"
    yield f"        in {FOLDER}/placement.json: those of a device called d0 are on the"
    yield "        host dev-d0, the Service of that device."
    yield "     3. kubectl apply -f FILE. Applied again for another placement, it starts only the"
    yield "        pods whose operators are others; kubectl delete deployment,service dev-…"
    yield "        removes devices that run none any more."
    yield "Check: kubectl get pods -o wide shows each pod on the node of its device. A pod without"
    yield "       a node with its labels stays pending."
    if deployment.is_split:
        yield "Subtasks are placed one by one: their names end in their numbers."
    yield from group_notes(deployment)


def _device(deployment: Deployment, element: Element, resource: str) -> str:
    device = deployment.problem.cluster.devices[element.device]
    terms = "\n".join(
        f"{' ' * 18}- {{key: {key}, operator: In, values: [{quoted_yaml(value)}]}}"
        for key, value in labels(device)
    )
    operators = deployment.unit_problem.graph.operators
    size = math.ceil(sum(float(operators[name].memory) for name in element.operators) / 2**20)
    return DEVICE.format(
        title=comment([f"Device {listed([device.name])}"]),
        resource=resource,
        terms=terms,
        image=IMAGE,
        device=quoted_yaml(device.name),
        operators=quoted_yaml(json.dumps(element.operators, ensure_ascii=False)),
        resources=f"{{requests: {{memory: {size}Mi}}}}" if size else "{}",
        folder=FOLDER,
        name=NAME,
    )


def labels(device: Device) -> Iterator[tuple[str, str]]:
    """Labels of the node of a device."""
    yield DEVICE_LABEL, slug(device.name)
    for tag in sorted(device.tags):
        yield f"streamplace-tag-{slug(tag)}", "true"


def node_labels(deployment: Deployment) -> Iterator[str]:
    """Instructions for labelling nodes as devices."""
    yield "Use: 1. Label one node per device, and nodes with special hardware, once:"
    for device in deployment.problem.cluster.devices:
        pairs = " ".join(f"{key}={value}" for key, value in labels(device))
        yield f"          kubectl label node NODE {pairs}"
