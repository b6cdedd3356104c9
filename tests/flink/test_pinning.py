"""Placements as groups and resources, as files, and as Java and PyFlink programs execute them."""

import base64
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter
from pathlib import Path
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml
from flink_jars import SHIPPED, build_shipped, compile_java
from hypothesis import given
from hypothesis import strategies as st

from streamplace.engines.text import quoted_yaml
from streamplace.errors import PlacementError
from streamplace.flink.constants import INDEXES
from streamplace.flink.layout import Layout
from streamplace.flink.local.session import find_java
from streamplace.flink.pin import hook
from streamplace.flink.pin.hook import PlacedEnvironment, managed_shares
from streamplace.flink.pin.pinning import (
    MAX_PER_DEVICE,
    SpreadLimits,
    as_yaml,
    cluster_settings,
    future_devices,
    offers,
    pinning,
)
from streamplace.flink.program.jars import placed_jar, placed_java
from streamplace.flink.versions import DOWNLOADED
from streamplace.io.graphs import write_graph
from streamplace.model import Operator, Stream, StreamGraph

DEVICES = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("vectors", "groups"),
    [
        # a group is a processing element; parallelism inside it is free
        ({"src": ["a"], "map": ["a", "a"], "sink": ["b"]}, {"src": "a", "map": "a", "sink": "b"}),
        # so that Flink may fuse them; equal counts in another order are another group
        (
            {"u": ["a", "b"], "v": ["a", "b"], "w": ["b", "a"]},
            {"u": "spread-0", "v": "spread-0", "w": "spread-1"},
        ),
    ],
)
def test_operators_that_are_placed_alike_share_a_group(vectors, groups):
    answer = pinning(Layout(vectors), SpreadLimits.untouched(DEVICES))
    assert answer.operators == groups
    assert answer.parallelism == {name: len(devices) for name, devices in vectors.items()}


def test_a_device_is_not_called_like_a_group_of_spread_operators():
    """Its operators would be in that group."""
    layout = Layout({"u": ["a", "spread-0"], "v": ["spread-0"]})
    with pytest.raises(PlacementError, match="'spread-0'"):
        pinning(layout, SpreadLimits.untouched(["a", "spread-0"]))


def test_spread_groups_take_what_is_left():
    """What other jobs hold is left alone."""
    vectors = {"u": ["a", "b"], "v": ["b", "a"]}
    limits = SpreadLimits.untouched(DEVICES)
    limits.indexes["a"] &= {1, 4, 9}
    limits.indexes["b"] &= {2, 4, 9}
    groups = pinning(Layout(vectors), limits).groups.values()
    assert [demand.keys() & {"lim-4", "lim-9"} for demand in groups] == [{"lim-4"}, {"lim-9"}]
    with pytest.raises(PlacementError, match=r"'a', 'b': .*indexes"):
        pinning(Layout(vectors), limits)


def test_uneven_groups_use_up_layers_only_where_they_have_less_than_elsewhere():
    """Even ones none at all, and groups that share no device the same ones."""
    limits = SpreadLimits.untouched([*DEVICES, "d"], layers=1)
    pinning(Layout({"even": ["a", "b"], "same": ["b", "a"], "ab": ["a", "a", "b"]}), limits)
    pinning(Layout({"ba": ["b", "b", "a"], "cd": ["c", "d", "d"]}), limits)
    assert limits.layers == {"a": set(), "b": set(), "c": set(), "d": {0}}
    with pytest.raises(PlacementError, match=r"'b': .*layers"):
        pinning(Layout({"again": ["a", "a", "b"]}), limits)


def fits(left, demand):
    """Whether a slot can be cut from a TaskManager."""
    return all(left.get(name, 0) >= amount for name, amount in demand.items())


def filled(managers, demands, slots):
    """Number of slots by TaskManager, each on the first in a random order that fits."""
    random, found = Random(repr(slots)), [Counter[str]() for _ in demands]
    for j in slots:
        device = random.choice([d for d in managers if fits(managers[d], demands[j])])
        for name, amount in demands[j].items():
            managers[device][name] -= amount
        found[j][device] += 1
    return found


