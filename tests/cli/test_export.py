import json
from pathlib import Path
from typing import Any

import pytest
from engine_deployments import GENERAL

from streamplace.engines.registry import EXPORTS

pytestmark = pytest.mark.usefixtures("graph", "placement")
EXPORT = ("export", "placement.json", "--to")


def placed():
    """Document of the placement."""
    document: dict[str, Any] = json.loads(Path("placement.json").read_text())
    return document


def add_to_placement(**fields):
    """Write fields into the placement file."""
    Path("placement.json").write_text(json.dumps(placed() | fields))


@pytest.mark.parametrize("form", GENERAL)
def test_every_form_is_written(run, form):
    """To a file, or to a folder where it has several; --json says what was written."""
    answer = run(*EXPORT, form, "-o", "out", "--json")
    document = json.loads(answer.out)
    assert document["export"] == form
    written = [Path("out") / name for name in document["files"]]
    assert all(path.is_file() for path in ([Path("out")] if EXPORTS[form].suffix else written))


def test_one_file_goes_to_stdout_and_several_to_a_folder(run, refusal):
    answer = run(*EXPORT, "csv")
    assert answer.out.splitlines()[1] == "src,0,d0,,,"
    assert answer.err == ""
    assert "-o FOLDER" in refusal(*EXPORT, "ray")
    files = json.loads(run(*EXPORT, "ray", "--json").out)["files"]
    assert "placement.py" in files


def test_what_was_exported_is_a_placement_again(run, refusal):
    """A search that begins with one needs its order, too, which a table lacks."""
    before = json.loads(run("simulate", "graph.json", "placement.json", "--json").out)
    last = "placement.json"
    for form in ("csv", "graphml", "json"):
        assert run("export", last, "--to", form, "-o", f"p.{form}").status == 0
        last = f"p.{form}"
    assert json.loads(run("simulate", "graph.json", last, "--json").out) == before
    assert "p.csv" in refusal("simulate", "graph.json", "p.csv", "--from", "p.csv")


def test_an_order_that_is_lost_is_noted_on_stderr(run):
    priority = {name: i for i, name in enumerate(placed()["assignment"])}
    add_to_placement(priority=priority, queue="priority")
    assert run(*EXPORT, "csv").err.startswith("note: csv does not carry the order")
    assert run(*EXPORT, "json").err == ""


def test_the_graph_is_found_by_its_name_or_given(run, refusal):
    """Beside the placement; --graph is for all other cases."""
    add_to_placement(graph="fork-join")
    Path("graph.json").rename("fork-join.json")
    assert run(*EXPORT, "csv").status == 0
    Path("fork-join.json").rename("other.json")
    assert "--graph FILE (there is no fork-join.json or graph.json" in refusal(*EXPORT, "csv")
    assert run(*EXPORT, "csv", "--graph", "other.json").status == 0


def test_a_graph_whose_name_is_no_file_name_is_not_looked_for(run):
    """Too long a name, or one with a NUL, is the name of no file beside the placement."""
    for name in ("x" * 300, "a\0b"):
        add_to_placement(graph=name)
        assert run(*EXPORT, "csv").status == 0


def test_subtasks_are_exported_whose_operator_no_device_can_hold(run):
    Path("graph.json").write_text(
        '{"operators": [{"name": "a", "rate": 1, "parallelism": 2, "memory": "6 GB"}], '
        '"streams": []}'
    )
    Path("cluster.toml").write_text('[[devices]]\nname = "d"\ncount = 2\nmemory = "4 GB"\n')
    Path("placement.json").write_text('{"assignment": {"a#0": "d0", "a#1": "d1"}}')
    assert run(*EXPORT, "csv", "--cluster", "cluster.toml").status == 0
