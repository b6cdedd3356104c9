"""Language models of ENAS cells: the ptb graphs of Placeto and the traversal-order study.

A recurrent cell of twelve nodes, unrolled for the 35 words that Penn Treebank is usually cut into.
The published graphs are lost; sizes are as in Table I of the study.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streamplace.families.parameters import parameter
from streamplace.families.registry import family
from streamplace.model.graph import Attribute
from streamplace.model.problem import Problem
from streamplace.model.random_numbers import generator
from streamplace.papers.families.neural import (
    Cell,
    NeuralNet,
    NeuralNets,
    depth_of,
    draw_cell,
    ends_of,
)

NODES = 12
BATCH, HIDDEN, VOCABULARY = 64, 1000, 10_000
STATE = BATCH * HIDDEN
DEPTHS = range(6, 12)
"""Depths of cells; others are drawn again. Longest paths have 248 to 423 operators, in Table I 216
to 450."""


@dataclass(frozen=True, slots=True)
class Ptb(NeuralNets):
    """Parameters of the ptb family."""

    steps: int = parameter(
        35, "number of words that a network is unrolled for", least=1, most=10_000
    )


@family("ptb", Ptb)
def ptb(parameters: Ptb, seed: int) -> Iterator[Problem]:
    """Language models of random ENAS cells on equal devices, after the traversal-order study."""
    for number in range(parameters.count):
        net = NeuralNet()
        _write(net, _drawn_cell(generator(seed, number)), parameters.steps)
        facts: dict[str, Attribute] = {"family": "ptb", "steps": parameters.steps}
        yield net.problem(f"ptb-{number:02d}", parameters.devices, facts)


def _drawn_cell(rng: np.random.Generator) -> Cell:
    while True:
        cell = draw_cell(NODES, rng)
        if depth_of(cell) in DEPTHS:
            return cell


def _write(net: NeuralNet, cell: Cell, steps: int) -> None:
    tokens, targets = (
        net.add(name, "input", [], 0, steps * BATCH) for name in ("tokens", "targets")
    )
    table = net.add("embedding", "weights", [], 0, VOCABULARY * HIDDEN)
    words = net.add("words", "lookup", [tokens, table], 0, STATE)
    masks = net.add("dropout", "dropout", [], 0, STATE)
    weights = [
        net.add(f"weights/{name}", "weights", [], 0, size)
        for name, size in (
            *((f"n{i:02d}", 4 * HIDDEN**2) for i in range(NODES)),
            ("state", 4 * HIDDEN**2),
            ("norm", 2 * HIDDEN),
            ("softmax", HIDDEN * VOCABULARY),
            ("bias", VOCABULARY),
        )
    ]
    *of_node, of_state, norm, scoring, bias = weights
    state: list[int] = []
    losses = []
    flops, scores = 4.0 * STATE * HIDDEN, 2.0 * STATE * VOCABULARY
    for t in range(steps):
        made: list[int] = []
        for i, (before, kind) in enumerate(cell):
            inputs = [words, *state, masks, of_state] if i == 0 else [made[before]]
            made.append(net.add(f"step{t:02d}/n{i:02d}", kind, [*inputs, of_node[i]], flops, STATE))
        ends = [made[i] for i in ends_of(cell)]
        state = [net.add(f"step{t:02d}/state", "average", [*ends, norm], STATE * len(ends), STATE)]
        inputs = [*state, masks, scoring, bias, targets]
        losses.append(net.add(f"step{t:02d}/loss", "softmax", inputs, scores, BATCH))
    net.add("loss", "sum", losses, BATCH * steps, 1)
