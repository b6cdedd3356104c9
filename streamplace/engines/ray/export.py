"""Export for Ray: a separate resource for every node, and options with which actors request it.

Operators of a task graph are tasks that request a core of their device. Ray runs ready tasks in an
order of its own. If the placement is a schedule, the exported driver submits a task when its inputs
are available, a core of its device is free, and its turn has come.
"""

import json
from collections.abc import Iterator, Mapping

import numpy as np

from streamplace.engines.deployment import Deployment
from streamplace.engines.names import OFFER, tag_resource
from streamplace.engines.registry import export
from streamplace.engines.text import comment, listed, python_docstring, python_table, quoted_shell
from streamplace.model.devices import Device
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem, check_lines

DEMAND = 1 / OFFER
"""Part of a unit of the resource of its node that an actor requests.

A task requests whole units, so that as many tasks run on a device as it has cores.
"""

ACTORS = '''\
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

TASKS = '''\
"""{title}

Use: 1. Start a Ray node on every machine: bash ray_start.sh DEVICE [HEAD:6379]
     2. Run a pass, given a function for each operator, which takes what its inputs returned:

            from placement import INPUTS, run

            results = run({{{example}: function, …}})

Check: check() is empty when every task runs on its device. A task whose device is missing stays
pending: `ray status` lists what it asks for. No more tasks run on a device than it has cores.
"""

OPTIONS = {options}

# Whose results each task takes in, tasks in the order in which they can run.
INPUTS = {inputs}

# Device of each operator, and groups that must and must not share one.
DEVICES = {devices}
COLOCATE = {colocate}
EXLOCATE = {exlocate}
{run}

def check():
    """Tasks that do not run where they should: name → resources wanted that their node lacks."""
    import ray

    def home():
        return ray.get_runtime_context().get_node_id()

    offers = {{node["NodeID"]: node["Resources"] for node in ray.nodes()}}
    tasks = {{name: ray.remote(home).options(**options) for name, options in OPTIONS.items()}}
    homes = ray.get([task.remote() for task in tasks.values()])
    lacking = {{
        name: sorted(set(OPTIONS[name]["resources"]).difference(offers[home]))
        for name, home in zip(OPTIONS, homes)
    }}
    return {{name: lacks for name, lacks in lacking.items() if lacks}}
'''

RUN = '''

def run(functions):
    """One pass: results of the tasks that feed nobody, by name."""
    import ray

    done = {}
    for name, inputs in INPUTS.items():
        task = ray.remote(functions[name]).options(name=name, **OPTIONS[name])
        done[name] = task.remote(*(done[source] for source in inputs))
    fed = {source for inputs in INPUTS.values() for source in inputs}
    last = [name for name in done if name not in fed]
    return dict(zip(last, ray.get([done[name] for name in last])))
'''

RUN_IN_ORDER = '''
# What each device runs, in the order of the placement, and on how many cores.
ORDER = {order}
CORES = {cores}
# order: a device waits for the next task in its order; priority: it takes the first that is ready.
QUEUE = {queue!r}


def run(functions):
    """One pass, in the order of the placement: results of the tasks that feed nobody, by name."""
    import ray

    waiting = {{device: list(names) for device, names in ORDER.items()}}
    free, results, running, done = dict(CORES), {{}}, {{}}, set()

    def next_ready(device):
        names = waiting[device][:1] if QUEUE == "order" else waiting[device]
        ready = (name for name in names if done.issuperset(INPUTS[name]))
        return next(ready, None) if free[device] else None

    while len(done) < len(INPUTS):
        for device in ORDER:
            while (name := next_ready(device)) is not None:
                waiting[device].remove(name)
                free[device] -= 1
                task = ray.remote(functions[name]).options(name=name, **OPTIONS[name])
                results[name] = task.remote(*(results[source] for source in INPUTS[name]))
                running[results[name]] = name
        (ended,), _ = ray.wait(list(running), fetch_local=False)
        name = running.pop(ended)
        done.add(name)
        free[DEVICES[name]] += 1
    fed = {{source for inputs in INPUTS.values() for source in inputs}}
    last = [name for name in INPUTS if name not in fed]
    return dict(zip(last, ray.get([results[name] for name in last])))
