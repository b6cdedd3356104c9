"""Balance against communication: the same shape twice, heavy on the CPU and heavy on the network.

Draws each graph on one device, cut by METIS into as many parts as there are devices, and placed
with the proven optimum.
"""

import sys
from pathlib import Path

from streamplace import Cluster, Operator, Problem, Stream, StreamGraph, place
from streamplace.drawing.graphs import draw_placements


def branches(name: str, ipt: float, payload: str) -> StreamGraph:
    """Three branches of two stages between a source and a sink, at 10,000 tuples/s."""
    from streamplace.model.units import size_bytes

    size = size_bytes(payload)
    operators = [Operator("source", 1e4, size, rate=1e4), Operator("sink", 1e4)]
    streams = []
    for b in "abc":
        operators += [Operator(f"{b}1", ipt, size), Operator(f"{b}2", ipt, size)]
        streams += [
            Stream("source", f"{b}1", 1 / 3),
            Stream(f"{b}1", f"{b}2"),
            Stream(f"{b}2", "sink"),
        ]
    return StreamGraph.of(name, operators, streams)


def main(folder: Path) -> None:
    """Draw both graphs."""
    for graph in (
        branches("heavy-cpu", ipt=5e5, payload="5 kB"),
        branches("heavy-network", ipt=6e4, payload="60 kB"),
    ):
        problem = Problem(graph, Cluster.uniform(5))
        results = {name: place(graph, placer=name) for name in ("single", "metis", "exact")}
        for name, result in results.items():
            print(f"{graph.name:14} {name:7} {100 * result.value:5.1f} %")
        shown = [(name, result.placement) for name, result in results.items()]
        draw_placements(problem, shown).save(folder / f"{graph.name}.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
