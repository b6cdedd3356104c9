"""``streamplace place``: find a placement and say how good it is."""

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from streamplace.cli import _options
from streamplace.cli._options import FILE, ClusterChoice
from streamplace.cli._output import (
    console,
    print_about,
    print_json,
    print_report,
    say_doubts,
    waiting,
)
from streamplace.cli._sweeps import dry_run, spread
from streamplace.errors import SettingError
from streamplace.objectives.report import Report

if TYPE_CHECKING:
    from streamplace.model.graph import StreamGraph
    from streamplace.model.problem import Problem
    from streamplace.model.relocation import Relocation
    from streamplace.objectives.explanation import Explanation
    from streamplace.objectives.registry import Objective
    from streamplace.placers.registry import Budget, Placer, Result

ANSWERS = ".jsonl"
"""What takes the placements of a whole data set."""


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
@_options.split
@click.option("--limit", type=click.IntRange(1), help="Only the first so many graphs.")
@spread
@dry_run
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
@_options.common("Write the placement to this JSON file; a .jsonl file takes those of a data set.")
def command(
    graph: Path,
    placer_name: str,
    weights: Path | None,
    budget: "Budget",
    rate: str | None,
    by_subtask: bool,
    split: str | None,
    limit: int | None,
    jobs: int | None,
    on: str | None,
    dry_run: bool,
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
) -> int:
    """Place the operators of GRAPH on devices: for the highest throughput, or for what you ask.

    GRAPH is a stream graph, a task graph (whose operators fire "all"; placed for the shortest pass)
    or a problem, which brings its cluster and constraints along; or a data set of them, with -o
    FILE.jsonl: a line each, in their order, and a run that was stopped goes on where it was.
    """
    from streamplace.placers.named import named_placer

    placer = named_placer(placer_name)
    if weights is not None:
        placer = with_weights(placer, weights)
    relocation = _relocation(present, passes, startup)
    if dry_run or (output is not None and output.name.endswith(ANSWERS)):
        from streamplace.cli._placing import Asked, sweep

        if relocation is not None:
            raise SettingError("--from is where one graph runs now; drop it, or place them singly")
        data = _options.data_set(graph, split, limit, cluster, constraints_file)
        asked = Asked(placer_name, weights, objective, require, rate, by_subtask, seed, budget)
        return sweep(asked, data, output, jobs, on, as_json, dry_run)
    for name, value in {"split": split, "limit": limit, "jobs": jobs, "on": on}.items():
        if value is not None:
            raise SettingError(f"--{name} is for data sets; add -o FILE.jsonl, or drop it")
    problem = _options.read_problem(graph, cluster, rate, constraints_file)
    parallel = problem.graph.operators.parallel
    if by_subtask:
        from streamplace.model.expansion import expand

        problem = expand(problem.graph).problem(problem)
    question = _Question(placer, objective, require, relocation, seed, budget)
    _place_one(problem, question, parallel, output, as_json)
    return 0


class _Question(NamedTuple):
    """What is asked of one graph."""

    placer: "Placer"
    objective: str
    require: tuple[str, ...]
    relocation: "Relocation | None"
    seed: int
    budget: "Budget"


def _place_one(
    problem: "Problem",
    question: _Question,
    parallel: dict[str, int],
    output: Path | None,
    as_json: bool,
) -> None:
    from streamplace.api import chosen_objective, place
    from streamplace.io.placements import write_placement

    judge = chosen_objective(problem, *question[1:4])
    with waiting(f"placing {problem.graph.name}"):
        result = place(problem, **question._asdict())
    told = judge.explained(problem, result.placement)
    if output is not None:
        facts = {"graph": problem.graph.name, "placer": result.placer, "objective": judge.name}
        share = told.headline().get("relative_throughput")
        more = {} if share is None else {"relative_throughput": share}
        write_placement(
            result.placement, output, **facts, value=result.value, **more, parallelism=parallel
        )
    say_doubts(problem.graph)
    if as_json:
        print_json(as_document(judge, result, told))
    else:
        show(problem.graph, judge, result, told)


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
    from streamplace.io.placements import order_facts

    name = judge.quantity
    return {
        "objective": judge.name,
        "assignment": result.placement.as_dict(),
        **order_facts(result.placement),
        **{**told.headline(), name: told.headline().get(name, result.value)},
        "bound": result.bound,
        "gap": gap(result),
        "verdict": verdict(result, told),
        "placer": result.placer,
        "seed": result.seed,
        "seconds": result.seconds,
    }


def show(graph: "StreamGraph", judge: "Objective", result: "Result", told: "Explanation") -> None:
    """Print a placement by device, and how good it is."""
    from streamplace.cli._console import titled
    from streamplace.evaluate.verdict import bound_in_words, verdict

    out, report = console(), told.brief()
    tables = [part for part in report.parts if not isinstance(part, str)]
    print_report(Report(tuple(tables)))
    print_about(graph)
    found = f" by {result.placer}: {told.words}, found in {1000 * result.seconds:.1f} ms"
    out.print(titled(graph.name, found))
    for line in (*report.parts, bound_in_words(judge, result)):
        if isinstance(line, str):
            out.print(line)
    out.print(f"Verdict: {verdict(result, told)}")