@given(
    st.integers(2, 6).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(0, 7), min_size=n, max_size=n).filter(any), max_size=6
        )
    ),
    st.integers(0, 2),
    st.randoms(use_true_random=False),
)
def test_any_order_of_slots_ends_with_the_counts(vectors, room, random):
    """Several groups at once, slots in random order, each on a random TaskManager that fits.

    Devices that came later, and those that are not prepared, take none.
    """
    size = len(vectors[0]) if vectors else 2
    devices = [f"dev-{d}" for d in range(size)]
    every = [*devices, *future_devices(devices, room)]
    limits = SpreadLimits.untouched(every, layers=len(vectors))
    managers = {d: offers(d, every, len(vectors)) for d in every}
    managers["bare"] = {"dev-bare": 10_000}
    wanted = [{d: n for d, n in zip(devices, vector, strict=True) if n} for vector in vectors]
    demands = [limits.take(counts) for counts in wanted]
    slots = [j for j, counts in enumerate(wanted) for _ in range(sum(counts.values()))]
    random.shuffle(slots)
    assert [dict(counts) for counts in filled(managers, demands, slots)] == wanted
    for demand in demands:  # and there is no room for one more
        assert not any(fits(left, demand) for left in managers.values())


@pytest.mark.parametrize("count", [7, 500, 998, MAX_PER_DEVICE])
def test_the_limit_is_exact_up_to_the_largest_count(count):
    """Count slots fit, one more does not, be it the largest number of the group or not."""
    demand = SpreadLimits.untouched(["a", "b"]).take({"a": count, "b": MAX_PER_DEVICE})
    for device, number in {"a": count, "b": MAX_PER_DEVICE}.items():
        offered = offers(device, ["a", "b"])
        assert min(offered[name] // amount for name, amount in demand.items()) == number


def test_what_the_scheme_cannot_count_is_refused():
    """More slots than the amounts can tell apart, and devices that are not there."""
    for counts, message in (({"a": 1000}, "999"), ({"z": 1}, "'z'")):
        with pytest.raises(PlacementError, match=message):
            SpreadLimits.untouched(["a"]).take(counts)


def test_what_a_task_manager_offers_does_not_grow_with_the_cluster():
    """Of a hundred devices, with room for ten more; beyond 256 each needs to be named once."""
    sizes = {n: len(offers("dev-0", [f"dev-{i}" for i in range(n)])) for n in (5, 100, 1000)}
    assert sizes[5] == 1 + INDEXES + 5 * INDEXES
    assert sizes[100] < sizes[5] * 1.3
    assert sizes[1000] == 1 + INDEXES + 1000
    written = cluster_settings([f"dev-{i}" for i in range(100)], future=10)
    assert len(written) == 110
    assert max(map(len, written.values())) < 20_000


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_settings_hold_any_text_as_text(text):
    """In TOML, and in YAML, in which emojis are no pairs of surrogates."""
    setting = {"taskmanager.resource-id": text}
    assert tomllib.loads(f"name = {quoted_yaml(text)}\n") == {"name": text}
    assert yaml.safe_load(as_yaml(setting)) == setting


LONG = f"m#{'9' * 5000}"


@pytest.mark.parametrize(
    ("assignment", "vectors"),
    [
        ({"m#0": "a", "m#1": "b", "n#1": "c", "k": "a"}, {"m": ["a", "b"], "n#1": "c", "k": "a"}),
        (
            {f"m#{i}": f"d{i}" for i in sorted(range(11), key=str)},
            {"m": [f"d{i}" for i in range(11)]},
        ),
        ({"m#0": "a", LONG: "b"}, {"m#0": "a", LONG: "b"}),
        (
            {"Calc(select=[id -> start, x]) -> out": "a", "in": "b"},
            {"Calc(select=[id -> start, x])": "a", "out": "a", "in": "b"},
        ),
    ],
    ids=["subtasks", "sorted by name", "a long number", "arrows within names"],
)
def test_a_placement_is_read_by_operators(assignment, vectors):
    """The job knows fused operators by their own names, and subtasks by numbers without gaps."""
    assert Layout.of(assignment).to_json() == vectors


def test_a_placement_file_says_how_many_subtasks_its_operators_have(run, tmp_path):
    """As the graph says it; fused operators and those of one subtask, too."""
    operators = [
        Operator("src", rate=10.0),
        Operator("map -> trim", parallelism=4),
        Operator("out", parallelism=2),
    ]
    streams = [Stream("src", "map -> trim"), Stream("map -> trim", "out")]
    write_graph(StreamGraph.of("pipe", operators, streams), tmp_path / "graph.json")
    for option in ((), ("--subtasks",)):
        dealt = ("--placer", "round-robin", "--devices", "2", *option)
        assert run("place", "graph.json", *dealt, "-o", "p.json").status == 0
        layout = Layout.read(tmp_path / "p.json")
        numbers = {name: len(devices) for name, devices in layout.items()}
        assert numbers == {"src": 1, "map": 4, "trim": 4, "out": 2}
        assert not layout.uncounted
        for kind, written in (("json", "q"), ("flink", "f")):
            options = ("--graph", "graph.json", "--devices", "2", "--to", kind, "-o", written)
            run("export", "p.json", *options)
        assert Layout.read(tmp_path / "q") == layout
        assert Layout.read(tmp_path / "f" / "placement.json") == layout


@pytest.mark.parametrize(
    ("assignment", "message"), [({"m#0": "a", "m#1": "b"}, "'m' has 2"), ({"k": "a"}, "'m' has 0")]
)
def test_numbers_of_subtasks_that_contradict_the_placement_are_refused(assignment, message):
    with pytest.raises(PlacementError, match=message):
        Layout.of(assignment, {"m": 3})


class Collection(list[Any]):
    """A collection as Java has it."""

    def isEmpty(self):
        """Whether nothing is in it."""
        return not self

    def toArray(self):
        """What is in it."""
        return [*self]


class Node:
    """An operator of a stream graph, and the transformation that it comes from."""

    def __init__(self, name, parallelism=1, *, uses="", said=True, group=""):
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

    def feeds(self, other):
        """Have it send to another one."""
        edge = SimpleNamespace(getSourceId=self.getId, getTargetId=other.getId)
        self.outputs.append(edge)
        other.inputs.append(edge)


class JavaMap(dict[str, Any]):
    """A map as Java has it."""

    def put(self, key, value):
        """Add an entry."""
        self[key] = value


@pytest.fixture
def pyflink(monkeypatch):
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


def executed(nodes, vectors, managed=None, requested=()):
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
    ("nodes", "vectors", "requested", "message"),
    [
        ([Node("map", 2)], {"map": ["b"] * 4}, (), "'map' .*2 .*4"),
        ([Node("Map"), Node("Map")], {"Map": ["a"]}, (), r"'Map \(2\)'"),
        (
            [Node("map", group="vision")],
            {"map": ["b"]},
            ("gpu", "dev-a", "fpga"),
            "'vision' .*fpga, gpu",
        ),
        # RocksDB with nothing would crawl, and SQL fail
        ([Node("count", 2, uses="STATE_BACKEND")], {"count": ["a", "a"]}, (), "memory .*'a'"),
    ],
    ids=["parallelism", "not placed", "devices", "no memory"],
)
@pytest.mark.usefixtures("pyflink")
def test_a_program_that_does_not_fit_its_placement_is_refused(nodes, vectors, requested, message):
    with pytest.raises(ValueError, match=message):
        executed(nodes, vectors, {"a": 1}, requested)


