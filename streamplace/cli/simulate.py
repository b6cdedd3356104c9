"""``streamplace simulate``: what a placement sustains, what limits it, and what to move."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli._options import FILE, ClusterChoice, cluster, common, read_problem
from streamplace.cli._output import bar, console, percent, print_json, save_json

if TYPE_CHECKING:
    from streamplace.evaluate.explain import Explanation
    from streamplace.model.problem import Problem

MOST_ROWS = 12


@click.command(
    "simulate",
    epilog="Example: streamplace simulate graph.json placement.json --devices 5 --engine -o plots/",
)
@click.argument("graph", type=FILE)
@click.argument("placement", type=FILE)
@cluster
@click.option("--rate", help="Total rate of the sources, instead of the graph's own.")
@common("Write the JSON document to this file.")
def command(
    graph: Path,
    placement: Path,
    cluster: ClusterChoice,
    rate: str | None,
    as_json: bool,
    seed: int,
    output: Path | None,
    verbose: bool,
) -> None:
    """Simulate PLACEMENT of GRAPH: throughput, loads and the bottleneck.

    The steady state is computed in closed form; loads are at the sources' full rate, so a resource
    at 150 % lets through two thirds of it.
    """
    from streamplace.evaluate.explain import explain
    from streamplace.io.placements import read_placement

    problem = read_problem(graph, cluster, rate)
    answer = explain(problem, read_placement(placement, problem))
    document = as_document(answer)
    if output is not None:
        save_json(document, output)
    if as_json:
        print_json(document)
    else:
        show(problem, answer)


def as_document(answer: "Explanation") -> dict[str, Any]:
    """JSON document of an explanation."""
    return {**asdict(answer), "verdict": answer.verdict}


def show(problem: "Problem", answer: "Explanation") -> None:
    """Print an explanation for people."""
    out = console()
    limit = answer.bottleneck
    total = problem.graph.source_rate
    out.print(
        f"[bold]{problem.graph.name}[/bold]: {percent(answer.relative_throughput)} of "
        f"{total:g} tuples/s, that is {answer.throughput:g} tuples/s"
    )
    if len(answer.sources) > 1:
        shares = ", ".join(f"{name} {percent(x)}" for name, x in answer.sources.items())
        out.print(f"sources: {shares}")
    out.print(_devices(answer))
    if answer.links:
        out.print(_links(answer))
    carried = ", ".join(f"{c.name} ({percent(c.load)})" for c in limit.carries[:4])
    out.print(f"Bottleneck: {limit.label} at {percent(limit.load)}, carrying {carried}")
    if answer.move is not None:
        who = " and ".join(answer.move.operators)
        then = percent(answer.move.relative_throughput)
        out.print(f"What to move: {who} to {answer.move.device} would give {then}")
    elif answer.relative_throughput < 1:
        out.print("No move of one operator or two neighbours helps; try: streamplace place")


def _devices(answer: "Explanation") -> Any:
    from rich.table import Table

    table = Table("device", "CPU", "", "operators (share of the device)", box=None)
    busy = [device for device in answer.devices if device.operators]
    for device in sorted(busy, key=lambda d: -d.load)[:MOST_ROWS]:
        names = ", ".join(f"{c.name} {percent(c.load)}" for c in device.operators[:6])
        rest = len(device.operators) - 6
        table.add_row(
            device.name,
            percent(device.load),
            bar(device.load),
            names + (f" and {rest} more" if rest > 0 else ""),
        )
    idle = [device.name for device in answer.devices if not device.operators]
    if idle:
        table.add_row("", "", "", f"idle: {', '.join(idle[:MOST_ROWS])}")
    return table


def _links(answer: "Explanation") -> Any:
    from rich.table import Table

    from streamplace.model.units import format_bandwidth

    table = Table("link", "load", "", "carrying", box=None)
    for link in answer.links[:MOST_ROWS]:
        names = ", ".join(c.name for c in link.streams[:4])
        rest = len(link.streams) - 4
        table.add_row(
            f"{link.source}→{link.target}",
            percent(link.load),
            bar(link.load),
            f"{format_bandwidth(8 * link.bytes_per_s)} of {format_bandwidth(link.bandwidth_bps)}: "
            + names
            + (f" and {rest} more" if rest > 0 else ""),
        )
    if len(answer.links) > MOST_ROWS:
        table.add_row("…", "", "", f"and {len(answer.links) - MOST_ROWS} more links")
    return table
