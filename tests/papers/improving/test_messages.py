"""Messages through graphs of nodes, against the equations, and scaled features."""

import pytest
import torch
from giph_reference import known_by
from improving_episodes import edges_of

from streamplace import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.learn.parameters import arrays_of
from streamplace.papers.improving.batch import TaskBatch
from streamplace.papers.improving.messages import Edges, Messages, NodeGraph, scaled, summaries

pytestmark = pytest.mark.slow

STREAMS = [Stream("a", "c"), Stream("b", "c"), Stream("c", "d")]
GRAPH = StreamGraph.of(
    "five", [Operator(name, rate=float(name not in "cd")) for name in "abcde"], STREAMS
)
EXISTS = torch.tensor([[[1, 1], [1, 0], [1, 1]], [[0, 1], [1, 0], [0, 1]]]) > 0


PRESENT = torch.tensor([0, 1, 0, 1, 0])


def example():
    """Messages in both directions, and a graph of three features of a node and two of an edge."""
    rng = torch.Generator().manual_seed(0)
    messages = torch.nn.ModuleDict({name: Messages(3, 2) for name in ("along", "against")}).double()
    with torch.no_grad():
        for parameter in messages.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
    nodes, features = (
        torch.randn(*shape, generator=rng, dtype=torch.float64) for shape in ((3, 10), (2, 2, 3, 2))
    )
    sweep = TaskBatch([Problem(GRAPH, Cluster.uniform(2))], torch.device("cpu")).sweep()
    return messages, NodeGraph(nodes, features, Edges(PRESENT, EXISTS, sweep))


@pytest.mark.parametrize("way", ["along", "against"])
def test_summaries_are_those_of_the_equations(way):
    messages, graph = example()
    nodes = {divmod(i, 2): graph.nodes[:, i].numpy() for i in range(10)}
    edges = {(divmod(i, 2), divmod(j, 2), e): x for i, j, e, x in edges_of(graph)}
    order, rows = range(5), slice(0, 5)
    if way == "against":
        edges = {(j, i, e): x for (i, j, e), x in edges.items()}
        order, rows = range(4, -1, -1), slice(5, 10)
    wanted = known_by(nodes, edges, arrays_of(messages), way, order)
    found = summaries(graph, messages["along"], messages["against"]).detach().numpy()
    for (v, k), summary in wanted.items():
        assert found[rows, 2 * v + k] == pytest.approx(summary)


def test_gradients_go_through_all_levels():
    messages, graph = example()

    def summary(nodes, features, *_):
        return summaries(graph._replace(nodes=nodes, features=features), *messages.values())

    inputs = (graph.nodes.requires_grad_(), graph.features.requires_grad_(), *messages.parameters())
    assert torch.autograd.gradcheck(summary, inputs)


def test_features_are_scaled_within_their_episode_where_they_exist():
    table = torch.tensor(
        [[[1.0, 9.0], [3.0, 2.0], [5.0, 5.0]], [[4.0, 0.0], [4.0, 4.0], [7.0, 8.0]]]
    )
    exists = torch.tensor([[True, False], [True, True], [True, True]])
    found = scaled(table, exists, torch.tensor([0, 0, 2]), 3)
    first, second = [column[exists].tolist() for column in found]
    assert first == [-1, 1, 0, 0, 0]
    assert second == [0, 0, 0, -1, 1]
