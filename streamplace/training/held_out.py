"""Graphs held out of a training for validation, and warnings if they are few."""

import logging
from collections.abc import Sequence
from itertools import compress

import numpy as np

from streamplace.evaluate.trained_on import graph_number
from streamplace.io.datasets import split_of
from streamplace.model.message_text import counted
from streamplace.model.problem import Problem
from streamplace.model.random_numbers import generator

LOG = logging.getLogger(__name__)
TRAINING_SPLIT, VALIDATION_SPLIT = "train", "validation"
MIN_HELD_OUT = 30
"""Smallest number of validation graphs, the usual smallest sample, that can choose an epoch."""


def held_out(
    problems: Sequence[Problem], share: float, seed: int
) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Problems to train on, and problems held out: a share of the graphs that the seed chooses.

    If graphs are in the split ``validation``, these are held out instead.
    """
    named = [split_of(p.graph.attributes) == VALIDATION_SPLIT for p in problems]
    if any(named) and not all(named):
        return (
            tuple(p for p, out in zip(problems, named, strict=True) if not out),
            tuple(compress(problems, named)),
        )
    numbers: dict[int, int] = {}  # by graph, which may be on several clusters
    graph = [numbers.setdefault(graph_number(p.graph), len(numbers)) for p in problems]
    n = len(numbers)
    count = min(n - 1, max(1, round(share * n))) if share > 0 else 0
    random = generator(seed, 0, 0, 0, 0)
    chosen = np.zeros(n, bool)
    chosen[random.permutation(n)[:count]] = True
    out = chosen[graph]
    return tuple(compress(problems, ~out)), tuple(compress(problems, out))


def warn_of_few(graphs: int, *, wanted: bool) -> None:
    """Warn if too few graphs are held out to choose an epoch, or none although some are wanted."""
    if graphs >= MIN_HELD_OUT:
        return
    if graphs:
        LOG.warning(
            "validation is on %s alone, so the choice of the best epoch is mostly chance; give "
            "more graphs, a split 'validation' of 30 or more, or place with last.safetensors",
            counted(graphs, "graph"),
        )
    elif wanted:
        LOG.warning(
            "there is only one graph, so none is held out, and the results say nothing about other "
            "graphs; give several"
        )
