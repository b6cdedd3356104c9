"""Runs a PyFlink job with every operator on the device that streamplace chose.

Put this file beside the program and replace its last line, env.execute("name"), by
    from placed import placed
    placed(env).execute("name")
SQL takes part after statement_set.attach_as_datastream(). Operators are known by their names
(.name("...") in the program) or their uids.

Check: streamplace flink verify --rest http://JOBMANAGER:8081 --placement placement.json
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

MANAGED_MB = 64
"""Managed memory of a TaskManager in MB (taskmanager.memory.managed.size; Flink's default
configuration comes to 512): state in RocksDB, SQL and Python live there. The slots that are placed
on a TaskManager share it."""
CPU_CORES, HEAP_MB = 0.001, 1
"""What every slot gets beside its shares of managed memory and of the network buffers."""
_PLANNED = re.compile(r"(.*)\[(\d{1,8})\](: [A-Za-z -]+)?", re.DOTALL)
"""Name, number of the SQL planner, and what a helper of a sink is called besides."""
Counts = dict[str, dict[str, int]]
"""Group → TaskManager → number of its slots there."""


class Placed:
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
        nodes = list(graph.getStreamNodes().toArray())
        planned = planned_names((n.getOperatorName(), n.getOperatorDescription()) for n in nodes)
        faults = [fault for node in nodes if (fault := self._put(node, planned))]
        if faults := [*self._namesakes(nodes), *faults]:
            raise ValueError(f"streamplace: {'; '.join(faults)}")
        jvm = get_gateway().jvm
        managed = managed_shares(self._slots(nodes), self._managed)
        if needy := [group for group, share in managed.items() if share < 1]:
            raise ValueError(
                f"streamplace: no managed memory is left for slots of {needy[0]!r} that need it; "
                "end what else runs there, or place less on it"
            )
        resources = jvm.java.util.HashMap()
        for group, demands in self._groups.items():
            resources.put(group, _profile(jvm, demands, managed.get(group, 0)))
        graph.setSlotSharingGroupResource(resources)
        return graph

    def _set_parallelism(self) -> None:
        """Give operators whose parallelism the program leaves open the one they are placed with."""
        operations = [
            operation
            for end in self._env._j_stream_execution_environment.getTransformations()
            for operation in end.getTransitivePredecessors()
        ]
        planned = planned_names((o.getName(), o.getDescription()) for o in operations)
        for operation in operations:
            names = _names(operation.getUid(), operation.getName(), planned)
            wanted = next((self._parallelism[n] for n in names if n in self._parallelism), None)
            if wanted is not None and not operation.isParallelismConfigured():
                operation.setParallelism(wanted, True)

    def _put(self, node: Any, planned: dict[str, str]) -> str | None:
        """Put an operator into its group; returns what is wrong with it."""
        names = _names(node.getTransformationUID(), node.getOperatorName(), planned)
        operator = next((name for name in names if name in self._operators), None)
        if operator is None:
            return f"operator {names[-2]!r} is not placed"
        wanted, given = self._parallelism.get(operator), int(node.getParallelism())
        is_helper = operator not in names[:-1]
        if wanted is not None and (given > wanted if is_helper else given != wanted):
            return f"operator {operator!r} has parallelism {given} but is placed for {wanted}"
        node.setSlotSharingGroup(self._operators[operator])
        return None

    def _namesakes(self, nodes: Iterable[Any]) -> list[str]:
        """What is wrong with operators that bear the same name and no uid that is placed."""
        bearers = Counter(
            plain(str(node.getOperatorName()))
            for node in nodes
            if node.getTransformationUID() not in self._operators
        )
        return [
            f"{number} operators are called {name!r}, so they cannot be placed apart; "
            "give each a name of its own"
            for name, number in bearers.items()
            if number > 1 and name in self._operators
        ]

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


def managed_shares(slots: Counts, managed: dict[str, int]) -> dict[str, int]:
    """Group → managed memory of each of its slots in MB; the slots on a TaskManager share alike."""
    crowd: Counter[str] = Counter()
    for counts in slots.values():
        crowd.update(counts)
    return {
        group: min(managed.get(device, MANAGED_MB) // crowd[device] for device in counts)
        for group, counts in slots.items()
    }


def planned_names(shown: Iterable[tuple[str, str]]) -> dict[str, str]:
    """SQL operators by their names and descriptions: the name of each that does not change.

    The planner numbers operators anew with every submission, but in the same order.

    >>> planned_names([("Calc[7]", "[7]:Calc(x)"), ("Calc[9]", "[9]:Calc(y)"), ("a[1]", "a[1]")])
    {'Calc[7]': 'Calc', 'Calc[9]': 'Calc (2)'}
    """
    found: dict[str, dict[int, str]] = {}
    for name, description in shown:
        match = _PLANNED.fullmatch(plain(str(name)))
        if match and f"[{match[2]}]:" in str(description):
            stem = match[1] + (match[3] or "")
            found.setdefault(stem, {})[int(match[2])] = plain(str(name))
    return {
        numbers[number]: stem if i == 1 else f"{stem} ({i})"
        for stem, numbers in found.items()
        for i, number in enumerate(sorted(numbers), 1)
    }


def _names(uid: str | None, name: str, planned: dict[str, str]) -> list[str]:
    """What an operator may be known by: uid, name, or the sink that it is a helper of."""
    given = plain(str(name))
    given = planned.get(given, given)
    owner = re.sub(r": [A-Za-z -]+$", "", given)
    return [*([uid] if uid else []), given, owner]


def plain(name: str) -> str:
    """Name as the job's author gave it."""
    for prefix in ("Source: ", "Sink: "):
        name = name.removeprefix(prefix)
    return name.removesuffix(": Writer")


def _profile(jvm: Any, demands: dict[str, int], managed: int) -> Any:
    """Return what a slot asks for, in Flink's own class."""
    profile = jvm.org.apache.flink.runtime.clusterframework.types.ResourceProfile.newBuilder()
    profile.setCpuCores(CPU_CORES).setTaskHeapMemoryMB(HEAP_MB).setManagedMemoryMB(managed)
    resource = jvm.org.apache.flink.api.common.resources.ExternalResource
    for name, amount in demands.items():
        profile.setExtendedResource(resource(name, float(amount)))
    return profile.build()


OPERATORS = {
    'clicks': 'box0',
    'parse': 'box0',
    'orders': 'box1',
    'join': 'box1',
    'score': 'gpu',
    'sink': 'box1',
}
PARALLELISM = {
    'clicks': 1,
    'parse': 1,
    'orders': 1,
    'join': 2,
    'score': 1,
    'sink': 1,
}
GROUPS = {
    'box0': {'dev-box0': 1},
    'box1': {'dev-box1': 1},
    'gpu': {'dev-gpu': 1},
}
SPREAD = {
}
MANAGED = {
}


def placed(env: Any) -> Placed:
    """Environment whose job runs where it was placed.

    MANAGED may hold TaskManagers whose managed memory is not MANAGED_MB, with theirs in MB.
    """
    return Placed(env, OPERATORS, PARALLELISM, GROUPS, SPREAD, MANAGED)
