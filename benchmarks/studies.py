"""What benchmarks share: test graphs, parallel computing, files of measured rows, tables."""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamplace import Cluster, Problem, StreamGraph, read_graphs
from streamplace.evaluate.parallel import parallel_map
from streamplace.model import Operators, Streams

DATA = Path(__file__).parents[1] / "datasets" / "branched.jsonl.gz"
RATE = 1e4
NO_ATTRIBUTES: Mapping[str, str] = {}
Rows = NDArray[np.int64]
Mapped = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]


def dressed(
    streams: Rows,
    n: int,
    rng: np.random.Generator,
    *,
    name: str,
    mips: float,
    links: float,
    skew: float,
    attributes: Mapping[str, str] = NO_ATTRIBUTES,
) -> StreamGraph:
    """Give operators costs: ``mips`` and ``links`` of 1 Gbps in all, uniform or lognormal.

    Every operator takes in between one and two times the source's rate, divided equally among its
    inputs.
    """
    source, target = streams
    level = RATE * (1 + rng.random(n))
    tuples = level[target] / np.bincount(target, minlength=n)[target]
    ipt, payload = (
        1 - rng.random(n) if skew == 0 else np.exp(skew * rng.standard_normal(n)) for _ in range(2)
    )
    ipt *= mips * 1e6 / (level * ipt).sum()
    payload *= links * 1e9 / 8 / max((tuples * payload[source]).sum(), 1e-9)
    rate = np.where(np.bincount(target, minlength=n) == 0, level, 0.0)
    operators = Operators(tuple(f"op{i}" for i in range(n)), ipt=ipt, payload=payload, rate=rate)
    joined = Streams(operators, source, target, selectivity=tuples / level[source])
    return StreamGraph(name, operators, joined, attributes)


def output_options(doc: str, **numbers: tuple[int, str]) -> argparse.ArgumentParser:
    """Options of a study that trains: ``-o``, numbers with their defaults, and workers."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder")
    for name, (default, text) in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=text)
    workers_options(parser)
    return parser


def workers_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--jobs`` and ``--on``."""
    parser.add_argument("--jobs", type=int, help="processes (all cores by default)")
    parser.add_argument("--on", help="'ray', 'auto' or the address of a Ray cluster")


def workers_of(given: argparse.Namespace) -> Mapped:
    """Return the parallel map that the options select."""
    return partial(parallel_map, jobs=given.jobs, on=given.on)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows that were measured, a line of JSON each; none if the file is missing."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    """Append a row, so that a command that is stopped goes on after it."""
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], texts: int = 1) -> str:
    """Table in Markdown, whose first columns are texts and whose others are numbers."""
    lines = [f"| {' | '.join(map(str, cells))} |\n" for cells in (heads, *rows)]
    rule = f"|{'---|' * texts}{'---:|' * (len(heads) - texts)}\n"
    return "".join([lines[0], rule, *lines[1:]])


def markdown(rows: Sequence[Mapping[str, Any]], title: str = "", digits: int = 3) -> str:
    """Table of rows, of which the first has all columns, below its title."""
    head = list(rows[0])
    lines = [head, ["---"] * len(head)]
    for row in rows:
        cells = [row.get(name, "–") for name in head]
        lines.append([c if isinstance(c, str) else f"{c:.{digits}f}" for c in cells])
    above = f"{title}\n\n" if title else ""
    return above + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def rank_correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Spearman's."""
    ranks = [np.argsort(np.argsort(numbers)) for numbers in (first, second)]
    return float(np.corrcoef(*ranks)[0, 1])


def test_problems(rate: float) -> list[Problem]:
    """Test graphs of the standard benchmark at a rate, on five devices."""
    graphs = (graph for graph in read_graphs(DATA) if graph.attributes["split"] == "test")
    return [Problem(graph.at_rate(rate), Cluster.uniform(5)) for graph in graphs]
