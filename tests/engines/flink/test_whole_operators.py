"""TaskManagers that offer their own resource alone, on a real Flink."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from flink_graphs import pipeline

from streamplace.engines.flink import FlinkEngine, Program, Rest
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import LocalCluster, local_cluster
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.move.settling import Settling
from streamplace.errors import PlacementError

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]


@pytest.fixture(scope="module")
def bare(flink: Flink) -> Iterator[LocalCluster]:
    """Two TaskManagers with three lines of configuration each."""
    with local_cluster(flink, ["a", "b"], layers=0) as running:
        yield running


def test_whole_operators_are_placed_and_moved_and_spread_ones_refused(
    bare: LocalCluster, flink: Flink, graph_jar: Path, tmp_path: Path
) -> None:
    """Operators of several subtasks, too; the refusal says which settings spreading needs."""
    rest = Rest(bare.url)
    assert {d: set(names) for d, names in rest.offered().items()} == {
        "a": {"dev-a"},
        "b": {"dev-b"},
    }
    engine = FlinkEngine(
        rest, home=flink.home, moves=MoveSettings(tmp_path.as_uri(), settling=Settling(0.0))
    )
    program = Program(graph_jar, "GraphJob", [json.dumps(pipeline(1, 2, 3))])
    first = {"op0": ["a"], "op1": ["b"] * 2, "op2": ["a"] * 3}
    second = {"op0": ["b"], "op1": ["b"] * 2, "op2": ["b"] * 3}
    job = engine.apply(program, first)
    assert engine.verify(job, first).fine
    with pytest.raises(PlacementError, match=r"does not offer 'lim-0'.*config --subtasks'"):
        engine.move(job, program, first | {"op1": ["a", "b"]})
    moved = engine.move(job, program, second)
    assert engine.verify(moved.job, second).fine
    engine.cancel(moved.job)
