"""Flink on Kubernetes: a session cluster, and a job of Flink's operator; devices are nodes."""

from collections.abc import Iterator, Mapping

from streamplace.engines.deployment import Deployment
from streamplace.engines.flink.local.config import Settings, device_settings
from streamplace.engines.flink_kubernetes_operator import application
from streamplace.engines.kubernetes import labels, mebibytes, node_labels, sizes
from streamplace.engines.names import slug
from streamplace.engines.registry import export
from streamplace.engines.text import comment, group_notes, listed, quoted_yaml
from streamplace.model.devices import Device

IMAGE = "flink:2.3.0"
CONTROL = """\
apiVersion: v1
kind: Service
metadata:
  name: flink-jobmanager
  labels: {{app: flink}}
spec:
  selector: {{app: flink, component: jobmanager}}
  ports:
    - {{name: rpc, port: 6123}}
    - {{name: blob, port: 6124}}
    - {{name: rest, port: 8081}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: flink-jobmanager
  labels: {{app: flink}}
spec:
  replicas: 1
  selector:
    matchLabels: {{app: flink, component: jobmanager}}
  template:
    metadata:
      labels: {{app: flink, component: jobmanager}}
    spec:
      containers:
        - name: jobmanager
          image: {image}
          args: ["jobmanager"]
          ports:
            - {{name: rpc, containerPort: 6123}}
            - {{name: blob, containerPort: 6124}}
            - {{name: rest, containerPort: 8081}}
          env:
            - {{name: JOB_MANAGER_RPC_ADDRESS, value: flink-jobmanager}}
"""

TASK_MANAGER = """\
---
{title}apiVersion: apps/v1
kind: Deployment
metadata:
  name: flink-taskmanager-{name}
  labels: {{app: flink}}
spec:
  replicas: 1
  strategy: {{type: Recreate}}  # never two TaskManagers of one device
  selector:
    matchLabels: {{app: flink, component: taskmanager, device: {resource}}}
  template:
    metadata:
      labels: {{app: flink, component: taskmanager, device: {resource}}}
    spec:
      nodeSelector:
{selector}
      affinity:  # devices are different nodes
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels: {{app: flink, component: taskmanager}}
      containers:
        - name: taskmanager
          image: {image}
          args:
            - taskmanager
{settings}
          ports:
            - {{name: rpc, containerPort: 6122}}
          resources:
            requests: {{cpu: "{cores}", memory: {memory}Mi}}
            limits: {{cpu: "{cores}", memory: {memory}Mi}}
          env:
            - {{name: JOB_MANAGER_RPC_ADDRESS, value: flink-jobmanager}}
"""


@export("flink-kubernetes", all_devices=True)
def as_flink_kubernetes(deployment: Deployment) -> dict[str, str]:
    """Flink on Kubernetes: a session cluster, and an application for Flink's operator."""
    devices = deployment.problem.cluster.devices
    control = CONTROL.format(image=IMAGE)
    layers = None if deployment.is_split else 0
    own = deployment.resources
    managers = (_task_manager(device, own, layers) for device in devices)
    return {
        "session.yaml": comment(_notes(deployment)) + control + "".join(managers),
        "application.yaml": application(deployment),
    }


def _notes(deployment: Deployment) -> Iterator[str]:
    yield f"{deployment.title}."
    yield ""
    yield "A session cluster without an operator: jobs are submitted to it, again and again."
    yield ""
    yield from node_labels(deployment)
    yield "     2. kubectl apply -f session.yaml, with the image of your Flink version"
    yield "     3. Run the job with its placement: streamplace export PLACEMENT --to flink"
    yield "Check: kubectl get pods -o wide shows a pod on each labelled node;"
    yield "       kubectl port-forward service/flink-jobmanager 8081 and then"
    yield "       streamplace flink verify --rest http://localhost:8081 --job ID …"
    yield "       tell whether every operator runs on its device."
    yield ""
    yield "Every device is a TaskManager with a resource of its own, which pins what asks for it."
    if deployment.is_split:
        yield "Limits (lim-…) let subtasks be placed one by one, now and later."
    else:
        yield "Whole operators can be placed on it. For subtasks, export a placement of subtasks."
    yield from group_notes(deployment)


def _task_manager(device: Device, own: Mapping[str, str], layers: int | None) -> str:
    settings = {
        "taskmanager.rpc.port": 6122,
        "taskmanager.numberOfTaskSlots": 1,
        **sizes(device),
        **device_settings(device.name, tuple(own), layers),
    }
    selector = "".join(f"{' ' * 8}{key}: {quoted_yaml(value)}\n" for key, value in labels(device))
    return TASK_MANAGER.format(
        title=comment([f"Device {listed([device.name])}"]),
        name=slug(device.name),
        resource=own[device.name],
        selector=selector.rstrip("\n"),
        image=IMAGE,
        cores=device.cores,
        memory=mebibytes(device),
        settings=_arguments(settings),
    )


def _arguments(settings: Settings) -> str:
    """Format settings as arguments of a container, in which `$(` would begin a variable."""
    arguments = (f"-D{key}={value}".replace("$", "$$") for key, value in settings.items())
    return "\n".join(f"{' ' * 12}- {quoted_yaml(argument)}" for argument in arguments)
