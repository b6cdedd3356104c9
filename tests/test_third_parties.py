"""Objectives and models of somebody else's packages work in every command, from their one file."""

import json

import pytest
from problems import chain, diamond, fork_join
from third_parties import EXAMPLES, installed, run_with

from streamplace.io.graphs import write_graph, write_graphs


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder of packages in which the example is installed."""
    return installed(EXAMPLES / "own_objective", tmp_path_factory.mktemp("site"))


def test_an_objective_is_placed_for(site, tmp_path):
    write_graph(diamond(), tmp_path / "g.json")
    options = ("--objective", "network-bytes", "--evaluations", "500")
    placed = run_with(site, tmp_path, "place", "g.json", *options, "-o", "p.json")
    assert "diamond by auto: the network carries 0 B/s" in placed.out, placed.err
    assert "the best possible, proven" in placed.out


@pytest.mark.slow
def test_every_command_knows_an_objective(site, tmp_path):
    """Simulated, drawn, compared, and asked for besides; without the package it is unknown."""
    write_graph(diamond(), tmp_path / "g.json")
    options = ("--objective", "network-bytes")
    apart = {"src": "d0", "left": "d1", "right": "d0", "sink": "d0"}
    (tmp_path / "apart.json").write_text(json.dumps({"assignment": apart}))
    answer = json.loads(
        run_with(site, tmp_path, "simulate", "g.json", "apart.json", *options, "--json").out
    )
    assert answer["network-bytes"] == pytest.approx(1.5e8 + 5e7)  # 5,000 tuples/s of 30 and 10 kB
    assert list(answer["streams"]) == ["src→left", "left→sink"]

    drawn = run_with(site, tmp_path, "draw", "g.json", "apart.json", *options, "-o", "drawn.svg")
    assert (drawn.status, "2e+08 B/s" in (tmp_path / "drawn.svg").read_text()) == (0, True)

    table = run_with(
        site, tmp_path, "compare", "g.json", *options, "--placers", "single,anneal,round-robin",
        "--evaluations", "200", "--jobs", "1", "--json", "-o", "out",
    )  # fmt: skip
    rows = json.loads(table.out)["rates"]["10000"]["placers"]
    assert rows["anneal"]["mean"] == rows["single"]["mean"] == 0 < rows["round-robin"]["mean"]
    records = [json.loads(row) for row in (tmp_path / "out/results.jsonl").read_text().splitlines()]
    assert {record["objective"] for record in records} == {"network-bytes"}

    both = run_with(
        site, tmp_path, "place", "g.json", "--require", "network-bytes<=1.6e8", "--json",
        "--evaluations", "2000",
    )  # fmt: skip
    assert json.loads(both.out)["relative_throughput"] > 0.5, both.err

    unknown = run_with(tmp_path, tmp_path, "place", "g.json", *options)
    assert unknown.status == 2
    assert "there is no objective 'network-bytes'" in unknown.err


@pytest.mark.slow
def test_a_model_is_trained_and_places_as_any_other(tmp_path):
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
    options = "favourites:weights=run/best.safetensors:samples=4"
    placed = run_with(
        site, tmp_path, "place", "g.json", "--devices", "3", "--placer", options, "--json"
    )
    assert json.loads(placed.out)["placer"] == "favourites"
    table = run_with(
        site, tmp_path, "compare", "g.jsonl", "--devices", "3", "--placers", f"metis,{options}",
        "--jobs", "1", "--json",
    )  # fmt: skip
    (rows,) = json.loads(table.out)["rates"].values()
    assert rows["placers"][options]["failed"] == 0
    assert "favourites" in run_with(site, tmp_path, "placers").out
