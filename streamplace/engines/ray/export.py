"""Export for Ray: a separate resource for every node, and options with which actors request it."""

import json
from collections.abc import Iterator

from streamplace.engines.deployment import Deployment
from streamplace.engines.names import resources, tag_resource
from streamplace.engines.ray.tasks import as_tasks
from streamplace.engines.registry import export
from streamplace.engines.text import comment, listed, python_docstring, python_table, quoted_shell

OFFER = 1000
DEMAND = 0.001
"""A node offers a thousand units of its resource, and an actor requests a thousandth of one."""

MODULE = '''\
"""{title}

Use: 1. Start a Ray node on every machine: bash ray_start.sh DEVICE [HEAD:6379]
     2. Create each operator's actor with its options:

            from placement import OPTIONS, check

            actor = Operator.options(**OPTIONS[{example}]).remote()

Check: check({{name: actor, …}}) is empty when every actor runs on its device. An actor whose
device is missing stays pending: `ray status` lists what it asks for.

Ray counts resources; it limits neither the CPU nor the network of a node.
{notes}"""

OPTIONS = {options}

# Device of each operator, and groups that must and must not share one.
DEVICES = {devices}
COLOCATE = {colocate}
EXLOCATE = {exlocate}


def check(actors):
    """Actors that are not where they should be: name → resources wanted that their node lacks."""
    import ray

    def home(_):
        return ray.get_runtime_context().get_node_id()

    offers = {{node["NodeID"]: node["Resources"] for node in ray.nodes()}}
    homes = ray.get([actor.__ray_call__.remote(home) for actor in actors.values()])
    lacking = {{
        name: sorted(set(OPTIONS[name]["resources"]).difference(offers[home]))
        for name, home in zip(actors, homes)
    }}
    return {{name: lacks for name, lacks in lacking.items() if lacks}}
'''


@export("ray", keeps_order=True)
def as_ray(deployment: Deployment) -> dict[str, str]:
    """Ray: options for each operator's actor or task, and the `ray start` line of each device."""
    operators = deployment.placed.graph.operators
    if operators.fires_all.all():
        return {"placement.py": as_tasks(deployment, OFFER), "ray_start.sh": _script(deployment)}
    own = resources(deployment.problem.cluster.devices.name)
    options = {}
    for name, device, tags in zip(
        deployment.placement, deployment.placement.values(), operators.requires, strict=True
    ):
        names = [own[device], *map(tag_resource, sorted(tags))]
        options[name] = {"num_cpus": 0, "resources": dict.fromkeys(names, DEMAND)}
    notes = "\nEvery subtask is an actor of its own.\n" if deployment.is_split else ""
    if deployment.placement.priority is not None:
        notes += "\nThe order of the placement is left out: actors take what arrives.\n"
    module = MODULE.format(
        title=python_docstring(f"{deployment.title}."),
        example=python_docstring(repr(deployment.placement.operators[0])),
        notes=notes,
        options=python_table(options),
        devices=python_table(deployment.placement.as_dict()),
        colocate=repr([list(group) for group in deployment.colocated]),
        exlocate=repr([list(group) for group in deployment.exlocated]),
    )
    return {"placement.py": module, "ray_start.sh": _script(deployment)}


def _script(deployment: Deployment) -> str:
    """Shell script that starts the Ray node of one device."""
    devices = deployment.problem.cluster.devices
    notes = comment(
        [
            f"{deployment.title}.",
            "Use: bash ray_start.sh DEVICE [HEAD:6379] on every machine, the head first.",
            "Check: ray status lists a resource dev-… for every device.",
        ]
    )
    usage = quoted_shell(f"which device is this? One of: {listed(devices.name)}")
    return (
        f"#!/usr/bin/env bash\n{notes}set -euo pipefail\n"
        f"usage={usage}\n"
        f"head=${{2:-}}\n"
        f'case "${{1:?$usage}}" in\n'
        f"{''.join(_starts(deployment))}"
        '  *) echo "unknown device: $1" >&2; exit 2 ;;\n'
        "esac\n"
    )


def _starts(deployment: Deployment) -> Iterator[str]:
    own = resources(deployment.problem.cluster.devices.name)
    for i, device in enumerate(deployment.problem.cluster.devices):
        names = [own[device.name], *map(tag_resource, sorted(device.tags))]
        offer = quoted_shell(json.dumps(dict.fromkeys(names, OFFER)))
        role = (
            "--head --port=6379" if i == 0 else '--address="${head:?give the address of the head}"'
        )
        yield f"  {quoted_shell(device.name)}) ray start {role} --resources={offer} ;;\n"
