"""``streamplace place``: find a placement and say how good it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli import _options
from streamplace.cli._options import FILE, ClusterChoice
from streamplace.cli._output import bar, console, percent, print_json, waiting
from streamplace.errors import SettingError

if TYPE_CHECKING:
    from streamplace.evaluate.explain import Explanation
    from streamplace.placers.registry import Budget, Placer, Result

MOST_NAMES = 12


@click.command(
    "place",
    epilog="Example: streamplace place graph.json --devices 5 --budget 1 --seed 1 "
    "-o placement.json",
)
@click.argument("graph", type=FILE)
@click.option(
    "--placer",
    "placer_name",
    default="auto",
    show_default=True,
    help="Who places, options after colons, as in metis:k=3 (see: streamplace placers).",
)
@click.option(
    "--weights",
    type=FILE,
    help="Weights of a learned placer, such as runs/x/best.safetensors (see: streamplace train).",
)
@_options.search
@click.option("--rate", help="Total rate of the sources, instead of the graph's own.")
@click.option(
    "--subtasks",
    "by_subtask",
    is_flag=True,
    help="Place the subtasks of parallel operators one by one (as join#0, join#1, …).",
)
@_options.constraints
@_options.cluster
@_options.common("Write the placement to this JSON file.")
def command(
    graph: Path,
    placer_name: str,
    weights: Path | None,
    budget: "Budget",
    rate: str | None,
    by_subtask: bool,
    constraints_file: Path | None,
    cluster: ClusterChoice,
    as_json: bool,
    seed: int,
    output: Path | None,
) -> None:
    """Place the operators of GRAPH on devices, for the highest throughput."""
    from streamplace.evaluate.explain import explain
    from streamplace.io.placements import write_placement
    from streamplace.objectives.registry import OBJECTIVES
    from streamplace.placers.registry import named_placer

    problem = _options.read_problem(graph, cluster, rate, constraints_file)
    parallel = problem.graph.operators.parallel
    if by_subtask:
        problem = problem.graph.expand().problem(problem)
    placer = named_placer(placer_name)
    if weights is not None:
        placer = with_weights(placer, weights)
    with waiting(f"placing {problem.graph.name}"):
        result = placer.place(problem, OBJECTIVES["throughput"], seed=seed, budget=budget)
    answer = explain(problem, result.placement)
    if output is not None:
        write_placement(
            result.placement,
            output,
            graph=problem.graph.name,
            placer=result.placer,
            relative_throughput=result.value,
            parallelism=parallel,
        )
    if as_json:
        print_json(as_document(result, answer))
    else:
        show(problem.graph.name, result, answer)


def with_weights(placer: "Placer", weights: Path) -> "Placer":
    """Return a learned placer with these weights."""
    from streamplace.placers.registry import PLACERS

    if "weights" not in placer.defaults():
        learned = [name for name in PLACERS if "weights" in PLACERS[name].defaults()]
        raise SettingError(
            f"placer {placer.name!r} learns nothing and takes no weights; --weights is for "
            f"--placer {' or '.join(learned)}"
        )
    return placer.with_options(weights=str(weights))


def as_document(result: "Result", answer: "Explanation") -> dict[str, Any]:
    """JSON document of a placement."""
    limit = answer.bottleneck
    return {
        "assignment": result.placement.as_dict(),
        "relative_throughput": result.value,
        "throughput": answer.throughput,
        "bottleneck": {"kind": limit.kind, "name": limit.name, "load": limit.load},
        "bound": result.bound,
        "gap": None if result.bound is None else max(0.0, result.bound - result.value),
        "verdict": verdict(result, answer),
        "placer": result.placer,
        "seed": result.seed,
        "seconds": result.seconds,
    }


def verdict(result: "Result", answer: "Explanation") -> str:
    """One sentence: how good, how far from the best possible, and what limits."""
    if result.bound is None:
        return answer.verdict
    if result.value >= result.bound - 1e-6:
        return f"the best possible, proven; {answer.verdict}"
    share = percent(result.value / result.bound)
    return f"{share} of the best possible at least; {answer.verdict}"


def show(name: str, result: "Result", answer: "Explanation") -> None:
    """Print a placement by device."""
    from rich.table import Table

    from streamplace.cli._console import titled

    out = console()
    table = Table("device", "CPU", "", "operators", box=None)
    pes = result.placement.pes()
    for device in answer.devices:
        names = pes.get(device.name, [])
        rest = len(names) - MOST_NAMES
        listed = " ".join(names[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
        table.add_row(device.name, percent(device.load), bar(device.load), listed or "—")
    out.print(table)
    out.print(
        titled(
            name,
            f" by {result.placer}: {percent(result.value)} of the sources' rate, "
            f"{answer.throughput:g} tuples/s, found in {1000 * result.seconds:.1f} ms",
        )
    )
    limit = answer.bottleneck
    out.print(f"Bottleneck: {limit.label} at {percent(limit.load)}")
    if result.bound is not None:
        gap = percent(max(0.0, result.bound - result.value))
        out.print(f"Bound: no placement reaches more than {percent(result.bound)} (gap {gap})")
    out.print(f"Verdict: {verdict(result, answer)}")
