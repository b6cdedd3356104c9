"""Pinning a PyFlink program: its stream graph is changed just before it is executed.

This file does not import streamplace, because exports contain a copy of it.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

MANAGED_MB = 64
"""Managed memory of a TaskManager in MB, for state in RocksDB, SQL and Python; its slots share it.

The setting is taskmanager.memory.managed.size; by Flink's default configuration, it is 512 MB.
"""
CPU_CORES, HEAP_MB = 0.001, 1
"""CPU and heap of every slot, beside its shares of managed memory and of network buffers."""
_PLANNED = re.compile(r"(.*)\[(\d{1,8})\](: [A-Za-z -]+)?", re.DOTALL)
"""Name of an operator, its number by the SQL planner, and the suffix of a helper of a sink."""
WRITER = ": Writer"
"""Suffix of the operator of a sink that writes."""
_HELPER = re.compile(r": [A-Za-z -]+(?=( \(\d+\))?$)")
Counts = dict[str, dict[str, int]]
"""Group → TaskManager → number of its slots there."""


class PlacedEnvironment:
    """A StreamExecutionEnvironment whose job runs where it was placed."""

    def __init__(
        self,
        env: Any,
        operators: dict[str, str],
        parallelism: dict[str, int],
        groups: dict[str, dict[str, int]],
        spread: Counts,
        managed: dict[str, int],
    ) -> None:
        self._env = env
        self._operators, self._parallelism, self._groups = operators, parallelism, groups
        self._spread, self._managed = spread, managed

    def execute(self, job_name: str | None = None) -> Any:
        """Run the job and wait for its end, like ``env.execute``."""
        from pyflink.common.job_execution_result import JobExecutionResult

        graph = self._pinned(job_name)
        return JobExecutionResult(self._env._j_stream_execution_environment.execute(graph))

    def execute_async(self, job_name: str | None = None) -> Any:
        """Submit the job, like ``env.execute_async``."""
        from pyflink.common.job_client import JobClient

        graph = self._pinned(job_name)
        return JobClient(self._env._j_stream_execution_environment.executeAsync(graph))

    def _pinned(self, job_name: str | None) -> Any:
        """Stream graph in which every operator is in the slot sharing group of its device."""
        from pyflink.java_gateway import get_gateway

        self._set_parallelism()
        graph = self._env._generate_stream_graph(clear_transformations=True, job_name=job_name)
        nodes, names = list(graph.getStreamNodes().toArray()), node_names(graph)
        if faults := device_faults(graph, nodes):
            raise ValueError(f"streamplace: {'; '.join(faults)}")
        if faults := [fault for node in nodes if (fault := self._put(node, names[node.getId()]))]:
            raise ValueError(f"streamplace: {'; '.join(faults)}")
        for node in nodes:
            description, name = str(node.getOperatorDescription()), names[node.getId()]
            stem, _ = stem_of(str(node.getOperatorName()), description)
            if name != stem:  # so that the plan of the running job distinguishes namesakes
                number = name.removeprefix(f"{stem} (").removesuffix(")")
                node.setOperatorDescription(f"{description} [namesake {number}]")
        jvm = get_gateway().jvm
        managed = managed_shares(self._slots(nodes), self._managed)
        if needy := [group for group, share in managed.items() if share < 1]:
            raise ValueError(
                f"streamplace: no managed memory is left for slots of {needy[0]!r} that need it; "
                "cancel other jobs on it, or place fewer operators on it"
            )
        resources = jvm.java.util.HashMap()
        for group, demands in self._groups.items():
            resources.put(group, _profile(jvm, demands, managed.get(group, 0)))
        graph.setSlotSharingGroupResource(resources)
        return graph

    def _set_parallelism(self) -> None:
        """Set the parallelism of the placement where the program sets none."""
        operations = [
            operation
            for end in self._env._j_stream_execution_environment.getTransformations()
            for operation in end.getTransitivePredecessors()
            if not operation.isParallelismConfigured()
        ]
        if not operations:
            return
        draft = node_names(self._env._generate_stream_graph(clear_transformations=False))
        for operation in operations:
            name = draft.get(operation.getId()) or operator_name(operation.getName())
            names = _names(operation.getUid(), name)
            placed = next((self._parallelism[n] for n in names if n in self._parallelism), None)
            if placed is not None:
                operation.setParallelism(placed, True)

    def _put(self, node: Any, name: str) -> str | None:
        """Put an operator into its group; return a fault, if any."""
        names = _names(node.getTransformationUID(), name)
        operator = next((key for key in names if key in self._operators), None)
        if operator is None:
            return f"operator {name!r} is not placed"
        placed, actual = self._parallelism.get(operator), int(node.getParallelism())
        is_helper = operator not in names[:-1]
        if placed is not None and (actual > placed if is_helper else actual != placed):
            return f"operator {operator!r} has parallelism {actual} but is placed for {placed}"
        node.setSlotSharingGroup(self._operators[operator])
        return None

    def _slots(self, nodes: Iterable[Any]) -> Counts:
        """Slots of the groups that use managed memory."""
        slots: Counts = {}
        users = set()
        for node in nodes:
            group, number = node.getSlotSharingGroup(), int(node.getParallelism())
            slots[group] = {group: max(number, slots.get(group, {}).get(group, 0))}
            uses = (
                node.getManagedMemoryOperatorScopeUseCaseWeights(),
                node.getManagedMemorySlotScopeUseCases(),
            )
            if not all(use.isEmpty() for use in uses):
                users.add(group)
        return {group: self._spread.get(group, slots[group]) for group in users}


def device_faults(graph: Any, nodes: Iterable[Any]) -> list[str]:
    """Groups of the program that request resources such as GPUs, which a placement would drop."""
    faults = []
    for group in sorted({str(node.getSlotSharingGroup()) for node in nodes}):
        profile = graph.getSlotSharingGroupResource(group)
        if not profile.isPresent():
            continue
        requested = map(str, profile.get().getExtendedResources().keySet().toArray())
        names = sorted(name for name in requested if not name.startswith(("dev-", "lim-")))
        if names:
            faults.append(
                f"slot sharing group {group!r} requests {', '.join(names)}, which a placement does "
                "not preserve; remove that from the program"
            )
    return faults


def managed_shares(slots: Counts, managed: dict[str, int]) -> dict[str, int]:
    """Group → managed memory of each of its slots in MB; a TaskManager has equal shares."""
    crowd: Counter[str] = Counter()
    for counts in slots.values():
        crowd.update(counts)
    return {
        group: min(managed.get(device, MANAGED_MB) // crowd[device] for device in counts)
        for group, counts in slots.items()
    }


def node_names(graph: Any) -> dict[int, str]:
    """Id → name of the operators of a stream graph.

    Numbers of the SQL planner are removed, because they differ with every submission. Operators
    that then share a name are numbered in the order of the planner, else of the graph.
    """
    operators_by_name: dict[str, list[tuple[int, int, int]]] = {}
    for place, node in enumerate(_in_order(graph)):
        stem, planned = stem_of(str(node.getOperatorName()), str(node.getOperatorDescription()))
        operators_by_name.setdefault(stem, []).append((planned, place, node.getId()))
    return {
        node_id: stem if i == 1 else f"{stem} ({i})"
        for stem, group in operators_by_name.items()
        for i, (_, _, node_id) in enumerate(sorted(group), 1)
    }


def stem_of(name: str, description: str) -> tuple[str, int]:
    """Name of an operator without the number of the SQL planner, and the number; 0 without one.

    >>> stem_of("totals[6]: Committer", "[6]:Sink(table=[totals])"), stem_of("part[6]", "part[6]")
    (('totals: Committer', 6), ('part[6]', 0))
    """
    match = _PLANNED.fullmatch(operator_name(name))
    if match is None or f"[{match[2]}]:" not in description:
        return operator_name(name), 0
    return match[1] + (match[3] or ""), int(match[2])


def _in_order(graph: Any) -> list[Any]:
    """Nodes of a stream graph, breadth first from the sources, each after all of its inputs."""
    sources = sorted(graph.getSourceIDs().toArray())
    waiting, queued = [graph.getStreamNode(source) for source in sources], set(sources)
    done: dict[int, Any] = {}
    for node in waiting:
        inputs = (edge.getSourceId() for edge in node.getInEdges().toArray())
        if node.getTransformationUID() is None and not done.keys() >= set(inputs):
            queued.discard(node.getId())  # its last input queues it again
            continue
        done[node.getId()] = node
        for edge in node.getOutEdges().toArray():
            if edge.getTargetId() not in queued:
                queued.add(edge.getTargetId())
                waiting.append(graph.getStreamNode(edge.getTargetId()))
    return list(done.values())


def _names(uid: str | None, name: str) -> list[str]:
    """Names that may identify an operator: its uid, its name, and the name of its sink."""
    return [*([uid] if uid else []), name, _HELPER.sub("", name)]


def operator_name(name: str) -> str:
    """Name of an operator in the program, without Flink's additions.

    >>> operator_name("Source: lines"), operator_name("out: Writer"), operator_name("count")
    ('lines', 'out', 'count')
    """
    for prefix in ("Source: ", "Sink: "):
        name = name.removeprefix(prefix)
    return name.removesuffix(WRITER)


def _profile(jvm: Any, demands: dict[str, int], managed: int) -> Any:
    """Resources of a slot, as an object of Flink."""
    profile = jvm.org.apache.flink.runtime.clusterframework.types.ResourceProfile.newBuilder()
    profile.setCpuCores(CPU_CORES).setTaskHeapMemoryMB(HEAP_MB).setManagedMemoryMB(managed)
    resource = jvm.org.apache.flink.api.common.resources.ExternalResource
    for name, amount in demands.items():
        profile.setExtendedResource(resource(name, float(amount)))
    return profile.build()
