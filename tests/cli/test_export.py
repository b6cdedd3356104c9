import json
from collections.abc import Callable
from pathlib import Path

import pytest
from engine_deployments import GENERAL

from streamplace.engines.registry import EXPORTS


@pytest.mark.parametrize("form", GENERAL)
def test_every_form_is_written(run: Callable, graph: str, placement: str, form: str) -> None:
    """To a file, or to a folder where it has several; --json says what was written."""
    answer = run("export", placement, "--to", form, "-o", "out", "--json")
    document = json.loads(answer.out)
    assert document["export"] == form
    written = [Path("out") / name for name in document["files"]]
    assert all(path.is_file() for path in ([Path("out")] if EXPORTS[form].suffix else written))


def test_a_single_file_goes_to_stdout(run: Callable, graph: str, placement: str) -> None:
    """Unless told otherwise."""
    answer = run("export", placement, "--to", "csv")
    assert answer.out.splitlines()[1] == "src,0,d0,,,"
    assert answer.err == ""


def test_several_files_need_a_folder(run: Callable, graph: str, placement: str) -> None:
    """Or --json, which holds them all."""
    answer = run("export", placement, "--to", "storm")
    assert (answer.status, answer.err) == (2, "error: storm has several files; give -o FOLDER\n")
    files = json.loads(run("export", placement, "--to", "storm", "--json").out)["files"]
    assert "Placement.java" in files


def test_what_was_exported_is_a_placement_again(
    run: Callable, graph: str, placement: str, tmp_path: Path
) -> None:
    """From form to form, and back to one that simulate takes."""
    before = json.loads(run("simulate", graph, placement, "--json").out)
    last = placement
    for form in ("csv", "dot", "graphml", "json"):
        assert run("export", last, "--to", form, "-o", f"p.{form}").status == 0
        last = f"p.{form}"
    assert json.loads(run("simulate", graph, last, "--json").out) == before


def test_a_placement_in_another_form_is_converted_first(
    run: Callable, graph: str, placement: str
) -> None:
    """Commands that take JSON say how."""
    assert run("export", placement, "--to", "csv", "-o", "p.csv").status == 0
    answer = run("simulate", graph, "p.csv")
    assert answer.status == 2
    assert answer.err == (
        "error: p.csv: is an exported placement; convert it with: streamplace export FILE "
        "--graph GRAPH --to json -o placement.json\n"
    )


def test_the_order_of_a_schedule_is_carried_or_said_to_be_lost(
    run: Callable, graph: str, placement: str
) -> None:
    """In one line; nothing is said of a placement without an order."""
    assert "order" not in run("export", placement, "--to", "csv").err
    placed = json.loads(Path(placement).read_text())
    priority = {name: i for i, name in enumerate(placed["assignment"])}
    Path(placement).write_text(json.dumps(placed | {"priority": priority, "queue": "priority"}))
    for form in ("csv", "dot", "graphml", "spl"):
        answer = run("export", placement, "--to", form)
        (line,) = answer.err.splitlines()
        assert line == (
            f"note: {form} does not carry the order in which devices run their operators; "
            "these do: json, kubernetes, ray"
        )
    answer = run("export", placement, "--to", "json")
    assert answer.err == ""
    written = json.loads(answer.out)
    assert (written["priority"], written["queue"]) == (priority, "priority")


def test_the_graph_is_found_by_its_name_or_given(
    run: Callable, graph: str, placement: str, tmp_path: Path
) -> None:
    """Beside the placement; --graph is for all other cases."""
    placed = json.loads(Path(placement).read_text())
    Path(placement).write_text(json.dumps({**placed, "graph": "fork-join"}))
    Path(graph).rename("fork-join.json")
    assert run("export", placement, "--to", "csv").status == 0
    Path("fork-join.json").rename("other.json")
    answer = run("export", placement, "--to", "csv")
    assert answer.status == 2
    assert "Give --graph FILE (there is no fork-join.json or graph.json" in answer.err
    assert run("export", placement, "--to", "csv", "--graph", "other.json").status == 0


