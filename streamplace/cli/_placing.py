"""``streamplace place`` over a data set: a line per graph, and a summary."""

from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from streamplace.cli._output import print_json, progress, say
from streamplace.cli._sweeps import FailedGraphs, print_estimate, resumable

if TYPE_CHECKING:
    from streamplace.io.datasets import DataSet
    from streamplace.placers.registry import Budget


class Asked(NamedTuple):
    """Options that apply to every graph."""

    placer: str
    weights: Path | None
    objective: str
    require: tuple[str, ...]
    rate: str | None
    by_subtask: bool
    seed: int
    budget: "Budget"


def sweep(
    asked: Asked,
    graph: Path,
    data: "DataSet",
    output: Path | None,
    jobs: int | None,
    on: str | None,
    as_json: bool,
    dry_run: bool,
) -> int:
    """Place all graphs, or estimate the cost of that; returns the exit status."""
    from streamplace.evaluate.parallel import ray_connection
    from streamplace.evaluate.placing import Placing, place_all
    from streamplace.model.units import total_rate

    rate = None if asked.rate is None else total_rate(asked.rate)
    weights = None if asked.weights is None else asked.weights.absolute()
    facts = {**asked._asdict(), "rate": rate, "weights": weights}
    placing = Placing(**facts, reader=data.reader)
    if dry_run:
        from streamplace.evaluate.estimate import estimate

        print_estimate(estimate(placing, data, _counted(graph, data), 1), as_json)
        return 0
    assert output is not None
    failures, values, graphs = FailedGraphs(), list[float](), 0
    with resumable(output), ray_connection(on), progress("placing", _counted(graph, data)) as tick:
        for placed in tick.over(place_all(placing, data, output, jobs=jobs, on=on)):
            graphs += 1
            if placed.value is None:
                failures(placed.graph, placed.error or "")
            else:
                values.append(placed.value)
    _tell(graphs, values, output, as_json)
    return failures.status


def _tell(graphs: int, values: list[float], output: Path, as_json: bool) -> None:
    mean = fsum(values) / len(values) if values else None
    if as_json:
        facts = {"graphs": graphs, "placed": len(values), "mean": mean}
        print_json({**facts, "output": str(output)})
    else:
        average = "" if mean is None else f", mean value {mean:.4g}"
        say(f"{len(values)} of {graphs} graphs placed{average} → {output}")


def _counted(path: Path, data: "DataSet") -> int:
    """Number of graphs; raise FormatError if there are none."""
    from streamplace.io.datasets import no_graph

    total = sum(1 for _ in data.lines())
    if not total:
        raise no_graph(path, data)
    return total
