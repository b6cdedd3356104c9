"""Placements on a real cluster."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from flink_clusters import pipeline, submitted

from streamplace.engines.flink import FlinkEngine
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import LocalCluster, local_cluster
from streamplace.engines.flink.move.settling import MoveSettings
from streamplace.engines.flink.pin.apply import apply
from streamplace.engines.flink.pin.verify import verify
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.errors import PlacementError

pytestmark = pytest.mark.xdist_group("flink")
Submit = Callable[..., str]


def random_vectors(seed: int, cluster: LocalCluster) -> tuple[dict, dict[str, list[str]]]:
    """A pipeline with whole and spread operators, every subtask on a random device."""
    draw = random.Random(seed)
    parallelism = [draw.choice([1, 1, 2, 3, 4, 6]) for _ in range(5)]
    vectors = {
        f"op{i}": [draw.choice(cluster.devices) for _ in range(p)]
        for i, p in enumerate(parallelism)
    }
    return pipeline(*parallelism), vectors


def left(rest: Rest) -> dict[str, Any]:
    """What TaskManagers have left of their resources."""
    return {row["id"]: row["freeResource"]["extendedResources"] for row in rest.task_managers()}


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_random_placements_land_exactly(
    seed: int, rest: Rest, submit: Submit, cluster: LocalCluster
) -> None:
    """Whole operators on their devices, spread ones in their counts."""
    graph, vectors = random_vectors(seed, cluster)
    found = verify(rest, submit(graph, vectors), Layout(vectors))
    assert found.fine, found


def test_cancelled_jobs_can_be_placed_again_elsewhere(
    rest: Rest, submit: Submit, cluster: LocalCluster
) -> None:
    """Another placement of the same job, and the group indexes are free again."""
    before = left(rest)
    for device in cluster.devices[1:3]:
        vectors = {"op0": ["dev-0"], "op1": [device], "op2": ["dev-0", device]}
        job = submit(pipeline(1, 1, 2), vectors)
        assert verify(rest, job, Layout(vectors)).fine
        rest.cancel(job)
        rest.cancel(job)  # an ended job is left alone
        assert left(rest) == before


def test_a_job_that_does_not_fit_its_placement_is_refused(submit: Submit) -> None:
    """Operators that are not placed, and other parallelisms than placed."""
    with pytest.raises(FlinkError, match="operator 'op1' is not placed"):
        submit(pipeline(1, 1), {"op0": ["dev-0"]})
    with pytest.raises(FlinkError, match="'op1' has parallelism 3 but is placed for 2"):
        submit(pipeline(1, 3), {"op0": ["dev-0"], "op1": ["dev-0", "dev-1"]})


@pytest.mark.slow
def test_an_adaptive_scheduler_is_refused_and_detected(flink: Flink, graph_jar: Path) -> None:
    """It ignores pins, so that nothing it shows can be trusted."""
    settings = {"jobmanager.scheduler": "adaptive"}
    with local_cluster(flink, ["dev-0"], settings=settings, layers=1) as cluster:
        rest, vectors = Rest(cluster.url), {"op0": ["dev-0"], "op1": ["dev-0"]}
        arguments = [json.dumps(pipeline(1, 1))]
        with pytest.raises(FlinkError, match="scheduler is Adaptive, which ignores placements"):
            apply(rest, flink, Program(graph_jar, "GraphJob", arguments), Layout(vectors))
        with urlopen(f"{cluster.url}/jars") as answer:
            assert json.load(answer)["files"] == []
        job = submitted(rest, graph_jar, "GraphJob", *arguments)
        assert "scheduler is Adaptive" in verify(rest, job, Layout(vectors)).problems[0]


@pytest.mark.slow
def test_whole_operators_are_placed_and_moved_and_spread_ones_refused(
    flink: Flink, graph_jar: Path, tmp_path: Path
) -> None:
    """Operators of several subtasks, too; the refusal says which settings spreading needs."""
    with local_cluster(flink, ["a", "b"], layers=0) as bare:
        rest = Rest(bare.url)
        offered = {device: [*names] for device, names in rest.offered().items()}
        assert offered == {"a": ["dev-a"], "b": ["dev-b"]}
        moves = MoveSettings(tmp_path.as_uri(), settle=0.0)
        engine = FlinkEngine(rest, home=flink.home, moves=moves)
        program = Program(graph_jar, "GraphJob", [json.dumps(pipeline(1, 2, 3))])
        first = {"op0": ["a"], "op1": ["b"] * 2, "op2": ["a"] * 3}
        second = {"op0": ["b"], "op1": ["b"] * 2, "op2": ["b"] * 3}
        job = engine.apply(program, first)
        assert engine.verify(job, first).fine
        assert engine.move(job, program, first).job == job  # it is there already
        with pytest.raises(PlacementError, match=r"does not offer 'lim-0'.*config --subtasks'"):
            engine.move(job, program, first | {"op1": ["a", "b"]})
        moved = engine.move(job, program, second)
        assert engine.verify(moved.job, second).fine
        engine.cancel(moved.job)
