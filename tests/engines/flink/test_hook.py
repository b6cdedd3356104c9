"""What a PyFlink program executes, with an environment that only remembers."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.pin import hook
from streamplace.engines.flink.pin.hook import PlacedEnvironment, managed_shares
from streamplace.engines.flink.pin.pinning import SpreadLimits, pinning


class Collection(list[Any]):
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
        self, name: str, parallelism: int = 1, *, uses: str = "", said: bool = True, group: str = ""
    ) -> None:
        self.name = self.description = name
        self.parallelism, self.said, self.group = parallelism, said, group
        self.inputs, self.outputs = Collection(), Collection()
        self.getId = lambda: id(self)
        self.getInEdges, self.getOutEdges = lambda: self.inputs, lambda: self.outputs
        self.getTransformationUID = self.getUid = lambda: None
        self.getOperatorName = self.getName = lambda: self.name
        self.getOperatorDescription = lambda: self.description
        self.setOperatorDescription = lambda text: setattr(self, "description", text)
        self.getParallelism = lambda: self.parallelism
        self.setParallelism = lambda number, _: setattr(self, "parallelism", number)
        self.isParallelismConfigured = lambda: self.said
        self.getTransitivePredecessors = lambda: [self]
        self.getSlotSharingGroup = lambda: self.group
        self.setSlotSharingGroup = lambda name: setattr(self, "group", name)
        self.getManagedMemoryOperatorScopeUseCaseWeights = Collection
        self.getManagedMemorySlotScopeUseCases = lambda: Collection([uses] if uses else [])

    def feeds(self, other: "Node") -> None:
        """Have it send to another one."""
        edge = SimpleNamespace(getSourceId=self.getId, getTargetId=other.getId)
        self.outputs.append(edge)
        other.inputs.append(edge)


class JavaMap(dict[str, Any]):
    """A map as Java has it."""

    def put(self, key: str, value: object) -> None:
        """Add an entry."""
        self[key] = value


@pytest.fixture(autouse=True)
def _pyflink(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots have their managed memory alone."""
    java = SimpleNamespace(util=SimpleNamespace(HashMap=JavaMap))
    given: dict[str, dict[str, Any]] = {
        "pyflink": {},
        "pyflink.common": {},
        "pyflink.common.job_client": {"JobClient": lambda job: job},
        "pyflink.java_gateway": {
            "get_gateway": lambda: SimpleNamespace(jvm=SimpleNamespace(java=java))
        },
    }
    for name, contents in given.items():
        module = ModuleType(name)
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(hook, "_profile", lambda _jvm, _demands, managed: managed)


def executed(
    nodes: list[Node],
    vectors: dict[str, list[str]],
    managed: dict[str, int] | None = None,
    requested: tuple[str, ...] = (),
) -> dict[str, int]:
    """Group → managed memory of its slots, as the environment executes it.

    Groups of the program request some devices.
    """
    resources: dict[str, int] = {}
    extended = SimpleNamespace(keySet=lambda: Collection(requested))
    own = SimpleNamespace(
        isPresent=lambda: bool(requested),
        get=lambda: SimpleNamespace(getExtendedResources=lambda: extended),
    )
    graph = SimpleNamespace(
        getSourceIDs=lambda: Collection(id(node) for node in nodes if not node.inputs),
        getStreamNode={id(node): node for node in nodes}.get,
        getStreamNodes=lambda: Collection(nodes),
        setSlotSharingGroupResource=resources.update,
        getSlotSharingGroupResource=lambda group: own,
    )
    env = SimpleNamespace(
        _generate_stream_graph=lambda **_: graph,
        _j_stream_execution_environment=SimpleNamespace(
            getTransformations=lambda: nodes, executeAsync=lambda graph: graph
        ),
    )
    answer = pinning(Layout(vectors), SpreadLimits.untouched(["a", "b"]))
    PlacedEnvironment(
        env, answer.operators, answer.parallelism, answer.groups, answer.spread, managed or {}
    ).execute_async()
    return resources


@pytest.mark.parametrize(
    ("nodes", "vectors", "requested", "told"),
    [
        ([Node("map", 2)], {"map": ["b"] * 4}, (), "'map' has parallelism 2 but is placed for 4"),
        ([Node("Map"), Node("Map")], {"Map": ["a"]}, (), r"operator 'Map \(2\)' is not placed"),
        (
            [Node("map", group="vision")],
            {"map": ["b"]},
            ("gpu", "dev-a", "fpga"),
            "group 'vision' requests fpga, gpu, which a placement",
        ),
        # RocksDB with nothing would crawl, and SQL fail
        (
            [Node("count", 2, uses="STATE_BACKEND")],
            {"count": ["a", "a"]},
            (),
            "no managed memory is left for slots of 'a'",
        ),
    ],
    ids=["parallelism", "not placed", "devices", "no memory"],
)
def test_a_program_that_does_not_fit_its_placement_is_refused(
    nodes: list[Node], vectors: dict[str, list[str]], requested: tuple[str, ...], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        executed(nodes, vectors, {"a": 1}, requested)


def test_operators_get_as_many_subtasks_as_they_are_placed_with() -> None:
    """Where the program leaves their number open; resources of earlier placements are no fault."""
    nodes = [Node("Source: src"), Node("map", said=False)]
    executed(nodes, {"src": ["a"], "map": ["b"] * 4}, requested=("dev-a", "lim-0"))
    assert [node.parallelism for node in nodes] == [1, 4]


def test_helpers_of_a_sink_may_have_fewer_subtasks() -> None:
    """A committer of a sink of four is placed with it."""
    nodes = [Node("out: Writer", 4), Node("out: Committer", 1)]
    executed(nodes, {"out": ["b"] * 4})
    assert [node.group for node in nodes] == ["b", "b"]


def test_operators_of_one_name_are_placed_apart_and_shown_apart() -> None:
    """Numbered from the source on, whatever order the graph lists them in."""
    last, source, first = Node("Map"), Node("Source: src"), Node("Map", 2, said=False)
    source.feeds(first)
    first.feeds(last)
    executed([last, source, first], {"src": ["a"], "Map": ["a"] * 3, "Map (2)": ["b"]})
    assert [node.group for node in (source, first, last)] == ["a", "a", "b"]
    assert [node.parallelism for node in (first, last)] == [3, 1]
    assert [node.description for node in (first, last)] == ["Map", "Map [namesake 2]"]


def test_managed_memory_goes_to_the_slots_that_use_it() -> None:
    """All of a TaskManager's, in equal shares; all slots of a spread group get the least."""
    nodes = [Node("src"), Node("count", 2, uses="STATE_BACKEND"), Node("sum", 2, uses="PYTHON")]
    vectors = {"src": ["a"], "count": ["b", "b"], "sum": ["a", "b"]}
    shares = {"a": 0, "b": 30, "spread-0": 30}
    assert executed(nodes, vectors, {"a": 100, "b": 90}) == shares
    slots = {"a": {"a": 1}, "spread-0": {"a": 1, "b": 3}}
    assert managed_shares(slots, {"a": 100, "b": 60}) == {"a": 50, "spread-0": 20}
