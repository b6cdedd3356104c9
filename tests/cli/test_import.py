import json
from collections.abc import Callable
from pathlib import Path

from dream_format import write_dream

from streamplace.families.registry import FAMILIES


def published(folder: Path, count: int = 3) -> None:
    """Write graphs in the published format into a folder."""
    folder.mkdir()
    graphs = FAMILIES["branched"].generate(seed=5)
    for i in range(count):
        write_dream(next(graphs), folder / f"{i}.json")


def test_a_folder_of_published_graphs_becomes_a_data_set(run: Callable, tmp_path: Path) -> None:
    """Every file is a line, and describe finds them."""
    published(tmp_path / "in")
    answer = run("import", "dream", "in", "-o", "out.jsonl.gz", "--json")
    assert json.loads(answer.out) == {"graphs": 3, "output": "out.jsonl.gz"}
    assert json.loads(run("describe", "out.jsonl.gz", "--json").out)["graphs"] == 3


def test_one_published_graph_becomes_a_graph_that_can_be_placed(
    run: Callable, tmp_path: Path
) -> None:
    """A file gives a file."""
    published(tmp_path / "in", 1)
    assert run("import", "dream", "in/0.json", "-o", "g.json").status == 0
    assert run("place", "g.json", "--placer", "round-robin").status == 0


def test_several_graphs_do_not_fit_into_a_single_graph_file(run: Callable, tmp_path: Path) -> None:
    """The remedy is named, and nothing is written."""
    published(tmp_path / "in")
    answer = run("import", "dream", "in", "-o", "out.json")
    assert answer.status == 2
    assert ".jsonl.gz" in answer.err
    assert not (tmp_path / "out.json").exists()
