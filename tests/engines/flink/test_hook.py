"""What a PyFlink program executes, with an environment that only remembers."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.pin.hook import PlacedEnvironment, managed_shares
from streamplace.engines.flink.pin.pinning import (
    pinning,
)
from streamplace.engines.flink.pin.spread import SpreadLimits

DEVICES = ["a", "b"]


class Set(list[Any]):
    """A collection as Java has it."""

    def isEmpty(self) -> bool:
        """Whether nothing is in it."""
        return not self

    def toArray(self) -> list[Any]:
        """What is in it."""
        return [*self]


class Node:
    """An operator of a stream graph, and the transformation that it comes from."""

    def __init__(
        self, name: str, parallelism: int = 1, *, uses: str = "", said: bool = True
    ) -> None:
        self.name, self.parallelism, self.said, self.group = name, parallelism, said, ""
        self.description = name
        self.inputs, self.outputs = Set(), Set()
        self.getId = lambda: id(self)
        self.getInEdges, self.getOutEdges = lambda: self.inputs, lambda: self.outputs
        self.getTransformationUID = self.getUid = lambda: None
        self.getOperatorName = self.getName = lambda: self.name
        self.getOperatorDescription = lambda: self.description
        self.getParallelism = lambda: self.parallelism
        self.isParallelismConfigured = lambda: self.said
        self.getTransitivePredecessors = lambda: [self]
        self.getSlotSharingGroup = lambda: self.group
        self.getManagedMemoryOperatorScopeUseCaseWeights = Set
        self.getManagedMemorySlotScopeUseCases = lambda: Set([uses] if uses else [])

    def setSlotSharingGroup(self, group: str) -> None:
        """Remember the group."""
        self.group = group

    def setOperatorDescription(self, description: str) -> None:
        """Remember the description."""
        self.description = description

    def feeds(self, other: "Node") -> None:
        """Have it send to another one."""
        edge = SimpleNamespace(getSourceId=self.getId, getTargetId=other.getId)
        self.outputs.append(edge)
        other.inputs.append(edge)

    def setParallelism(self, number: int, _: bool) -> None:
        """Remember the number of subtasks."""
        self.parallelism = number


class Profile:
    """Builder of what a slot asks for."""

    def __init__(self) -> None:
        self.managed = 0

    def setManagedMemoryMB(self, managed: int) -> "Profile":
        """Remember it."""
        self.managed = managed
        return self

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self


class Jvm:
    """A JVM with Flink's classes; maps are dictionaries."""

    def __init__(self) -> None:
        types = SimpleNamespace(ResourceProfile=SimpleNamespace(newBuilder=Profile))
        runtime = SimpleNamespace(clusterframework=SimpleNamespace(types=types))
        common = SimpleNamespace(resources=SimpleNamespace(ExternalResource=lambda *_: None))
        flink = SimpleNamespace(runtime=runtime, api=SimpleNamespace(common=common))
        self.org = SimpleNamespace(apache=SimpleNamespace(flink=flink))
        self.java = SimpleNamespace(util=SimpleNamespace(HashMap=JavaMap))


class JavaMap(dict[str, Any]):
    """A map as Java has it."""

    def put(self, key: str, value: object) -> None:
        """Add an entry."""
        self[key] = value


@pytest.fixture(autouse=True)
def _pyflink(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyflink", "pyflink.common", "pyflink.common.job_client", "pyflink.java_gateway"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(
        sys.modules["pyflink.common.job_client"], "JobClient", lambda job: job, raising=False
    )
    gateway = SimpleNamespace(jvm=Jvm())
    monkeypatch.setattr(
        sys.modules["pyflink.java_gateway"], "get_gateway", lambda: gateway, raising=False
    )


def requesting(*devices: str) -> SimpleNamespace:
    """Resources of a slot sharing group of a program, as an optional value of Java."""
    extended = SimpleNamespace(keySet=lambda: Set(devices))
    profile = SimpleNamespace(getExtendedResources=lambda: extended)
    return SimpleNamespace(isPresent=lambda: bool(devices), get=lambda: profile)


