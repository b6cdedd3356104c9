"""shop: 6 operators in 3 PEs on 3 devices, by streamplace.

Use: 1. Start a Ray node on every machine: bash ray_start.sh DEVICE [HEAD:6379]
     2. Create each operator's actor with its options:

            from placement import OPTIONS, check

            actor = Operator.options(**OPTIONS['clicks']).remote()

Check: check({name: actor, …}) is empty when every actor runs on its device. An actor whose
device is missing stays pending: `ray status` lists what it asks for.

Ray counts resources; it limits neither the CPU nor the network of a node.
"""

OPTIONS = {
    'clicks': {'num_cpus': 0, 'resources': {'dev-box0': 0.001}},
    'parse': {'num_cpus': 0, 'resources': {'dev-box0': 0.001}},
    'orders': {'num_cpus': 0, 'resources': {'dev-box1': 0.001}},
    'join': {'num_cpus': 0, 'resources': {'dev-box1': 0.001}},
    'score': {'num_cpus': 0, 'resources': {'dev-gpu': 0.001, 'tag-gpu': 0.001}},
    'sink': {'num_cpus': 0, 'resources': {'dev-box1': 0.001}},
}

# Device of each operator, and groups that must and must not share one.
DEVICES = {
    'clicks': 'box0',
    'parse': 'box0',
    'orders': 'box1',
    'join': 'box1',
    'score': 'gpu',
    'sink': 'box1',
}
COLOCATE = [['clicks', 'parse']]
EXLOCATE = [['join', 'score']]


def check(actors):
    """Actors that are not where they should be: name → resources wanted that their node lacks."""
    import ray

    def home(_):
        return ray.get_runtime_context().get_node_id()

    offers = {node["NodeID"]: node["Resources"] for node in ray.nodes()}
    homes = ray.get([actor.__ray_call__.remote(home) for actor in actors.values()])
    lacking = {
        name: sorted(set(OPTIONS[name]["resources"]).difference(offers[home]))
        for name, home in zip(actors, homes)
    }
    return {name: lacks for name, lacks in lacking.items() if lacks}
