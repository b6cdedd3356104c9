"""What studies share: test graphs, computing on all cores or on Ray, and tables of rows."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from streamplace import Cluster, Problem, read_graphs
from streamplace.evaluate.parallel import parallel_map

DATA = Path(__file__).parents[1] / "datasets" / "branched.jsonl.gz"
Mapped = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]


def workers_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--jobs`` and ``--on``."""
    parser.add_argument("--jobs", type=int, help="processes (all cores by default)")
    parser.add_argument("--on", help="'ray', 'auto' or the address of a Ray cluster")


def workers_of(given: argparse.Namespace) -> Mapped:
    """Return the parallel map that the options select."""
    return partial(parallel_map, jobs=given.jobs, on=given.on)


def markdown(rows: Sequence[Mapping[str, Any]], title: str = "", digits: int = 3) -> str:
    """Table of rows, of which the first has all columns, below its title."""
    head = list(rows[0])
    lines = [head, ["---"] * len(head)]
    for row in rows:
        cells = [row.get(name, "–") for name in head]
        lines.append([c if isinstance(c, str) else f"{c:.{digits}f}" for c in cells])
    above = f"{title}\n\n" if title else ""
    return above + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def test_problems(rate: float) -> list[Problem]:
    """Test graphs of the standard benchmark at a rate, on five devices."""
    graphs = (graph for graph in read_graphs(DATA) if graph.attributes["split"] == "test")
    return [Problem(graph.at_rate(rate), Cluster.uniform(5)) for graph in graphs]
