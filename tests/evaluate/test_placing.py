"""Placing a data set: a line per graph, in order, gone on with, and failures named."""

import json

import pytest
from problems import chain

from streamplace.errors import FormatError, SettingError
from streamplace.evaluate.placing import Placing, place_all
from streamplace.io.datasets import DataSet
from streamplace.io.graphs import write_graphs
from streamplace.io.placements import parse_placement
from streamplace.placers.registry import Budget, Placer
from streamplace.placers.request import PlacementRequest

GRAPHS = [chain(n) for n in range(2, 8)]
RANDOM = Placing(PlacementRequest("random", seed=3, budget=Budget(None, 50)))


@pytest.fixture
def data(tmp_path):
    """Six chains."""
    write_graphs(GRAPHS, tmp_path / "set.jsonl")
    return DataSet(tmp_path / "set.jsonl")


def placed(data, path, placing=RANDOM):
    """Graphs that were placed, and why others were not."""
    return [one.error or one.graph for one in place_all(placing, data, path, jobs=1)]


def test_every_line_is_a_placement_of_its_graph(data, tmp_path):
    """Which any command reads, with the value that it claims."""
    placed(data, tmp_path / "p.jsonl")
    lines = (tmp_path / "p.jsonl").read_bytes().splitlines()
    for problem, line in zip(data, lines, strict=True):
        placement = parse_placement(line, "p", problem)
        told = json.loads(line)
        assert told["graph"] == problem.graph.name
        assert placement.as_dict() == told["assignment"]


def test_a_stopped_run_goes_on_after_its_last_whole_line(data, tmp_path):
    """Nothing is placed twice, and the file is that of one run."""
    whole, path = tmp_path / "whole.jsonl", tmp_path / "p.jsonl"
    assert placed(data, whole) == [graph.name for graph in GRAPHS]
    for written in (len(b'{"graph":"ch'), whole.stat().st_size // 2):
        path.write_bytes(whole.read_bytes()[:written])
        assert placed(data, path) == [graph.name for graph in GRAPHS]
        assert path.read_bytes() == whole.read_bytes()


def test_answers_to_another_question_are_not_gone_on_with(data, tmp_path):
    path = tmp_path / "p.jsonl"
    placed(data, path, Placing(PlacementRequest("metis:k=2")))
    before = path.read_bytes()
    for other in (PlacementRequest("metis:k=2", seed=4), PlacementRequest("metis:k=3")):
        with pytest.raises(FormatError, match=r"p\.jsonl:1: "):
            placed(data, path, Placing(other))
    write_graphs(GRAPHS[:2], tmp_path / "set.jsonl")
    with pytest.raises(FormatError, match=r"p\.jsonl:3: "):
        placed(data, path, Placing(PlacementRequest("metis:k=2")))
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b'{"mine":1}', b'{"mine":1}\n{"mine":2}', b"notes"])
def test_a_file_of_others_is_refused_and_stays_as_it_was(refusal, data, tmp_path, content):
    """Its last line has no end, like that of a run that was stopped."""
    path = tmp_path / "mine.jsonl"
    path.write_bytes(content)
    words = ("place", str(data.source), "--placer", "round-robin", "-o", str(path))
    assert "mine.jsonl" in refusal(*words)
    assert path.read_bytes() == content


@pytest.mark.parametrize("spoiled", [{"graph": 1}, {"graph": None}, {"value": "1"}, {"error": []}])
def test_answers_that_lack_what_matters_are_refused(data, tmp_path, spoiled):
    """Though their digest is right; a missing name was a KeyError."""
    path = tmp_path / "p.jsonl"
    placed(data, path)
    first, *others = path.read_bytes().splitlines(keepends=True)
    answer = {k: v for k, v in {**json.loads(first), **spoiled}.items() if v is not None}
    path.write_bytes(json.dumps(answer).encode() + b"\n" + b"".join(others))
    with pytest.raises(FormatError, match=r"p\.jsonl:1: "):
        placed(data, path)


def test_a_graph_that_fails_is_named_and_the_rest_goes_on(run, data):
    """Whether a placer refuses, breaks down or has no memory; the exit status tells."""
    errors = {"chain3": SettingError("too odd"), "chain5": MemoryError(), "chain6": KeyError("x")}
    place = Placer.place

    def failing(placer, problem, *rest, **more):
        if problem.graph.name in errors:
            raise errors[problem.graph.name]
        return place(placer, problem, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Placer, "place", failing)
        answer = run("place", "set.jsonl", "--placer", "random", "-o", "p.jsonl", "--json")
        compared = run("compare", "set.jsonl", "--placers", "random", "-o", "out", "--json")
    assert (answer.status, compared.status) == (1, 1)
    assert answer.err.splitlines() == [
        "failed: chain3: too odd",
        "failed: chain5: not enough memory",
        "failed: chain6: KeyError: 'x'",
        "3 graphs failed",
    ]
    assert json.loads(answer.out)["placed"] == 3
    assert "failed: chain6: random: KeyError: 'x'" in compared.err
    again = run("compare", "set.jsonl", "--placers", "random", "-o", "out", "--json")
    assert again.status == 0
    (table,) = json.loads(again.out)["rates"].values()
    assert table["placers"]["random"]["failed"] == 1  # a refusal is a result