@pytest.mark.usefixtures("pyflink")
def test_operators_get_as_many_subtasks_as_they_are_placed_with():
    """Where the program leaves their number open; resources of earlier placements are no fault."""
    nodes = [Node("Source: src"), Node("map", said=False)]
    executed(nodes, {"src": ["a"], "map": ["b"] * 4}, requested=("dev-a", "lim-0"))
    assert [node.parallelism for node in nodes] == [1, 4]


@pytest.mark.usefixtures("pyflink")
def test_helpers_of_a_sink_may_have_fewer_subtasks():
    """A committer of a sink of four is placed with it."""
    nodes = [Node("out: Writer", 4), Node("out: Committer", 1)]
    executed(nodes, {"out": ["b"] * 4})
    assert [node.group for node in nodes] == ["b", "b"]


@pytest.mark.usefixtures("pyflink")
def test_operators_of_one_name_are_placed_apart_and_shown_apart():
    """Numbered from the source on, whatever order the graph lists them in."""
    last, source, first = Node("Map"), Node("Source: src"), Node("Map", 2, said=False)
    source.feeds(first)
    first.feeds(last)
    executed([last, source, first], {"src": ["a"], "Map": ["a"] * 3, "Map (2)": ["b"]})
    assert [node.group for node in (source, first, last)] == ["a", "a", "b"]
    assert [node.parallelism for node in (first, last)] == [3, 1]
    assert [node.description for node in (first, last)] == ["Map", "Map [namesake 2]"]


