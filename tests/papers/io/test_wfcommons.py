"""Workflows in WfFormat."""

import json
from copy import deepcopy
from functools import partial

import pytest
from formats import read_as
from fuzz.targets import SEEDS

import streamplace
from streamplace.errors import FormatError, StreamplaceError
from streamplace.io.registry import FORMATS

DIAMOND = json.loads((SEEDS / "wfcommons.json").read_text())
OLD = json.loads((SEEDS / "wfcommons.1-4.json").read_text())
"""The same workflow as version 1.4 has it; capitals of links do not matter."""
read = partial(read_as, "wfcommons", "instance.json")


def test_a_task_takes_its_runtime_on_the_machine_it_ran_on(tmp_path):
    problem = read(tmp_path, DIAMOND)
    ran = {"split_1": "node1", "work_2": "node2", "work_3": "node1", "merge_4": "node1"}
    devices, operators = problem.cluster.devices, problem.graph.operators
    took = [operators[name].ipt / (devices[node].mips * 1e6) for name, node in ran.items()]
    assert took == pytest.approx([1.5, 10, 12, 2])
    assert problem.cluster.devices.cores.tolist() == [4, 2]


def test_a_task_without_a_machine_ran_on_the_only_one(tmp_path, caplog):
    """Of several, it may be any; then its runtime counts at 2500 MIPS, with a warning."""
    document = deepcopy(DIAMOND)
    execution = document["workflow"]["execution"]
    for task in execution["tasks"]:
        del task["machines"]
    machines = execution["machines"]
    execution["machines"] = machines[1:]
    problem = read(tmp_path, document)
    mips = problem.cluster.devices[0].mips
    assert mips != 2500
    assert (problem.graph.operators.ipt / (mips * 1e6)).tolist() == [1.5, 10, 12, 2]
    assert "name no machine" not in caplog.text
    execution["machines"] = machines
    assert (read(tmp_path, document).graph.operators.ipt / 2500e6).tolist() == [1.5, 10, 12, 2]
    assert "4 of 4 tasks name no machine" in caplog.text


def test_a_stream_carries_the_files_that_one_writes_and_the_other_reads(tmp_path):
    graph = read(tmp_path, DIAMOND).graph
    carried = {(s.source, s.target): s.payload for s in graph.streams}
    assert carried == {
        ("split_1", "work_2"): 100,
        ("split_1", "work_3"): 200,
        ("work_2", "merge_4"): 1000,
        ("work_3", "merge_4"): 2000,
    }
    assert graph.operators.kind == ("split", "work", "work", "merge")


def test_version_1_4_holds_the_same(tmp_path):
    """There, files and runtimes stand in the tasks, and children may be left out."""
    new, before = read(tmp_path, DIAMOND), read(tmp_path, OLD)
    assert (before.graph, before.cluster) == (new.graph, new.cluster)


def test_the_program_is_the_kind_of_a_task_that_is_called_like_its_id(tmp_path):
    """So WfCommons names the tasks of its instances; without a program the name remains."""
    document = deepcopy(DIAMOND)
    parts = document["workflow"]
    for task, done in zip(
        parts["specification"]["tasks"], parts["execution"]["tasks"], strict=True
    ):
        done["command"] = {"program": task["name"], "arguments": []}
        task["name"] = task["id"]
    assert read(tmp_path, document).graph == read(tmp_path, DIAMOND).graph
    parts["execution"]["tasks"][0]["command"] = {"arguments": []}
    assert read(tmp_path, document).graph.operators.kind == ("split_1", "work", "work", "merge")


@pytest.mark.parametrize("name", ["task", "run1234"])
def test_tasks_of_one_name_have_their_ids_in_it(tmp_path, name):
    """In version 1.4, where parents may be ids; also a name that contains all of them."""
    document = deepcopy(OLD)
    for task in document["workflow"]["tasks"]:
        task["name"] = name
        task["parents"] = [parent.rsplit("_")[-1] for parent in task["parents"]]
    names = read(tmp_path, document).graph.operators.name
    assert names == tuple(f"{name}_{i}" for i in range(1, 5))


def test_files_tell_who_feeds_whom_where_no_task_has_parents_or_children(tmp_path):
    new, stated, before = *(deepcopy(DIAMOND) for _ in range(2)), deepcopy(OLD)
    for document, rows in (
        (new, new["workflow"]["specification"]["tasks"]),
        (stated, stated["workflow"]["specification"]["tasks"]),
        (before, before["workflow"]["tasks"]),
    ):
        for task in rows:
            for field in ("parents", "children"):
                task.pop(field, None)
                task |= {field: []} if document is stated else {}
        streams = read(tmp_path, document).graph.streams
        expected = read(tmp_path, DIAMOND).graph.streams
        assert sorted(map(repr, streams)) == sorted(map(repr, expected))


