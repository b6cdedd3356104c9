"""Messages through graphs of nodes, against the equations, and scaled features."""

import numpy as np
import pytest
import torch
from giph_reference import known_by

from streamplace.learn.parameters import arrays_of
from streamplace.papers.improving.batch import Sweep
from streamplace.papers.improving.messages import Messages, NodeGraph, scaled

pytestmark = pytest.mark.slow

# two nodes of each of five tasks; streams 0 → 2, 2 → 3, 1 → 2, and task 4 beside them
SOURCE = torch.tensor([[0, 1, 0], [4, 5, 4], [2, 3, 3]])
TARGET = torch.tensor([[4, 4, 5], [6, 7, 7], [4, 5, 4]])
EXISTS = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 1, 1]]) > 0
ALONG = Sweep(
    stream=torch.tensor([0, 2, 1]),
    sizes=[2, 1],
    receiver=torch.tensor([2, 3]),
    counts=[1, 1],
    shift=torch.tensor([-2, -3, -2]),
)
AGAINST = Sweep(
    stream=torch.tensor([1, 0, 2]),
    sizes=[1, 2],
    receiver=torch.tensor([2, 0, 1]),
    counts=[1, 2],
    shift=torch.tensor([0, -2, 0]),
)


def example():
    """Messages, and a graph of three features of a node and two of an edge."""
    rng = torch.Generator().manual_seed(0)
    messages = Messages(3, 2).double()
    with torch.no_grad():
        for parameter in messages.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
    nodes, edges = (torch.randn(*s, generator=rng).double() for s in ((3, 10), (2, 3, 3)))
    return messages, NodeGraph(2, nodes, edges, SOURCE, TARGET, EXISTS, ALONG, AGAINST)


@pytest.mark.parametrize("turned", [False, True], ids=["along", "against"])
def test_summaries_are_those_of_the_equations(turned):
    messages, graph = example()
    graph = graph.reversed() if turned else graph
    nodes = {divmod(i, 2): graph.nodes[:, i].numpy() for i in range(10)}
    edges = {
        (divmod(int(graph.source[e, c]), 2), divmod(int(graph.target[e, c]), 2), 3 * e + c): x
        for e, c in np.argwhere(EXISTS.numpy()).tolist()
        for x in [graph.edges[:, e, c].numpy()]
    }
    tensors = {f"one.{name}": array for name, array in arrays_of(messages).items()}
    wanted = known_by(nodes, edges, tensors, "one", [3, 2, 1, 0, 4] if turned else range(5))
    found = messages(graph).detach().numpy()
    for (v, k), summary in wanted.items():
        assert found[:, 2 * v + k] == pytest.approx(summary)


def test_gradients_go_through_all_levels():
    messages, graph = example()
    names = [name for name, _ in messages.named_parameters()]

    def summaries(nodes, edges, *parameters):
        given = dict(zip(names, parameters, strict=True))
        inputs = graph._replace(nodes=nodes, edges=edges)
        return torch.func.functional_call(messages, given, (inputs,))

    inputs = (graph.nodes.requires_grad_(), graph.edges.requires_grad_(), *messages.parameters())
    assert torch.autograd.gradcheck(summaries, inputs)


def test_features_are_scaled_within_their_episode_where_they_exist():
    table = torch.tensor(
        [[[1.0, 9.0], [3.0, 2.0], [5.0, 5.0]], [[4.0, 0.0], [4.0, 4.0], [7.0, 8.0]]]
    )
    exists = torch.tensor([[True, False], [True, True], [True, True]])
    found = scaled(table, exists, torch.tensor([0, 0, 2]), 3)
    first, second = [column[exists].tolist() for column in found]
    assert first == [-1, 1, 0, 0, 0]
    assert second == [0, 0, 0, -1, 1]