@pytest.mark.usefixtures("pyflink")
def test_managed_memory_goes_to_the_slots_that_use_it():
    """All of a TaskManager's, in equal shares; all slots of a spread group get the least."""
    nodes = [Node("src"), Node("count", 2, uses="STATE_BACKEND"), Node("sum", 2, uses="PYTHON")]
    vectors = {"src": ["a"], "count": ["b", "b"], "sum": ["a", "b"]}
    shares = {"a": 0, "b": 30, "spread-0": 30}
    assert executed(nodes, vectors, {"a": 100, "b": 90}) == shares
    slots = {"a": {"a": 1}, "spread-0": {"a": 1, "b": 3}}
    assert managed_shares(slots, {"a": 100, "b": 60}) == {"a": 50, "spread-0": 20}


PROGRAMS = Path(__file__).parent / "java" / "placed"
NAMES = (
    "unit\x1fends",
    "record\x1e1",
    "\x1e0\x1f\x1f",
    "a\nb",
    "\\u000a\\",
    '" + x + "',
    "größe 大",
)


def compiled(flink, folder, vectors, *programs):
    """Folder with the classes of a placement and of programs."""
    devices = sorted(vectors.devices)
    sources = placed_java(pinning(vectors, SpreadLimits.untouched(devices)))
    for name, text in sources.items():
        (folder / name).write_text(text, encoding="utf-8")
    own = [PROGRAMS / f"{name}.java" for name in programs]
    compile_java(flink, [*sorted(folder.glob("*.java")), *own], folder)
    return folder


def run_java(flink, folder, *words):
    """Run a class of a folder with its arguments."""
    java = [find_java("java"), *flink.java_options()]
    return subprocess.run(
        [*java, "-cp", ":".join(map(str, [*flink.jars, folder])), *words],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def pinned(flink, tmp_path_factory):
    """Folder of two programs, whose two operators are placed on one device."""
    vectors = {"in": ["dev-0"], "out": ["dev-0"]}
    return compiled(
        flink, tmp_path_factory.mktemp("pinned"), Layout(vectors), "Requesting", "Listening"
    )


def test_operators_and_devices_of_any_name_get_their_groups(flink, tmp_path):
    """Those too that hold what the class separates its own cells with."""
    devices = {name: f"on {name}" for name in NAMES}
    names = [base64.b64encode(name.encode()).decode() for name in NAMES]
    vectors = {name: [device] for name, device in devices.items()}
    run = run_java(flink, compiled(flink, tmp_path, Layout(vectors), "Main"), "Main", *names)
    assert run.returncode == 0, run.stderr
    message = [line.split() for line in run.stdout.splitlines()]
    assert [base64.b64decode(group).decode() for group, _ in message] == list(devices.values())
    assert {known for _, known in message} == {"true"}


def test_devices_that_a_program_requests_are_refused(flink, pinned):
    """A slot of the placement would not have them."""
    run = run_java(flink, pinned, "Requesting")
    assert run.returncode != 0
    assert "group 'vision' requests gpu" in run.stderr


def test_listeners_of_a_program_are_told_of_its_job(flink, pinned):
    """Once, although another environment executes it."""
    run = run_java(flink, pinned, "Placed", "Listening")
    assert run.stdout.count("told of the job") == 1, run.stderr


def test_a_job_is_pinned_without_java_on_this_machine(tmp_path, monkeypatch):
    """The classes are in the package, for Java 11, whose classes have version 55."""
    monkeypatch.setenv("PATH", "")
    job = tmp_path / "job.jar"
    with zipfile.ZipFile(job, "w") as made:
        made.writestr("a", "")
    answer = pinning(Layout({"in": ["dev-0"]}), SpreadLimits.untouched(["dev-0"]))
    with placed_jar(job, [], answer) as jar, zipfile.ZipFile(jar) as opened:
        content = opened.read("Placed.class")
    assert int.from_bytes(content[6:8], "big") == 55


@pytest.mark.parametrize("version", [DOWNLOADED, pytest.param("1.20.5", marks=pytest.mark.slow)])
def test_the_jars_of_the_package_are_those_of_their_sources(fetched, tmp_path, version):
    """Byte for byte, by either Flink; another JDK may write other bytes."""
    message = subprocess.run(["javac", "-version"], capture_output=True, text=True).stdout
    if not message.startswith("javac 17."):
        pytest.skip(f"{message.strip()} is not the JDK that built them (17)")
    for jar in SHIPPED:
        build_shipped(fetched(version), jar, tmp_path / jar.name)
        assert (tmp_path / jar.name).read_bytes() == jar.read_bytes(), "make jars builds them"
