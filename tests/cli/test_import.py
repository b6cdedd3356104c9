import json
from collections.abc import Callable
from pathlib import Path

import pytest
from dream_format import write_dream

from streamplace.families.registry import FAMILIES


@pytest.fixture(autouse=True)
def _published(tmp_path: Path) -> None:
    """Three graphs in the published format, in the folder in."""
    (tmp_path / "in").mkdir()
    graphs = FAMILIES["branched"].generate(seed=5)
    for i in range(3):
        write_dream(next(graphs), tmp_path / f"in/{i}.json")


def test_a_folder_of_published_graphs_becomes_a_data_set(run: Callable) -> None:
    answer = run("import", "dream", "in", "-o", "out.jsonl.gz", "--json")
    assert json.loads(answer.out) == {"graphs": 3, "output": "out.jsonl.gz"}
    assert json.loads(run("describe", "out.jsonl.gz", "--json").out)["graphs"] == 3


def test_one_published_graph_becomes_a_graph_that_can_be_placed(run: Callable) -> None:
    assert run("import", "dream", "in/0.json", "-o", "g.json").status == 0
    assert run("place", "g.json", "--placer", "round-robin").status == 0


def test_several_graphs_do_not_fit_into_a_single_graph_file(refusal: Callable) -> None:
    assert ".jsonl.gz" in refusal("import", "dream", "in", "-o", "out.json")
