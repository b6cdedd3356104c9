"""Storm 2: generic resources. Every supervisor offers its own, and components request it."""

import math
from collections import Counter
from collections.abc import Iterator

from streamplace.engines.deployment import Deployment
from streamplace.engines.names import OFFER, resource, slug, tag_resource
from streamplace.engines.registry import export
from streamplace.engines.text import comment, group_notes, listed, quoted_java
from streamplace.model.devices import Device

HEAP_MB = 128
"""Storm's default for the heap of one executor."""
SPARE = 2
"""Number of Storm's own executors that a worker may get in addition."""
SUPERVISOR_MB = 4096
"""Storm's default for the memory that a supervisor offers."""
SCHEDULER = "org.apache.storm.scheduler.resource.ResourceAwareScheduler"
STRATEGY = "org.apache.storm.scheduler.resource.strategies.scheduling.GenericResourceAwareStrategy"

CLASS = """\
{notes}
import java.util.HashMap;
import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.topology.ResourceDeclarer;

public final class Placement {{
    private static final Map<String, String[]> RESOURCES = new HashMap<>();

    static {{
{entries}    }}

    private Placement() {{}}

    /** Have a component run on its device: pin("join", builder.setBolt("join", new Join())). */
    public static <T extends ResourceDeclarer<T>> T pin(String component, T declarer) {{
        if (!RESOURCES.containsKey(component)) {{
            throw new IllegalArgumentException("not in the placement: " + component);
        }}
        for (String resource : RESOURCES.get(component)) {{
            declarer.addResource(resource, 1.0);
        }}
        return declarer.setCPULoad(1.0); // where it runs is decided; do not count CPU again
    }}

    /** Settings of the topology: count generic resources, one worker for each device's PE. */
    public static Config configure(Config conf) {{
        conf.put("topology.scheduler.strategy",
            "{strategy}");
        conf.put("topology.worker.max.heap.size.mb", {heap}.0);
        return conf;
    }}
}}
"""


@export("storm")
def as_storm(deployment: Deployment) -> dict[str, str]:
    """Storm 2: storm.yaml fragments for Nimbus and supervisors, component resources in Java."""
    supervisors = {
        f"supervisor-{slug(device.name)}.yaml": _supervisor(device)
        for device in deployment.problem.cluster.devices
    }
    return {
        "nimbus.yaml": _nimbus(deployment),
        **supervisors,
        "Placement.java": _java(deployment),
    }


def _nimbus(deployment: Deployment) -> str:
    notes = [
        f"{deployment.title}.",
        "Use: 1. Add this to storm.yaml of Nimbus, and supervisor-DEVICE.yaml to storm.yaml of",
        "        that device's supervisor; restart them, once per cluster.",
        "     2. Add Placement.java to your topology and wrap every component in pin().",
        "Check: in Storm UI, open the topology and a component; Host of its executors is the",
        "       device. A topology that asks for a missing device stays unassigned.",
    ]
    return f'{comment(notes)}storm.scheduler: "{SCHEDULER}"\n'


def _supervisor(device: Device) -> str:
    names = [resource(device.name), *map(tag_resource, sorted(device.tags))]
    offer = ", ".join(f'"{name}": {OFFER}.0' for name in names)
    notes = [
        f"Device {listed([device.name])}.",
        "Use: add this to storm.yaml of its supervisor and restart it.",
        "Check: Storm UI, Supervisor summary, lists the resources.",
    ]
    size, memory = float(device.memory), ""
    if math.isfinite(size):
        memory = f"supervisor.memory.capacity.mb: {int(size // 2**20)}.0\n"
    return f"{comment(notes)}supervisor.resources.map: {{{offer}}}\n{memory}"


def _java(deployment: Deployment) -> str:
    return CLASS.format(
        notes=comment(_notes(deployment), "//").rstrip("\n"),
        entries="".join(_entries(deployment)),
        strategy=STRATEGY,
        heap=max(_heaps(deployment).values()),
    )


def _notes(deployment: Deployment) -> Iterator[str]:
    yield f"{deployment.title}."
    yield "Use: wrap every component in Placement.pin(), and the topology's settings in"
    yield "     Placement.configure(); nimbus.yaml lists what the cluster needs."
    yield "Check: in Storm UI, Host of every component's executors."
    yield "Storm puts the executors that acknowledge tuples wherever memory is free; set"
    yield "topology.acker.executors to 0 if you do without."
    for device, heap in _heaps(deployment).items():
        memory = float(deployment.problem.cluster.devices[device].memory)
        offer = int(memory // 2**20) if math.isfinite(memory) else SUPERVISOR_MB
        if heap > offer:
            yield f"Memory: the executors on {listed([device])} need {heap} MB, and its supervisor"
            yield f"offers {offer}; raise its supervisor.memory.capacity.mb, or the topology stays"
            yield "unassigned."
    if deployment.is_split:
        yield "Subtasks are placed one by one: each is a component of its own, of parallelism 1."
    yield from group_notes(deployment)


def _heaps(deployment: Deployment) -> dict[str, int]:
    """Megabytes of heap of the worker on each device."""
    parallelism = deployment.placed.graph.operators.parallelism
    executors: Counter[str] = Counter()
    for device, count in zip(deployment.placement.values(), parallelism.tolist(), strict=True):
        executors[device] += count
    return {device: HEAP_MB * max(count + SPARE, 6) for device, count in executors.items()}


def _entries(deployment: Deployment) -> Iterator[str]:
    own = deployment.resources
    requires = deployment.placed.graph.operators.requires
    for (name, device), tags in zip(deployment.placement.items(), requires, strict=True):
        names = [own[device], *map(tag_resource, sorted(tags))]
        values = ", ".join(map(quoted_java, names))
        yield f"        RESOURCES.put({quoted_java(name)}, new String[] {{{values}}});\n"
