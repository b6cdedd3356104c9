"""A model of somebody else's package is trained and places, from its one file."""

import json
from pathlib import Path

import pytest
from problems import chain, fork_join
from third_parties import EXAMPLES, installed, run_with

from streamplace.io.graphs import write_graph, write_graphs


@pytest.mark.slow
def test_it_is_trained_and_places_as_any_other(tmp_path: Path) -> None:
    """Its weights compete with METIS; without any, it says how to get some."""
    (tmp_path / "site").mkdir()
    site = installed(EXAMPLES / "own_allocator", tmp_path / "site")
    write_graphs([chain(4), chain(6), fork_join(3), fork_join(4)], tmp_path / "g.jsonl")
    write_graph(fork_join(5), tmp_path / "g.json")
    answer = run_with(site, tmp_path, "place", "g.json", "--placer", "favourites")
    assert answer.status == 2
    assert "train" in answer.err
    assert len(answer.err.splitlines()) == 1
    words = ("train", "favourites", "--data", "g.jsonl", "--out", "run", "--devices", "3")
    trained = run_with(site, tmp_path, *words, "--epochs", "8", "--json")
    assert trained.status == 0, trained.err
    assert json.loads(trained.out)["epochs"] == 8
    asked = "favourites:weights=run/best.safetensors:samples=4"
    placed = run_with(
        site, tmp_path, "place", "g.json", "--devices", "3", "--placer", asked, "--json"
    )
    assert json.loads(placed.out)["placer"] == "favourites"
    table = run_with(
        site, tmp_path, "compare", "g.jsonl", "--devices", "3", "--placers", f"metis,{asked}",
        "--jobs", "1", "--json",
    )  # fmt: skip
    (rows,) = json.loads(table.out)["rates"].values()
    assert rows["placers"][asked]["failed"] == 0
    assert "favourites" in run_with(site, tmp_path, "placers").out
