"""``streamplace draw``: a graph alone, or placements of it side by side."""

from pathlib import Path

import click

from streamplace.cli._options import (
    FILE,
    NO_CHOICE,
    ClusterChoice,
    cluster,
    common,
    objective,
    read_problem,
)
from streamplace.cli._output import print_json, say, with_command
from streamplace.errors import SettingError


@click.command(
    "draw", epilog="Example: streamplace draw graph.json placement.json -o placement.svg"
)
@click.argument("graph", type=FILE)
@click.argument("placements", type=FILE, nargs=-1)
@click.option("--rate", help="Total rate of the sources, instead of the graph's own.")
@objective
@cluster
@common("File to write: a drawing (.svg, .png or .pdf), or a report (.html).")
def command(
    graph: Path,
    placements: tuple[Path, ...],
    rate: str | None,
    cluster: ClusterChoice,
    objective: str,
    as_json: bool,
    output: Path | None,
) -> None:
    """Draw GRAPH alone, or PLACEMENTS of it side by side.

    A box is an operator; its colour is the device, and a stream is as wide as its traffic. Dashed
    streams cross the network. What limits the objective is red: for throughput what uses the
    bottleneck, for makespan the critical chain. The title is the value of the placement. Without
    placements, darker boxes need more CPU. Above 200 operators, chains of operators share a box.
    """
    from streamplace.api.arguments import objective_of
    from streamplace.drawing.figures import check_suffix
    from streamplace.drawing.graphs import NamedPlacements, draw_graph, draw_placements
    from streamplace.io.graphs import read_graph
    from streamplace.io.placements import read_placement
    from streamplace.model.units import total_rate

    if output is None:
        raise SettingError("the output file is missing; add -o FILE.svg")
    check_suffix(output, ".html")
    page = output.suffix == ".html"
    if placements:
        problem = read_problem(graph, cluster, rate)
        named = [(path.stem, read_placement(path, problem)) for path in placements]
        judge = objective_of(problem, objective)
        if page:
            drawn = NamedPlacements(problem, tuple(named), judge).report()
            options = {"rate": rate, "objective": objective, **cluster.options}
            with_command(drawn, graph, options).save(output)
        else:
            draw_placements(problem, named, judge).save(output)
    else:
        if objective or cluster != NO_CHOICE:
            raise SettingError(
                "a graph alone has no devices and no value; add a placement, or drop --objective "
                "and the options of the cluster"
            )
        alone = read_graph(graph)
        asked = alone if rate is None else alone.at_rate(total_rate(rate))
        if page:
            asked.report().save(output)
        else:
            draw_graph(asked).save(output)
    if as_json:
        print_json({"output": str(output), "placements": [path.stem for path in placements]})
    else:
        say(f"{'report' if page else 'drawing'} → {output}")
