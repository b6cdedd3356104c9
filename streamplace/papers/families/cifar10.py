"""Image classifiers of ENAS cells: the cifar10 graphs of Placeto and the traversal-order study.

A network is a stack of cells, all alike but for channels and resolution, as in ENAS's micro search.
A cell has five nodes, each of which adds the results of two operations on two earlier results. The
published graphs are lost; sizes are as in Table I of the traversal-order study.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from streamplace.families.draws import one_of
from streamplace.families.registry import family
from streamplace.model.graph import Attribute
from streamplace.model.problem import Problem
from streamplace.model.random_numbers import generator
from streamplace.papers.families.neural import NeuralNet, NeuralNets

NODES = 5
OPERATIONS = ("sep3", "sep5", "avgpool", "maxpool", "identity")
BATCH, SIDE, CHANNELS, CLASSES = 128, 32, 36, 10
CELLS = (17, 20)
"""Smallest and largest number of cells of a network."""
READS_BEFORE = 0.8
"""Share of operations that read one of the two cells before, others any earlier result."""
LONGEST_PATH = range(74, 155)
"""Edges of the longest path, the diameter of Table I; other networks are drawn again."""


class Shape(NamedTuple):
    """Shape of the images between two layers."""

    side: int
    channels: int

    @property
    def elements(self) -> int:
        """Numbers of a batch."""
        return BATCH * self.side**2 * self.channels

    def flops(self, operation: str) -> float:
        """FLOPs of an operation that keeps the shape."""
        if operation.startswith("sep"):  # depthwise and pointwise, twice
            width = int(operation[-1]) ** 2
            return 2 * 2.0 * self.elements * (width + self.channels)
        return 9.0 * self.elements


ConvCell = list[tuple[int, str, int, str]]
"""For every node: an earlier result and an operation, twice."""


@family("cifar10", NeuralNets)
def cifar10(parameters: NeuralNets, seed: int) -> Iterator[Problem]:
    """Image classifiers of random ENAS cells on equal devices, after the traversal-order study."""
    for number in range(parameters.count):
        net, cells = _drawn_network(generator(seed, number))
        facts: dict[str, Attribute] = {"family": "cifar10", "cells": cells}
        yield net.problem(f"cifar10-{number:02d}", parameters.devices, facts)


def _drawn_network(rng: np.random.Generator) -> tuple[NeuralNet, int]:
    while True:
        net, cells = NeuralNet(), int(rng.integers(*CELLS, endpoint=True))
        _write(net, draw_cell(rng), cells)
        if net.tasks.longest_path in LONGEST_PATH:
            return net, cells


def draw_cell(rng: np.random.Generator) -> ConvCell:
    """Draw a cell; results 0 and 1 are of the two cells before."""
    return [
        (_read(rng, i), one_of(rng, OPERATIONS), _read(rng, i), one_of(rng, OPERATIONS))
        for i in range(2, 2 + NODES)
    ]


def _read(rng: np.random.Generator, results: int) -> int:
    return int(rng.integers(2 if rng.random() < READS_BEFORE else results))


def _write(net: NeuralNet, cell: ConvCell, cells: int) -> None:
    shape = Shape(SIDE, CHANNELS)
    images = net.add("images", "input", [], 0, BATCH * SIDE**2 * 3)
    stem = net.add("stem", "conv3", [images], 2.0 * 27 * shape.elements, shape.elements)
    before, last = stem, stem
    for number in range(cells):
        if number in (cells // 3, 2 * cells // 3):
            shape = Shape(shape.side // 2, 2 * shape.channels)
        before, last = last, _write_cell(net, f"cell{number:02d}", cell, shape, (before, last))
    pooled = net.add("pool", "avgpool", [last], shape.elements, BATCH * shape.channels)
    scores = 2.0 * BATCH * shape.channels * CLASSES
    logits = net.add("logits", "matmul", [pooled], scores, BATCH * CLASSES)
    net.add("loss", "softmax", [logits], 10.0 * BATCH * CLASSES, 1)


def _write_cell(
    net: NeuralNet, name: str, cell: ConvCell, shape: Shape, results: tuple[int, int]
) -> int:
    """Add a cell, whose result joins the results that none of its nodes reads."""
    size, channels = shape.elements, shape.channels
    made = [
        net.add(f"{name}/in{i}", "conv1", [row], 2.0 * channels * size, size)
        for i, row in enumerate(results)
    ]
    read = set()
    for i, (a, first, b, second) in enumerate(cell):
        read |= {a, b}
        parts = [
            _applied(net, f"{name}/n{i}{side}", operation, made[k], shape)
            for side, k, operation in (("a", a, first), ("b", b, second))
        ]
        made.append(net.add(f"{name}/n{i}", "add", parts, size, size))
    ends = [row for k, row in enumerate(made) if k >= 2 and k not in read]
    return net.add(f"{name}/out", "concat", ends, 2.0 * len(ends) * channels * size, size)


def _applied(net: NeuralNet, name: str, operation: str, row: int, shape: Shape) -> int:
    """Row of an operation's result; of its input for the identity."""
    if operation == "identity":
        return row
    return net.add(name, operation, [row], shape.flops(operation), shape.elements)