'''


@export("ray", keeps_order=True)
def as_ray(deployment: Deployment) -> dict[str, str]:
    """Ray: options for each operator's actor or task, and the `ray start` line of each device."""
    operators = deployment.unit_problem.graph.operators
    if operators.fires_all.all():
        return {"placement.py": _tasks(deployment), "ray_start.sh": _script(deployment)}
    notes = "\nEvery subtask is an actor of its own.\n" if deployment.is_split else ""
    if deployment.placement.priority is not None:
        notes += "\nThe order of the placement is left out: actors take what arrives.\n"
    demand = dict.fromkeys(deployment.problem.cluster.devices.name, DEMAND)
    module = ACTORS.format(**_texts(deployment, demand), notes=notes)
    return {"placement.py": module, "ray_start.sh": _script(deployment)}


def _tasks(deployment: Deployment) -> str:
    """Module with options by which tasks request a core of their device, and with a driver."""
    graph = deployment.unit_problem.graph
    demand = {device.name: _core(device) for device in deployment.problem.cluster.devices}
    inputs: dict[str, list[str]] = {graph.operators.name[v]: [] for v in graph.order.tolist()}
    for stream in graph.streams:
        inputs[stream.target] = list(dict.fromkeys([*inputs[stream.target], stream.source]))
    texts = _texts(deployment, demand)
    return TASKS.format(**texts, inputs=python_table(inputs), run=_run(deployment))


def _texts(deployment: Deployment, demand: Mapping[str, float]) -> dict[str, str]:
    """Parts of both modules; ``demand`` is the request for the resource of each device."""
    placement, resources = deployment.placement, deployment.resources
    options = {
        name: {
            "num_cpus": 0,
            "resources": {resources[device]: demand[device]}
            | dict.fromkeys(map(tag_resource, sorted(tags)), DEMAND),
        }
        for (name, device), tags in zip(
            placement.items(), deployment.unit_problem.graph.operators.requires, strict=True
        )
    }
    return {
        "title": python_docstring(f"{deployment.title}, by streamplace."),
        "example": python_docstring(repr(placement.operators[0])),
        "options": python_table(options),
        "devices": python_table(placement.as_dict()),
        "colocate": repr([list(group) for group in deployment.colocated]),
        "exlocate": repr([list(group) for group in deployment.exlocated]),
    }


def _run(deployment: Deployment) -> str:
    """Source of the driver of one pass, in the order of the placement if it has one."""
    placement, problem = deployment.placement, deployment.unit_problem
    if placement.priority is None:
        return RUN
    order: dict[str, list[str]] = {device: [] for device in placement.pes()}
    for v in _start_order(problem, placement):
        order[placement.devices[placement.index[v]]].append(placement.operators[v])
    cores = {device.name: device.cores for device in problem.cluster.devices}
    return RUN_IN_ORDER.format(
        order=python_table(order),
        cores=python_table({device: cores[device] for device in order}),
        queue=placement.queue,
    )


def _start_order(problem: Problem, placement: Placement) -> list[int]:
    """Operators in the order in which devices start them, for a placement with priorities."""
    from streamsim.passes import lines

    assert placement.priority is not None
    if placement.queue == "order":
        check_lines(problem.one_pass, placement)
        return list(lines(problem.one_pass, placement.priority[None])[0].tolist())
    return list(np.argsort(-placement.priority, kind="stable").tolist())


def _core(device: Device) -> int:
    """Units that a task requests; a node offers as many for each core."""
    return max(OFFER // device.cores, 1)


def _script(deployment: Deployment) -> str:
    """Shell script that starts the Ray node of one device."""
    devices = deployment.problem.cluster.devices
    notes = comment(
        [
            f"{deployment.title}, by streamplace.",
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
    resources = deployment.resources
    for i, device in enumerate(deployment.problem.cluster.devices):
        resource = resources[device.name]
        names = [resource, *map(tag_resource, sorted(device.tags))]
        units = dict.fromkeys(names, OFFER) | {resource: _core(device) * device.cores}
        offer = quoted_shell(json.dumps(units))
        role = (
            "--head --port=6379" if i == 0 else '--address="${head:?give the address of the head}"'
        )
        yield f"  {quoted_shell(device.name)}) ray start {role} --resources={offer} ;;\n"
