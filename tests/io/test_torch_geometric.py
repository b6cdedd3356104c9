"""Graphs and problems of torch-geometric in and out."""

import json

import pytest
from hypothesis import given, settings
from problems import PROBLEMS, same
from strategies import problems

from streamplace import (
    Cluster,
    Device,
    Operator,
    PlacementDataset,
    Problem,
    Stream,
    StreamGraph,
    from_torch_geometric,
    to_torch_geometric,
    write_graphs,
)
from streamplace.errors import FormatError, PlacementError, StreamplaceError

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch_geometric.data import Batch  # noqa: E402
from torch_geometric.loader import DataLoader  # noqa: E402

PIPE = StreamGraph.of(
    "pipe",
    [Operator("a", ipt=2e5, payload=1e4, rate=1e4), Operator("b", ipt=1e5, parallelism=2)],
    [Stream("a", "b", 0.5)],
    {"split": "test"},
)


def test_a_graph_whose_operators_require_tags_needs_no_cluster():
    graph = StreamGraph.of("one", [Operator("a", ipt=1e5, rate=1e4, requires={"gpu"})], [])
    data = to_torch_geometric(graph)
    assert from_torch_geometric(data) == graph
    assert data.x[0, 0] == pytest.approx(0.4)


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_named_problems_survive_torch_geometric(name):
    """Among them problems with a cost matrix, tags and moves."""
    back = from_torch_geometric(to_torch_geometric(PROBLEMS[name]))
    assert same(back, PROBLEMS[name])


def test_features_are_shares_of_devices_and_links():
    """At full rate, in the mean of the devices; streams are in the graph's order."""
    cluster = Cluster.of([Device("d0", mips=2000), Device("d1", mips=4000)], bandwidth=1e9)
    data = to_torch_geometric(Problem(PIPE, cluster))
    sent = 1e4 * 0.5 * 1e4 * 8 / 1e9
    assert data.x.tolist() == [
        pytest.approx([(1 + 0.5) / 2, sent, 1, 1]),
        pytest.approx([(0.25 + 0.125) / 2, 0, 0, 2]),
    ]
    assert data.edge_attr.tolist() == [pytest.approx([sent])]


def test_a_placement_is_the_label():
    data = to_torch_geometric(PIPE, {"a": "d3", "b": "d1"})
    assert data.y.tolist() == [3, 1]
    with pytest.raises(PlacementError, match="'b'"):
        to_torch_geometric(PIPE, {"a": "d3"})


def test_numbers_that_were_changed_are_read():
    data = to_torch_geometric(Problem(PIPE, Cluster.uniform(2)))
    data.ipt *= 2
    data.device_mips[1] = 5000
    back = from_torch_geometric(data)
    assert back.graph.operators.ipt.tolist() == [4e5, 2e5]
    assert back.cluster.devices.mips.tolist() == [2500, 5000]


@pytest.mark.parametrize(
    "change",
    [
        {"edge_index": None},
        {"edge_index": [[0, 0], [1, 1]]},
        {"edge_index": [[-1], [1]]},
        {"edge_index": [[0.0], [1.0]]},
        {"edge_index": [0, 1]},
        {"ipt": [1.0]},
    ],
)
def test_bad_data_is_refused(change):
    data = to_torch_geometric(PIPE)
    ((name, value),) = change.items()
    data[name] = None if value is None else torch.tensor(value)
    with pytest.raises(FormatError, match=name):
        from_torch_geometric(data)


@settings(deadline=None, max_examples=20)
@given(problems(), problems())
def test_problems_of_any_sizes_go_into_one_batch(first, second):
    plain = [Problem(problem.graph, problem.cluster) for problem in (first, second)]
    batch = Batch.from_data_list([to_torch_geometric(problem) for problem in plain])
    assert batch.num_nodes == sum(problem.n_operators for problem in plain)
    for problem, data in zip(plain, batch.to_data_list(), strict=True):
        back = from_torch_geometric(data)
        assert same(back, problem)


def benchmark(folder):
    """Four graphs, the last of which are for tests."""
    path = folder / "graphs.jsonl"
    rows = [("g0", "train"), ("g1", "train"), ("g2", "test"), ("g3", "test")]
    write_graphs(
        (StreamGraph(name, PIPE.operators, PIPE.streams, {"split": split}) for name, split in rows),
        path,
    )
    return path


def labels(folder, *names):
    """Placements of graphs of these names, as place writes them."""
    path = folder / "placements.jsonl"
    assignment = {"a": "d2", "b": "d0"}
    rows = ({"graph": name, "value": 0.5, "assignment": assignment} for name in names)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_data_set_has_splits_and_labels(tmp_path):
    """Best values of the graphs, and devices of their operators."""
    placements = labels(tmp_path, "g0", "g2", "g3")
    with placements.open("a") as file:  # as ``place`` writes it
        file.write('{"graph": "g1", "placer": "exact", "error": "no memory"}\n')
    dataset = PlacementDataset(benchmark(tmp_path), "test", placements=placements)
    assert [data.name for data in dataset] == ["g2", "g3"]
    assert dataset[0].y.tolist() == [2, 0]
    assert dataset.value.tolist() == [0.5, 0.5]
    (batch,) = DataLoader(dataset, batch_size=2)
    assert batch.edge_index.tolist() == [[0, 2], [1, 3]]
    assert batch.y.tolist() == [2, 0, 2, 0]


def test_a_data_set_is_made_of_graphs_and_problems_too():
    def scaled(data):
        data.x = data.x * 2
        return data

    problem = Problem(PIPE, Cluster.uniform(2))
    dataset = PlacementDataset([PIPE, problem], cluster=Cluster.uniform(3), transform=scaled)
    assert [len(data.device_mips) for data in dataset] == [3, 2]
    assert dataset[0].x[1, 3] == 4
    back = from_torch_geometric(dataset[1])
    assert same(back, problem)


@pytest.mark.parametrize("line", ["nonsense", "[1]"])
def test_what_is_no_placement_is_no_label(tmp_path, line):
    (tmp_path / "labels.jsonl").write_text(f"{line}\n")
    with pytest.raises(StreamplaceError, match=r"labels\.jsonl:1"):
        PlacementDataset(benchmark(tmp_path), "test", placements=tmp_path / "labels.jsonl")


@pytest.mark.parametrize(
    ("split", "names", "place"),
    [
        ("tset", ["g0"], "holds no graph"),
        ("test", ["g0", "g2"], "graph 'g3'"),
        ("test", ["g2", "g2"], "jsonl:2: graph 'g2'"),
    ],
)
def test_other_files_are_refused(tmp_path, split, names, place):
    with pytest.raises(StreamplaceError, match=place):
        PlacementDataset(benchmark(tmp_path), split, placements=labels(tmp_path, *names))
