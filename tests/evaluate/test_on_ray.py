"""Comparisons on Ray: the same as on one machine, whoever dies."""

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from makespan_cases import giph

from streamplace.errors import SettingError
from streamplace.evaluate.compare import compare
from streamplace.evaluate.contest import Contest
from streamplace.evaluate.on_ray import mapped_on_ray
from streamplace.evaluate.records import Record
from streamplace.placers.registry import Budget

ray = pytest.importorskip("ray")
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
pytestmark = pytest.mark.xdist_group("ray")

PROBLEMS = giph(20)
CONTEST = Contest(("heft", "anneal"), budget=Budget(None, 300), objective="makespan")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def untimed(records: Iterator[list[Record]]) -> list[list[Record]]:
    """Records without the times that they took."""
    return [[replace(record, milliseconds=0.0) for record in of_one] for of_one in records]


def test_a_comparison_on_ray_is_that_of_this_machine() -> None:
    here = untimed(compare(CONTEST, PROBLEMS, jobs=1))
    assert untimed(compare(CONTEST, PROBLEMS, on="ray")) == here


def test_processes_are_of_this_machine() -> None:
    with pytest.raises(SettingError, match="leave them out"):
        next(compare(CONTEST, PROBLEMS, jobs=2, on="ray"))


def test_where_no_cluster_is_that_is_said() -> None:
    with pytest.raises(SettingError, match=r"no Ray cluster at '127\.0\.0\.1:1'"):
        next(compare(CONTEST, PROBLEMS, on="127.0.0.1:1"))


@dataclass(frozen=True)
class Slow:
    """Doubles a number, in its own time."""

    seconds: float

    def __call__(self, number: int) -> int:
        """Wait, then double."""
        if number < 0:
            raise SettingError(f"{number} is below 0")
        time.sleep(self.seconds)
        return 2 * number


def test_errors_of_workers_are_errors_here() -> None:
    with pytest.raises(SettingError, match="-3 is below 0"):
        list(mapped_on_ray(Slow(0.0), [1, 2, -3, 4], "ray"))


def test_a_machine_that_is_lost_changes_nothing() -> None:
    """Four nodes, one of which dies with work on it."""
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        nodes = [cluster.add_node(num_cpus=1) for _ in range(3)]
        cluster.wait_for_nodes()
        found = mapped_on_ray(Slow(0.05), range(200), cluster.address)
        first = [next(found) for _ in range(20)]
        cluster.remove_node(nodes[1], allow_graceful=False)
        assert first + list(found) == [2 * number for number in range(200)]
    finally:
        cluster.shutdown()
