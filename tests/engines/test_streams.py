import ast
import importlib.util
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from engine_deployments import DEPLOYMENTS, shop

from streamplace.engines.spl import as_spl


@pytest.fixture
def placement(module: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The exported module, on the real streamsx.

    streamsx asks pkg_resources for its own version, which newer setuptools no longer have.
    """
    pytest.importorskip("dill", reason="streamsx is not installed")
    if importlib.util.find_spec("pkg_resources") is None:
        from packaging.version import parse

        stand_in: Any = ModuleType("pkg_resources")
        stand_in.working_set = SimpleNamespace(find=lambda _: None)
        stand_in.Requirement = SimpleNamespace(parse=lambda text: text)
        stand_in.parse_version = parse
        monkeypatch.setitem(sys.modules, "pkg_resources", stand_in)
    pytest.importorskip("streamsx.topology.context", reason="streamsx is not installed")
    return module("streams")


def topology(placement: ModuleType) -> list[dict[str, Any]]:
    """Operators of the shop as streamsx hands them to the compiler, after placing them."""
    from streamsx.topology.topology import Topology

    graph = Topology("shop")
    logic = {name: graph.source([1], name=name) for name in ("clicks", "orders")}
    logic["parse"] = logic["clicks"].map(str, name="parse")
    logic["join"] = logic["parse"].union({logic["orders"]}).map(str, name="join")
    logic["score"] = logic["join"].map(str, name="score")
    logic["sink"] = logic["score"].for_each(print, name="sink")
    placement.place(logic)
    operators: list[dict[str, Any]] = graph.graph.generateSPLGraph()["operators"]
    return [operator for operator in operators if operator["name"] in logic]


def test_streamsx_fuses_and_tags_as_placed(placement: ModuleType) -> None:
    """Same colocation tag where the device is the same, and the device's host tags."""
    assignment = DEPLOYMENTS["shop"].placement
    found = {o["name"]: o["config"]["placement"] for o in topology(placement)}
    assert set(found) == set(assignment)
    for name, device in assignment.items():
        tags = {f"dev_{device}"} | set(shop().graph.operators[name].requires)
        assert set(found[name]["resourceTags"]) == tags
        mates = {other for other in assignment if assignment[other] == device}
        fused = {
            o for o in found if found[o].get("colocateTags") == found[name].get("colocateTags")
        }
        assert fused == mates


def test_streamsx_runs_odd_names_under_those_that_check_asks_for(
    written: Callable[..., Path], placement: ModuleType
) -> None:
    """Subtasks have names that are no SPL identifiers."""
    from streamsx.topology.topology import Topology

    names = table(written("streams", "shop by subtasks") / "placement.py", "NAMES")
    assert names
    graph = Topology("subtasks")
    graph.name_to_runtime_id = names.get
    for name in names:
        graph.source([1], name=name)
    running = {operator["name"] for operator in graph.graph.generateSPLGraph()["operators"]}
    assert set(names.values()) <= running


def test_streamsx_reads_the_overlay_completely(placement: ModuleType) -> None:
    """Every key is one that streamsx knows: nothing is left as raw overlay."""
    config = placement.job_config()
    assert config.target_pe_count == 3
    assert config.raw_overlay is None
    written = json.loads(Path(placement.__file__).with_name("job_config.json").read_text())
    assert config.as_overlays() == written


def job(hosts: dict[str, tuple[str, list[str]]]) -> SimpleNamespace:
    """A running job as streamsx shows it: name → PE and tags of its host."""

    def operator(name: str) -> SimpleNamespace:
        pe, tags = hosts[name]
        resource = SimpleNamespace(tags=tags)
        running = SimpleNamespace(id=pe, get_resource=lambda: resource)
        return SimpleNamespace(name=name, get_pe=lambda: running)

    return SimpleNamespace(get_operators=lambda: [operator(name) for name in hosts])


def test_check_finds_what_runs_elsewhere(placement: ModuleType) -> None:
    """Another host, another PE, or nowhere."""
    right = {
        name: (device, [f"dev_{device}", "gpu", "application"])
        for name, device in DEPLOYMENTS["shop"].placement.items()
    }
    assert placement.check(job(right)) == {}
    wrong = {**right, "score": ("gpu", ["dev_box0"]), "sink": ("99", ["dev_box1"])}
    del wrong["parse"]
    assert placement.check(job(wrong)) == {
        "parse": "does not run",
        "score": "runs on a host without the tags dev_gpu, gpu",
        "sink": "runs in another PE than orders",
    }


def table(path: Path, name: str) -> dict[Any, Any]:
    """One of the dictionaries in an exported module."""
    text = path.read_text().partition(f"\n{name} = ")[2].partition("\n}\n")[0] + "\n}"
    found: dict[Any, Any] = ast.literal_eval(text)
    return found


POOL = re.compile(r"^  (\w+) = createPool\(\{size=1u, tags=\[(.*)\]\}, Sys.Shared\)[,;]$", re.M)
CLAUSE = re.compile(
    r'^config placement : partitionColocation\("(\w+)"\), host\((\w+)\)(.*);$', re.M
)
TAG = re.compile("[A-Za-z][A-Za-z0-9_]*")
APART = ', partitionExlocation("streamplace"), hostExlocation("streamplace")'


@pytest.mark.parametrize("deployment", list(DEPLOYMENTS))
def test_every_operator_has_a_clause_and_every_pe_a_pool(deployment: str) -> None:
    """The pool's first tag is the device's, further ones are required by the operators.

    One operator of each PE keeps it apart from the others, not two: operators that share a PE must
    not be exlocated from each other. Names never leave their comment.
    """
    elements = DEPLOYMENTS[deployment].elements
    text = as_spl(DEPLOYMENTS[deployment])
    pools = {name: re.findall('"(.*?)"', tags) for name, tags in POOL.findall(text)}
    assert len(pools) == len(elements)
    assert all(TAG.fullmatch(tag) for tags in pools.values() for tag in tags)
    clauses = CLAUSE.findall(text)
    assert len(clauses) == len(DEPLOYMENTS[deployment].placement)
    assert all(pools[pool][0] == tag for tag, pool, _ in clauses)
    leaders = [tag for tag, _, rest in clauses if rest == APART]
    assert len(leaders) == len(set(leaders)) == len(elements)
    for line in text.splitlines():
        assert not line or line.startswith(("//", "config ", "  Pool_"))
