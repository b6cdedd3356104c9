"""Export of task graphs for Ray: every operator is a task that requests a core of its device.

Ray runs ready tasks in an order of its own. If the placement is a schedule, the exported driver
submits a task when its inputs are available, a core of its device is free, and its turn has come.
"""

from streamplace.engines.deployment import Deployment
from streamplace.engines.names import resources, tag_resource
from streamplace.engines.ray.turns import start_order
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
        done[name] = task.remote(*(done[one] for one in inputs))
    fed = {one for inputs in INPUTS.values() for one in inputs}
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
                results[name] = task.remote(*(results[one] for one in INPUTS[name]))
                running[results[name]] = name
        (ended,), _ = ray.wait(list(running), fetch_local=False)
        name = running.pop(ended)
        done.add(name)
        free[DEVICES[name]] += 1
    fed = {{one for inputs in INPUTS.values() for one in inputs}}
    last = [name for name in INPUTS if name not in fed]
    return dict(zip(last, ray.get([results[name] for name in last])))
'''


def as_tasks(deployment: Deployment, offer: int) -> str:
    """Module with options by which tasks request part of ``offer`` units, and with a driver."""
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
        run=_run(deployment),
        devices=python_table(deployment.placement.as_dict()),
        colocate=repr([list(group) for group in deployment.colocated]),
        exlocate=repr([list(group) for group in deployment.exlocated]),
    )


def _run(deployment: Deployment) -> str:
    """Source of the driver of one pass, in the order of the placement if it has one."""
    placement, problem = deployment.placement, deployment.placed
    if placement.priority is None:
        return RUN
    order: dict[str, list[str]] = {device: [] for device in placement.pes()}
    for v in start_order(problem, placement):
        order[placement.devices[placement.index[v]]].append(placement.operators[v])
    cores = {device.name: device.cores for device in problem.cluster.devices}
    return RUN_IN_ORDER.format(
        order=python_table(order),
        cores=python_table({device: cores[device] for device in order}),
        queue=placement.queue,
    )
