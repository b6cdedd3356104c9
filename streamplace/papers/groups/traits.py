"""Features of nodes (traits): one named column each, chosen by the training set.

========== ===========================================================================
kind       share of operators of each kind, one column per kind met in training
structure  in- and out-degree, one column per number met in training; fractal dimension
position   place in topological order, as sines and cosines (HSDAG, equation 5)
neighbours positions in topological order of the nodes that it exchanges tuples with
output     logarithm of the bytes sent
work       logarithm of the load
========== ===========================================================================
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamplace.errors import FormatError
from streamplace.learn.constructive.policy import scale_of
from streamplace.model.arrays import Floats
from streamplace.papers.groups import Trait
from streamplace.papers.groups.nodes import Nodes

WAVES = 16
"""Size of the embedding of a position."""
LEAST_LOAD = 1e-9
MEASURED = ("fractal", "output", "work")
"""Columns that are standardised; the others are shares, 0 or 1, and waves."""


@dataclass(frozen=True, slots=True, eq=False)
class Traits:
    """Names, means and deviations [F] of the columns."""

    names: tuple[str, ...]
    mean: Floats
    std: Floats

    @classmethod
    def of(cls, nodes: Sequence[Nodes], groups: Sequence[Trait], places: int = 0) -> "Traits":
        """Columns of these groups on a training set; neighbours have so many positions."""
        names = tuple(name for group in groups for name in _names(group, nodes, places))
        rows = np.concatenate([_rows(names, each) for each in nodes])
        measured = np.array([name in MEASURED for name in names])
        std = rows.std(axis=0)
        scaled = measured & (std > 0)
        return cls(names, np.where(measured, rows.mean(axis=0), 0.0), np.where(scaled, std, 1.0))

    @classmethod
    def from_document(cls, document: Mapping[str, Any], where: str) -> "Traits":
        """Read traits from their `document`; ``where`` names the file in errors."""
        names = tuple(document.get("names", ()))
        if not names or not all(map(_is_column, names)):
            raise FormatError(f"{where}: was trained on other features; train again")
        return cls(names, *scale_of(document, len(names), where))

    def document(self) -> dict[str, Any]:
        """Names, means and standard deviations, fit for JSON."""
        return {"names": list(self.names), "mean": self.mean.tolist(), "std": self.std.tolist()}

    def rows(self, nodes: Nodes) -> Floats:
        """Traits [V, F] of nodes; kinds and degrees that training did not meet are 0."""
        return (_rows(self.names, nodes) - self.mean) / self.std


def _names(group: Trait, nodes: Sequence[Nodes], places: int) -> Iterator[str]:
    if group == "kind":
        yield from (f"kind {kind}" for kind in sorted({k for each in nodes for k in each.kinds}))
    elif group == "structure":
        for direction in ("in", "out"):
            degrees = [n.in_degree if direction == "in" else n.out_degree for n in nodes]
            yield from (f"{direction} {degree}" for degree in np.unique(np.concatenate(degrees)))
        yield "fractal"
    elif group == "position":
        yield from (f"wave {k}" for k in range(WAVES))
    elif group == "neighbours":
        yield from (f"neighbour {place}" for place in range(places))
    else:
        yield group


def _rows(names: Sequence[str], nodes: Nodes) -> Floats:
    columns = [COLUMNS[kind](nodes, value) for kind, _, value in (n.partition(" ") for n in names)]
    return np.stack(columns, axis=1)


def _wave(nodes: Nodes, number: str) -> Floats:
    """sin(pos / 10000^(2i / d)) where the number is 2i, the cosine where it is 2i + 1."""
    k = int(number)
    angle = (nodes.position + 1) / 10000 ** (2 * (k // 2) / WAVES)
    return np.cos(angle) if k % 2 else np.sin(angle)


def _neighbour(nodes: Nodes, place: str) -> Floats:
    column = np.zeros(nodes.n_nodes)
    for here, there in (nodes.edges, nodes.edges[::-1]):
        column[here[nodes.position[there] == int(place)]] = 1.0
    return column


COLUMNS: dict[str, Callable[[Nodes, str], Floats]] = {
    "kind": lambda nodes, kind: nodes.share(kind),
    "in": lambda nodes, degree: (nodes.in_degree == int(degree)).astype(np.float64),
    "out": lambda nodes, degree: (nodes.out_degree == int(degree)).astype(np.float64),
    "fractal": lambda nodes, _: nodes.fractal,
    "wave": _wave,
    "neighbour": _neighbour,
    "output": lambda nodes, _: np.log1p(nodes.output),
    "work": lambda nodes, _: np.log(np.maximum(nodes.work, LEAST_LOAD)),
}


def _is_column(name: object) -> bool:
    kind, _, value = str(name).partition(" ")
    if kind not in ("in", "out", "wave", "neighbour"):
        return kind in COLUMNS
    return value.isdecimal() and len(value) < 10 and (kind != "wave" or int(value) < WAVES)
