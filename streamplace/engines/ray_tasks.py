"""Ray, for task graphs: every operator is a task that asks for a core of its device."""

from streamplace.engines.deployment import Deployment
from streamplace.engines.names import resources, tag_resource
from streamplace.engines.text import python_docstring, python_table

MODULE = '''\
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


def run(functions):
    """One pass: results of the tasks that feed nobody, by name."""
    import ray

    done = {{}}
    for name, inputs in INPUTS.items():
        task = ray.remote(functions[name]).options(name=name, **OPTIONS[name])
        done[name] = task.remote(*(done[one] for one in inputs))
    fed = {{one for inputs in INPUTS.values() for one in inputs}}
    last = [name for name in done if name not in fed]
    return dict(zip(last, ray.get([done[name] for name in last])))


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


def as_tasks(deployment: Deployment, offer: int) -> str:
    """Module with what each task asks for, of the units that a device offers, and a pass."""
    graph, cluster = deployment.placed.graph, deployment.problem.cluster
    own, operators = resources(cluster.devices.name), graph.operators
    core = {d.name: max(offer // d.cores, 1) for d in cluster.devices}
    options = {
        name: {
            "num_cpus": 0,
            "resources": {own[device]: core[device]}
            | dict.fromkeys(map(tag_resource, sorted(tags)), 1 / offer),
        }
        for name, device, tags in zip(
            deployment.placement, deployment.placement.values(), operators.requires, strict=True
        )
    }
    inputs: dict[str, list[str]] = {operators.name[v]: [] for v in graph.order.tolist()}
    for stream in graph.streams:
        inputs[stream.target] = list(dict.fromkeys([*inputs[stream.target], stream.source]))
    return MODULE.format(
        title=python_docstring(f"{deployment.title}."),
        example=python_docstring(repr(operators.name[0])),
        options=python_table(options),
        inputs=python_table(inputs),
        devices=python_table(deployment.placement.as_dict()),
        colocate=repr([list(group) for group in deployment.colocated]),
        exlocate=repr([list(group) for group in deployment.exlocated]),
    )
