"""Small neural networks, as people hand them to ``streamplace import torch``."""

from functools import cache
from pathlib import Path

import torch
from torch import nn

from streamplace.engines.deployment import Deployment
from streamplace.io.modules import blocks_of
from streamplace.io.registry import FORMATS
from streamplace.model import Cluster, Constraints, Problem, StreamGraph

NAMES = ("perceptron", "residual", "mixed", "language")


class Block(nn.Module):
    """A residual block, changed in place as published ones are."""

    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        """Compute."""
        y = self.relu(self.norm(self.conv(x)))
        y += x
        return self.relu(y)


class Residual(nn.Module):
    """Two blocks and a classifier with a view between them."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.stages = nn.Sequential(Block(4), Block(4))
        self.head = nn.Linear(4, 2)
        self.spare = nn.Linear(5, 5)

    def forward(self, x):
        """Compute."""
        return self.head(self.stages(self.stem(x)).mean((2, 3)).flatten(1))


class Sort(nn.Module):
    """A module with two results."""

    def forward(self, x):
        """Compute."""
        return torch.sort(x, stable=True)


class Mixed(nn.Module):
    """Weights of its own, a layer used twice, several results, and outputs by name."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.scale = nn.Parameter(torch.randn(8))
        self.sort = Sort()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, shift):
        """Compute."""
        left, right = (self.layer(self.layer(x)) * self.scale).chunk(2, -1)
        out, order = self.sort(torch.cat([right, left + shift], -1))
        seen, _ = self.attention(out, out, out, need_weights=False)
        return {"seen": seen, "order": order, "count": torch.arange(x.shape[1])}


class Layer(nn.Module):
    """A residual layer with a mask, as in language models."""

    def __init__(self):
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(8, 16), nn.Linear(16, 8), nn.LayerNorm(8)

    def forward(self, x, mask):
        """Compute."""
        return x + self.down(torch.relu(self.up(self.norm(x)))) * mask


class Trunk(nn.Module):
    """Embeddings added, and layers that all get a mask, in a module of a module."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(20, 8), nn.Embedding(6, 8)
        self.layers = nn.ModuleList(Layer() for _ in range(3))

    def forward(self, x, keep):
        """Compute."""
        mask = keep.float().unsqueeze(-1)
        y = self.words(x) + self.places(torch.arange(x.shape[1]))
        for layer in self.layers:
            y = layer(y, mask)
        return y


class Language(nn.Module):
    """A trunk and a head."""

    def __init__(self):
        super().__init__()
        self.trunk, self.head = Trunk(), nn.Linear(8, 20)

    def forward(self, x, keep):
        """Compute."""
        return self.head(self.trunk(x, keep)).softmax(-1)


def language():
    """With two inputs."""
    torch.manual_seed(0)
    return Language(), (torch.randint(0, 10, (2, 6)), torch.ones(2, 6, dtype=torch.long))


def perceptron():
    """Two layers; the model itself knows its inputs."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(inplace=True), nn.Linear(16, 4))
    model.example_inputs = torch.randn(3, 6)  # type: ignore[assignment]
    return model


def residual():
    """With one input that stands alone."""
    torch.manual_seed(0)
    return Residual(), torch.randn(2, 3, 8, 8)


def mixed():
    """With inputs by name."""
    torch.manual_seed(0)
    return Mixed(), {"x": torch.randn(2, 5, 8), "shift": torch.randn(1)}


def nothing():
    """No model."""
    return "nothing"


def broken():
    """A model for inputs of another shape."""
    return nn.Linear(3, 3), torch.randn(2, 2)


def inputs_of(name):
    """Model, positional and named inputs of a network."""
    answer = globals()[name]()
    model, inputs = answer if isinstance(answer, tuple) else (answer, answer.example_inputs)
    if isinstance(inputs, dict):
        return model.eval(), (), inputs
    return model.eval(), inputs if isinstance(inputs, tuple) else (inputs,), {}


@cache
def imported(name):
    """Graph of a network."""
    (graph,) = FORMATS["torch"].read(Path(f"networks:{name}"))
    assert isinstance(graph, StreamGraph)
    return graph


def placed(name, devices, colocate):
    """Network with its operators on devices in turn; in blocks, each on that of its first."""
    graph = imported(name)
    rules = Constraints(colocate=blocks_of(graph) if colocate else ())
    problem = Problem(graph, Cluster.uniform(3), rules)
    rows = [devices[v % len(devices)] for v in range(graph.n_operators)]
    return Deployment(problem, problem.placement(problem.repaired(rows)))