def executed(
    nodes: list[Node],
    vectors: Layout,
    managed: dict[str, int],
    devices: dict[str, tuple[str, ...]] | None = None,
) -> dict[str, int]:
    """Group → managed memory of its slots, as the environment executes it.

    Groups of the program request some devices.
    """
    resources: dict[str, Any] = {}
    graph = SimpleNamespace(
        getSourceIDs=lambda: Set(id(node) for node in nodes if not node.inputs),
        getStreamNode={id(node): node for node in nodes}.get,
        getStreamNodes=lambda: SimpleNamespace(toArray=lambda: nodes),
        setSlotSharingGroupResource=resources.update,
        getSlotSharingGroupResource=lambda group: requesting(*(devices or {}).get(group, ())),
    )
    env = SimpleNamespace(
        _generate_stream_graph=lambda **_: graph,
        _j_stream_execution_environment=SimpleNamespace(
            getTransformations=lambda: nodes, executeAsync=lambda graph: graph
        ),
    )
    answer = pinning(vectors, SpreadLimits.untouched(DEVICES))
    PlacedEnvironment(
        env, answer.operators, answer.parallelism, answer.groups, answer.spread, managed
    ).execute_async()
    return {group: profile.managed for group, profile in resources.items()}


def test_operators_get_as_many_subtasks_as_they_are_placed_with() -> None:
    """Where the program leaves their number open."""
    nodes = [Node("Source: src"), Node("map", said=False)]
    executed(nodes, Layout({"src": ["a"], "map": ["b"] * 4}), {})
    assert [node.parallelism for node in nodes] == [1, 4]


def test_devices_that_a_program_requests_are_not_dropped_in_silence() -> None:
    """Nothing is changed; what a placement itself has requested before is no fault."""
    node = Node("map")
    node.group = "vision"
    with pytest.raises(ValueError, match="group 'vision' requests fpga, gpu, which a placement"):
        executed([node], Layout({"map": ["b"]}), {}, {"vision": ("gpu", "dev-a", "fpga")})
    assert node.group == "vision"
    executed([node], Layout({"map": ["b"]}), {}, {"vision": ("dev-a", "lim-0")})
    assert node.group == "b"


def test_another_number_of_subtasks_than_placed_is_refused() -> None:
    """Where the program says it."""
    with pytest.raises(ValueError, match="'map' has parallelism 2 but is placed for 4"):
        executed([Node("map", 2)], Layout({"map": ["b"] * 4}), {})


def test_helpers_of_a_sink_may_have_fewer_subtasks() -> None:
    """A committer of a sink of four is placed with it."""
    nodes = [Node("out: Writer", 4), Node("out: Committer", 1)]
    executed(nodes, Layout({"out": ["b"] * 4}), {})
    assert [node.group for node in nodes] == ["b", "b"]


def test_operators_of_one_name_are_placed_apart_and_shown_apart() -> None:
    """Numbered from the source on, whatever order the graph lists them in."""
    last, source, first = Node("Map"), Node("Source: src"), Node("Map", 2, said=False)
    source.feeds(first)
    first.feeds(last)
    executed([last, source, first], Layout({"src": ["a"], "Map": ["a"] * 3, "Map (2)": ["b"]}), {})
    assert [node.group for node in (source, first, last)] == ["a", "a", "b"]
    assert [node.parallelism for node in (first, last)] == [3, 1]
    assert [node.description for node in (first, last)] == ["Map", "Map [namesake 2]"]


def test_an_operator_that_is_not_placed_is_refused_by_its_number() -> None:
    with pytest.raises(ValueError, match=r"operator 'Map \(2\)' is not placed"):
        executed([Node("Map"), Node("Map")], Layout({"Map": ["a"]}), {})


def test_managed_memory_goes_to_the_slots_that_use_it() -> None:
    """All of a TaskManager's, in equal shares."""
    nodes = [Node("src"), Node("count", 2, uses="STATE_BACKEND"), Node("sum", 2, uses="PYTHON")]
    vectors = {"src": ["a"], "count": ["b", "b"], "sum": ["a", "b"]}
    assert executed(nodes, Layout(vectors), {"a": 100, "b": 90}) == {
        "a": 0,
        "b": 30,
        "spread-0": 30,
    }


def test_slots_that_need_managed_memory_never_get_none() -> None:
    """RocksDB with nothing would crawl, and SQL fail."""
    vectors = {"count": ["a", "a"]}
    with pytest.raises(ValueError, match="no managed memory is left for slots of 'a'"):
        executed([Node("count", 2, uses="STATE_BACKEND")], Layout(vectors), {"a": 1})


def test_shares_fit_the_task_manager_that_has_least() -> None:
    """All slots of a group are alike, so a spread one takes what the fullest of its devices has."""
    slots = {"a": {"a": 1}, "spread-0": {"a": 1, "b": 3}}
    assert managed_shares(slots, {"a": 100, "b": 60}) == {"a": 50, "spread-0": 20}
