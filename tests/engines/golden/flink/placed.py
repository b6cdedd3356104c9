"""Runs a PyFlink job with every operator on the device that streamplace chose.

Put this file beside the program and replace its last line, env.execute("name"), by
    from placed import placed
    placed(env).execute("name")
SQL takes part after statement_set.attach_as_datastream(). Operators are known by their names
(.name("...") in the program) or their uids.

Check: streamplace flink verify --rest http://JOBMANAGER:8081 --placement placement.json
"""

from __future__ import annotations

from typing import Any

CPU_CORES, HEAP_MB, MANAGED_MB = 0.001, 1, 8
"""What every slot gets beside its share of the network buffers; raise it for state in memory."""


class Placed:
    """A StreamExecutionEnvironment whose job runs where it was placed."""

    def __init__(
        self,
        env: Any,
        operators: dict[str, str],
        parallelism: dict[str, int],
        groups: dict[str, dict[str, int]],
    ) -> None:
        self._env = env
        self._operators, self._parallelism, self._groups = operators, parallelism, groups

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

        graph = self._env._generate_stream_graph(clear_transformations=True, job_name=job_name)
        faults = [fault for node in graph.getStreamNodes().toArray() if (fault := self._put(node))]
        if faults:
            raise ValueError(f"streamplace: {'; '.join(faults)}")
        jvm = get_gateway().jvm
        resources = jvm.java.util.HashMap()
        for group, demands in self._groups.items():
            resources.put(group, _profile(jvm, demands))
        graph.setSlotSharingGroupResource(resources)
        return graph

    def _put(self, node: Any) -> str | None:
        """Put an operator into its group; returns what is wrong with it."""
        name = plain(str(node.getOperatorName()))
        known = [n for n in (node.getTransformationUID(), name, name.rpartition(": ")[0]) if n]
        operator = next((n for n in known if n in self._operators), None)
        if operator is None:
            return f"operator {name!r} is not placed"
        wanted, given = self._parallelism.get(operator), int(node.getParallelism())
        if wanted not in (None, given):
            return f"operator {name!r} has parallelism {given} but is placed for {wanted}"
        node.setSlotSharingGroup(self._operators[operator])
        return None


def plain(name: str) -> str:
    """Name as the job's author gave it."""
    for prefix in ("Source: ", "Sink: "):
        name = name.removeprefix(prefix)
    return name.removesuffix(": Writer")


def _profile(jvm: Any, demands: dict[str, int]) -> Any:
    """Return what a slot asks for, in Flink's own class."""
    profile = jvm.org.apache.flink.runtime.clusterframework.types.ResourceProfile.newBuilder()
    profile.setCpuCores(CPU_CORES).setTaskHeapMemoryMB(HEAP_MB).setManagedMemoryMB(MANAGED_MB)
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
}
GROUPS = {
    'box0': {'dev-box0': 1},
    'box1': {'dev-box1': 1},
    'gpu': {'dev-gpu': 1},
}


def placed(env: Any) -> Placed:
    """Environment whose job runs where it was placed."""
    return Placed(env, OPERATORS, PARALLELISM, GROUPS)
