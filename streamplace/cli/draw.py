"""``streamplace draw``: placements of a graph side by side."""

from pathlib import Path

import click

from streamplace.cli._options import FILE, ClusterChoice, cluster, common, objective, read_problem
from streamplace.cli._output import print_json, say
from streamplace.errors import SettingError


@click.command(
    "draw", epilog="Example: streamplace draw graph.json placement.json -o placement.png"
)
@click.argument("graph", type=FILE)
@click.argument("placements", type=FILE, nargs=-1, required=True)
@click.option("--rate", help="Total rate of the sources, instead of the graph's own.")
@objective
@cluster
@common("The .png, .svg or .pdf file to draw.")
def command(
    graph: Path,
    placements: tuple[Path, ...],
    rate: str | None,
    cluster: ClusterChoice,
    objective: str,
    as_json: bool,
    seed: int,
    output: Path | None,
) -> None:
    """Draw PLACEMENTS of GRAPH: colour is the device, size the CPU, width the traffic.

    What is red limits: for throughput, what is on a link or a device over its capacity; for
    makespan, the critical chain. The title is the value.
    """
    from streamplace.api import chosen_objective
    from streamplace.drawing.figures import save
    from streamplace.evaluate.drawing import draw_placements
    from streamplace.io.placements import read_placement

    if output is None:
        raise SettingError("where should the drawing go? Give -o FILE.png")
    problem = read_problem(graph, cluster, rate)
    named = [(path.stem, read_placement(path, problem)) for path in placements]
    save(draw_placements(problem, named, chosen_objective(problem, objective)), output)
    if as_json:
        print_json({"output": str(output), "placements": [name for name, _ in named]})
    else:
        say(f"drawing → {output}")
