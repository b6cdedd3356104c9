"""Jobs beside one another on a real cluster: what each holds, and what is left for the others."""

import json
from pathlib import Path

import pytest
from flink_graphs import pipeline

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.measure.background import cores_taken
from streamplace.engines.flink.pin.apply import apply, check
from streamplace.engines.flink.pin.verify import verify
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import FlinkError, Rest

pytestmark = pytest.mark.xdist_group("flink")
TALLY: dict[str, list[str]] = {
    "numbers": ["dev-0"],
    "Map": ["dev-1"],
    "KeyedProcess": ["dev-0", "dev-1"],
    "Process": ["dev-0", "dev-1"],
    "Writer": ["dev-0", "dev-1"],
    "TumblingEventTimeWindows": ["dev-1", "dev-1"],
    "Process (2)": ["dev-1", "dev-1"],
    "Writer (2)": ["dev-0", "dev-0"],
}
ROCKS = {"state.backend.type": "rocksdb"}


def managed(rest: Rest, job: str) -> list[int]:
    """Managed memory of each slot of a job, in MB."""
    return [
        slot["resource"]["managedMemory"]
        for device in rest.offered()
        for slot in rest.task_manager(device)["allocatedSlots"]
        if slot["jobId"] == job
    ]


@pytest.mark.slow
def test_only_a_job_that_uses_managed_memory_asks_for_it(
    rest: Rest, flink: Flink, jobs: Path, tmp_path: Path
) -> None:
    """State on the heap takes none; a move counts as free what the job itself has, and no more."""
    heap = Program(jobs, "TallyJob", (str(tmp_path), "100"))
    rocks = Program(jobs, "TallyJob", (str(tmp_path), "100"), settings=ROCKS)
    first, second = (apply(rest, flink, program, TALLY) for program in (heap, rocks))
    assert sum(managed(rest, first)) == 0
    assert sorted(managed(rest, second)) == [0, 0, 21, 21, 21, 21]
    third = apply(rest, flink, heap, TALLY)
    check(rest, flink, rocks, TALLY, second)
    with pytest.raises(FlinkError, match=r"'dev-1' has [0-9] MB of managed memory left for [34]"):
        check(rest, flink, rocks, TALLY, first)
    assert all(verify(rest, job, TALLY).fine for job in (first, second, third))


def test_a_task_manager_with_too_little_left_is_named(
    rest: Rest, flink: Flink, graph_jar: Path
) -> None:
    """Before the job is submitted: each slot takes a megabyte of heap, and other jobs have some."""
    small = Program(graph_jar, "GraphJob", [json.dumps(pipeline(1, 3))])
    crowded = {"op0": ["dev-0"], "op1": ["dev-0"] * 191}
    job = apply(rest, flink, small, {"op0": ["dev-0"], "op1": ["dev-0"] * 3})
    told = "'dev-0' has room for 189 slots beside those of other jobs, but 191 are placed on it"
    with pytest.raises(FlinkError, match=told):
        apply(rest, flink, small, crowded)
    with pytest.raises(FlinkError, match="'op1' has parallelism 3 but is placed for 191"):
        check(rest, flink, small, crowded, job)


def test_all_operators_that_are_not_placed_are_named(
    rest: Rest, flink: Flink, graph_jar: Path
) -> None:
    """However many there are."""
    program = Program(graph_jar, "GraphJob", [json.dumps(pipeline(*[1] * 40))])
    with pytest.raises(FlinkError) as refused:
        check(rest, flink, program, {"op7": ["dev-0"]}, "none")
    assert str(refused.value).startswith("operators '")
    assert str(refused.value).endswith("' are not placed")
    names = {f"'op{i}'" for i in range(40) if i != 7}
    assert set(str(refused.value)[len("operators ") : -len(" are not placed")].split(", ")) == names


@pytest.mark.slow
def test_what_a_job_takes_of_each_device_is_measured(
    rest: Rest, flink: Flink, graph_jar: Path
) -> None:
    """Where its work is done, and by the subtasks that do it."""
    graph = pipeline(1, 3, rate=300)
    graph["operators"][1]["rounds"] = 1_000_000
    program = Program(graph_jar, "GraphJob", [json.dumps(graph)])
    job = apply(rest, flink, program, {"op0": ["dev-0"], "op1": ["dev-1", "dev-2", "dev-2"]})
    taken = cores_taken(rest, [job], 4)
    assert taken.keys() == {"dev-0", "dev-1", "dev-2"}
    assert taken["dev-2"] == pytest.approx(2 * taken["dev-1"], rel=0.1)
    assert taken["dev-1"] > taken["dev-0"] > 0