@pytest.mark.parametrize("form", ["flink", "flink-kubernetes"])
def test_flink_must_know_all_devices_where_subtasks_are_spread(
    run: Callable, tmp_path: Path, form: str
) -> None:
    """An idle TaskManager would take what it was not told to refuse."""
    graph = {
        "name": "g",
        "operators": [{"name": "a", "rate": 1}, {"name": "b", "parallelism": 2}],
        "streams": [{"from": "a", "to": "b"}],
    }
    placed = {"assignment": {"a": "d0", "b#0": "d0", "b#1": "d1"}}
    for name, document in (("graph", graph), ("placement", placed)):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    command = ["export", "placement.json", "--to", form, "-o", "out"]
    refused = run(*command)
    assert refused.status == 2
    assert "give --cluster or --devices" in refused.err
    assert run(*command, "--devices", "3").status == 0


def test_constraints_and_clusters_are_carried(
    run: Callable, graph: str, placement: str, tmp_path: Path
) -> None:
    """Idle devices get their configuration too, groups their note."""
    (tmp_path / "rules.toml").write_text('colocate = [["b0s1", "b0s2"]]\n')
    words = ["--constraints", "rules.toml", "--devices", "3", "--json"]
    files = json.loads(run("export", placement, "--to", "storm", *words).out)["files"]
    assert "supervisor-d2.yaml" in files
    assert "Must share a device: b0s1, b0s2" in files["Placement.java"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--to", "stom"], "no export 'stom'; did you mean 'storm'?"),
        ([], "Missing option '--to'"),
        (["--to", "csv", "--devices", "1"], "'sink' is on the unknown device 'd1'"),
        (["--to", "csv", "--constraints", "apart.toml"], "must not share a device"),
        (["--to", "csv", "--graph", "none.json"], "none.json: cannot be read"),
        (["--to", "storm", "-o", "graph.json"], "graph.json: cannot create the folder"),
        (["--to", "csv", "-o", "."], "it is a directory; name a file"),
    ],
)
def test_what_cannot_be_exported_is_told_in_one_line(
    run: Callable, graph: str, placement: str, tmp_path: Path, words: list[str], complaint: str
) -> None:
    """Exit code 2, nothing written."""
    (tmp_path / "apart.toml").write_text('exlocate = [["b0s1", "b0s2"]]\n')
    before = sorted(tmp_path.iterdir())
    answer = run("export", placement, *words)
    assert answer.status == 2
    assert answer.err.count("\n") == 1
    assert complaint in answer.err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("p.txt", "", "p.txt: is not a placement file that can be read"),
        ("p.json", "{}", "p.json: assignment is missing"),
        ("p.csv", "operator,device\nsrc,d0\n", "p.csv: operator 'sink' is not placed"),
        ("p.csv", "operator,device\nsrc,d0\nx,d0\n", "p.csv: "),
        ("p.graphml", "<p>", "p.graphml: is not valid GraphML"),
    ],
)
def test_a_bad_placement_is_named(
    run: Callable, graph: str, tmp_path: Path, name: str, text: str, complaint: str
) -> None:
    """With what is wrong in it."""
    (tmp_path / name).write_text(text)
    answer = run("export", name, "--to", "csv")
    assert answer.status == 2
    assert answer.err.count("\n") == 1
    assert complaint in answer.err


def test_a_graph_whose_name_is_no_file_name_is_not_looked_for(
    run: Callable, graph: str, placement: str
) -> None:
    """Too long a name, or one with a NUL, is the name of no file beside the placement."""
    placed = json.loads(Path(placement).read_text())
    for name in ("x" * 300, "a\0b"):
        Path(placement).write_text(json.dumps({**placed, "graph": name}))
        assert run("export", placement, "--to", "csv").status == 0


def test_options_that_would_change_nothing_are_refused(
    run: Callable, graph: str, placement: str
) -> None:
    """A seed, and the speeds of a cluster whose devices the placement names."""
    for option in ("--seed", "--mips", "--bandwidth"):
        answer = run("export", placement, "--to", "csv", option, "3")
        assert answer.status == 2
        assert f"No such option '{option}'" in answer.err