def test_files_of_one_name_in_two_folders_are_two_files(tmp_path):
    """Version 1.4 has the path of a file beside its name."""
    document = deepcopy(OLD)
    _, left, right, merge = document["workflow"]["tasks"]
    for task, path in ((left, "/left/"), (right, "/right/")):
        task["files"][-1] |= {"name": "out", "path": path}
    merge["files"] = [{"link": "input", "name": "out", "path": "/left/", "sizeInBytes": 1000}]
    graph = read(tmp_path, document).graph
    carried = {(s.source, s.target): s.payload for s in graph.streams}
    assert carried["work_2", "merge_4"] == 1000
    assert carried["work_3", "merge_4"] == 0


def test_a_parent_that_may_be_either_of_two_tasks_is_refused(tmp_path):
    document = deepcopy(OLD)
    for task in document["workflow"]["tasks"]:
        task["name"] = task["command"]["program"]
        task["parents"] = [parent.rsplit("_")[0] for parent in task["parents"]]
    with pytest.raises(StreamplaceError, match="'work'"):
        read(tmp_path, document)


def test_files_without_a_size_are_named(tmp_path, caplog):
    new, before = deepcopy(DIAMOND), deepcopy(OLD)
    sizes = new["workflow"]["specification"]["files"]
    sizes[:] = [file for file in sizes if file["id"] not in ("in", "left")]
    del before["workflow"]["tasks"][0]["files"][1]["sizeInBytes"]

    for document in (new, before):
        caplog.clear()
        graph = read(tmp_path, document).graph
        assert "diamond: 1 of 4 files" in caplog.text
        assert graph.streams.payload.min() == 0
    caplog.clear()
    read(tmp_path, DIAMOND)
    assert not caplog.text


def test_versions_before_1_4_are_refused(tmp_path):
    task = {"name": "a", "runtime": 2.5, "parents": [], "files": []}
    document = {"name": "old", "schemaVersion": "1.0", "workflow": {"jobs": [task]}}
    with pytest.raises(FormatError, match=r"before 1\.4"):
        read(tmp_path, document)


def test_tasks_that_state_that_nobody_feeds_them_are_believed(tmp_path):
    """A file with the name of another's output may be of an earlier run."""
    document = deepcopy(DIAMOND)
    split, *_, merge = document["workflow"]["specification"]["tasks"]
    assert (split["id"], merge["id"]) == ("split_1", "merge_4")
    split["inputFiles"] = merge["outputFiles"] = ["state"]
    expected = read(tmp_path, DIAMOND).graph.streams
    assert list(read(tmp_path, document).graph.streams) == list(expected)


def test_tasks_of_many_cores_are_named(tmp_path, caplog):
    new, before = deepcopy(DIAMOND), deepcopy(OLD)

    for document, rows, field in (
        (new, new["workflow"]["execution"]["tasks"], "coreCount"),
        (before, before["workflow"]["tasks"], "cores"),
    ):
        for row, cores in zip(rows, (1, 4, 1.0, None), strict=True):
            row[field] = cores
        caplog.clear()
        read(tmp_path, document)
        assert "diamond: 1 of 4 tasks" in caplog.text


def test_without_machines_it_is_a_graph_for_any_cluster(tmp_path):
    """A second is one on a device of 2500 MIPS."""
    document = deepcopy(DIAMOND)
    del document["workflow"]["execution"]["machines"]
    graph = read(tmp_path, document)
    assert (graph.operators.ipt / 2500e6).tolist() == [1.5, 10, 12, 2]
    assert streamplace.place(graph, placer="single").value == pytest.approx(25.5)


OTHERS = ("Blast", "Bwa", "Seismology")


@pytest.mark.parametrize(
    "name", ["Montage", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]
)
def test_instances_of_wfcommons_recipes_are_read(tmp_path, name):
    wfcommons = pytest.importorskip("wfcommons")
    recipes = pytest.importorskip("wfcommons.wfchef.recipes")
    recipe = getattr(recipes, f"{name}Recipe").from_num_tasks(140)
    workflow = wfcommons.WorkflowGenerator(recipe).build_workflow()
    workflow.write_json(tmp_path / "w.json")
    (graph,) = FORMATS["wfcommons"].read(tmp_path / "w.json")
    assert set(graph.operators.name) == set(workflow.tasks)
    assert {(s.source, s.target) for s in graph.streams} == set(workflow.edges)
    total = sum(task.runtime for task in workflow.tasks.values())
    assert graph.operators.ipt.sum() / 2500e6 == pytest.approx(total)


def test_lone_tasks_are_told(tmp_path, caplog):
    document = deepcopy(DIAMOND)
    for task in document["workflow"]["specification"]["tasks"]:
        task |= {"parents": [], "children": [], "inputFiles": []}
    assert not list(read(tmp_path, document).graph.streams)
    assert "all 4 run at once" in caplog.text
