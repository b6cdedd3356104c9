"""Data sets in shards: found by their name, a pattern or their folder, and whole."""

from collections import Counter
from weakref import WeakSet

import pytest
from problems import chain

from streamplace.errors import FormatError
from streamplace.io.datasets import DataSet, drawn
from streamplace.io.given_sets import graphs_of
from streamplace.io.graphs import read_graphs, write_graphs
from streamplace.model.graph import StreamGraph

GRAPHS = [chain(n) for n in (2, 3, 4, 5)]


@pytest.fixture
def folder(tmp_path):
    """Two shards of a data set of four graphs."""
    for number in (1, 0):
        shard = tmp_path / f"set-0000{number}-of-00002.jsonl.gz"
        write_graphs(GRAPHS[2 * number : 2 * number + 2], shard)
    return tmp_path


@pytest.mark.parametrize("name", ["set.jsonl.gz", "set-*-of-00002.jsonl.gz", ""])
def test_shards_are_read_in_order_by_name_pattern_or_folder(folder, name):
    assert list(read_graphs(folder / name)) == GRAPHS


def test_a_shard_that_is_missing_is_named(folder):
    (folder / "set-00000-of-00002.jsonl.gz").unlink()
    with pytest.raises(FormatError, match=r"set-00000-of-00002\.jsonl\.gz: "):
        list(read_graphs(folder / "set.jsonl.gz"))


def test_shards_of_two_sets_in_one_folder_are_not_mixed(folder):
    write_graphs(GRAPHS, folder / "other-00000-of-00001.jsonl.gz")
    with pytest.raises(FormatError, match=folder.name):
        list(read_graphs(folder))


def split(folder, *splits):
    """Graphs of a data set, each of a split."""
    parts = [
        StreamGraph(graph.name, graph.operators, graph.streams, {"split": one})
        for graph, one in zip(GRAPHS, splits, strict=True)
    ]
    write_graphs(parts, folder / "set.jsonl")
    return parts


def test_a_split_is_read_without_parsing_the_others(tmp_path):
    """Lines of other splits are passed over; what is no document is told of."""
    parts = split(tmp_path, "test", "train", "test", "test")
    asked = DataSet(tmp_path / "set.jsonl", "test")
    assert [problem.graph for problem in asked] == [parts[0], parts[2], parts[3]]
    with (tmp_path / "set.jsonl").open("a") as file:
        file.write("{\n")
    with pytest.raises(FormatError, match=r"set\.jsonl:5: "):
        list(DataSet(tmp_path / "set.jsonl", "test"))


def test_a_limit_draws_graphs_of_the_split_by_the_seed(tmp_path):
    """Each as often as any other, in their order; a larger limit adds to a smaller one."""
    parts = split(tmp_path, "test", "train", "test", "test")
    taken = Counter()
    for seed in range(60):
        two, one = (
            [p.graph for p in DataSet(tmp_path / "set.jsonl", "test", limit, seed=seed)]
            for limit in (2, 1)
        )
        assert two == [part for part in parts if part in two]
        assert one[0] in two
        assert list(graphs_of(parts, "test", 2)) == two or seed
        taken.update(graph.name for graph in two)
    assert set(taken) == {parts[i].name for i in (0, 2, 3)}
    assert min(taken.values()) > 30  # of 40 in the mean
    assert len(list(DataSet(tmp_path / "set.jsonl", limit=9))) == 4


def test_a_draw_keeps_no_more_than_it_gives():
    class Item:
        """An item that may be counted."""

    alive, most = WeakSet(), 0

    def items():
        nonlocal most
        for _ in range(200):
            item = Item()
            alive.add(item)
            most = max(most, len(alive))
            yield item

    assert len(list(drawn(items(), 10, seed=0))) == 10
    assert most < 15


def test_a_split_may_be_a_number(tmp_path):
    """It was listed among the splits, and could not be read."""
    parts = split(tmp_path, 0, 1, 2, 3)
    assert [problem.graph for problem in DataSet(tmp_path / "set.jsonl", "2")] == [parts[2]]
    assert list(graphs_of(parts, "2")) == [parts[2]]
