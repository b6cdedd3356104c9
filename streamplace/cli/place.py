"""``streamplace place``: find a placement and say how good it is."""

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli import _options
from streamplace.cli._options import FILE, ClusterChoice
from streamplace.cli._output import console, print_json, print_report, waiting
from streamplace.errors import SettingError
from streamplace.objectives.report import Report

if TYPE_CHECKING:
    from streamplace.objectives.registry import Explanation, Objective
    from streamplace.objectives.relocation import Relocation
    from streamplace.placers.registry import Budget, Placer, Result


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
@_options.objective
@_options.conditions
@_options.present
@click.option(
    "--passes",
    type=click.FloatRange(0, min_open=True),
    help="Passes until the next change, over which moving has to pay off.",
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
    objective: str,
    require: tuple[str, ...],
    present: Path | None,
    passes: float | None,
    startup: str | None,
    as_json: bool,
    seed: int,
    output: Path | None,
) -> None:
    """Place the operators of GRAPH on devices: for the highest throughput, or for what you ask.

    GRAPH is a stream graph, a task graph (whose operators fire "all"; placed for the shortest pass)
    or a problem, which brings its cluster and constraints along.
    """
    from streamplace.api import chosen_objective, place
    from streamplace.io.placements import write_placement
    from streamplace.placers.named import named_placer

    problem = _options.read_problem(graph, cluster, rate, constraints_file)
    parallel = problem.graph.operators.parallel
    if by_subtask:
        problem = problem.graph.expand().problem(problem)
    relocation = _relocation(present, passes, startup)
    judge = chosen_objective(problem, objective, require, relocation)
    placer = named_placer(placer_name)
    if weights is not None:
        placer = with_weights(placer, weights)
    with waiting(f"placing {problem.graph.name}"):
        result = place(
            problem,
            placer=placer,
            objective=objective,
            require=require,
            relocation=relocation,
            seed=seed,
            budget=budget,
        )
    told = judge.explained(problem, result.placement)
    if output is not None:
        facts = {"graph": problem.graph.name, "placer": result.placer, "objective": judge.name}
        share = told.headline().get("relative_throughput")
        more = {} if share is None else {"relative_throughput": share}
        write_placement(
            result.placement, output, **facts, value=result.value, **more, parallelism=parallel
        )
    if as_json:
        print_json(as_document(judge, result, told))
    else:
        show(problem.graph.name, judge, result, told)


def _relocation(
    present: Path | None, passes: float | None, startup: str | None
) -> "Relocation | None":
    """Relocation that the options describe; one of --from and --passes is nothing."""
    if present is not None and passes is None:
        raise SettingError("--from: say over how many passes moving has to pay off; add --passes")
    if present is None and passes is not None:
        raise SettingError("--passes is of what moves; add --from with the present placement")
    return _options.relocation_of(present, startup, passes or inf)


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


def as_document(judge: "Objective", result: "Result", told: "Explanation") -> dict[str, Any]:
    """JSON document of a placement."""
    from streamplace.evaluate.verdict import gap, verdict

    priority, name = result.placement.priorities(), judge.quantity
    return {
        "objective": judge.name,
        "assignment": result.placement.as_dict(),
        **({} if priority is None else {"priority": priority}),
        **{**told.headline(), name: told.headline().get(name, result.value)},
        "bound": result.bound,
        "gap": gap(result),
        "verdict": verdict(result, told),
        "placer": result.placer,
        "seed": result.seed,
        "seconds": result.seconds,
    }


def show(name: str, judge: "Objective", result: "Result", told: "Explanation") -> None:
    """Print a placement by device, and how good it is."""
    from streamplace.cli._console import titled
    from streamplace.evaluate.verdict import bound_in_words, verdict

    out, report = console(), told.brief()
    tables = [part for part in report.parts if not isinstance(part, str)]
    print_report(Report(tuple(tables)))
    found = f" by {result.placer}: {told.words}, found in {1000 * result.seconds:.1f} ms"
    out.print(titled(name, found))
    for line in (*report.parts, bound_in_words(judge, result)):
        if isinstance(line, str):
            out.print(line)
    out.print(f"Verdict: {verdict(result, told)}")
