"""``streamplace place``: placements of a graph or of a data set, and their quality."""

from collections.abc import Callable
from functools import partial
from math import fsum, inf
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamplace.cli import _options
from streamplace.cli._command import with_command
from streamplace.cli._options import CONFIDENCE, FILE, LEDGER, TRUST, ClusterChoice
from streamplace.cli._output import (
    print_json,
    print_report,
    progress,
    say,
    say_doubts,
    say_trust,
    say_written,
)
from streamplace.cli._sweeps import FailedGraphs, dry_run, print_estimate, resumable, spread
from streamplace.cli._what_ifs import WhatIf, what_ifs
from streamplace.errors import SettingError
from streamplace.model.defaults import USUAL_ERROR

if TYPE_CHECKING:
    from streamplace.io.datasets import DataSet
    from streamplace.model.problem import Problem
    from streamplace.model.relocation import Relocation
    from streamplace.model.report import Report
    from streamplace.placers.registry import Budget
    from streamplace.placers.request import PlacementRequest

ANSWERS = ".jsonl"
"""Suffix of files for the placements of a data set."""
NOTICEABLE = 0.5
"""Seconds of start-up that are told."""
SUFFIXES = (".json", ".html")
"""Suffixes of files for a single graph."""
FOR_ONE_GRAPH = ("present", "confidence", "ledger", "trust_profile")
FOR_DATA_SETS = ("split", "limit", "jobs", "on")


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
    help="Placement algorithm. Options follow the name, separated by colons, as in metis:k=3 (see: "
    "streamplace placers).",
)
@click.option(
    "--weights",
    type=FILE,
    help="Weights of a learned placer, such as runs/x/best.safetensors (see: streamplace train).",
)
@_options.search
@click.option("--rate", help="Total rate of the sources. Replaces the rate of the graph.")
@click.option(
    "--subtasks",
    "by_subtask",
    is_flag=True,
    help="Place the subtasks of parallel operators one by one (as join#0, join#1, …).",
)
@_options.split
@click.option("--limit", type=click.IntRange(1), help="Place only the first N graphs.")
@spread
@dry_run
@_options.objective
@click.option(
    "--robust",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Number of operators on each device whose CPU cost may be higher than in the graph.",
)
@click.option(
    "--error",
    type=_options.Share(click.FloatRange(0)),
    help=f"Share by which these costs may be higher.  [default: {USUAL_ERROR:g}]",
)
@_options.conditions
@_options.present
@click.option(
    "--passes",
    type=click.FloatRange(0, min_open=True),
    help="Number of passes until the next change. The cost of moving is spread over them.",
)
@what_ifs
@_options.constraints
@_options.cluster
@TRUST
@CONFIDENCE
@LEDGER
@_options.seeded(
    "File to write: the placement (.json), a report (.html), or the placements of a data set "
    "(.jsonl)."
)
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
    robust: int,
    error: float | None,
    require: tuple[str, ...],
    present: Path | None,
    passes: float | None,
    startup: str | None,
    what_if: WhatIf,
    trust_profile: bool,
    confidence: float | None,
    ledger: Path | None,
    as_json: bool,
    seed: int,
    output: Path | None,
) -> int:
    """Place the operators of GRAPH on devices.

    GRAPH is a stream graph, which is placed for the highest throughput, a task graph (its operators
    fire "all"), which is placed for the shortest pass, or a problem that includes its cluster and
    constraints. --objective asks for something else. Of placements of equal throughput, the default
    placer returns the one whose fullest resource is least loaded, then the one that sends the least
    over the network. GRAPH may also be a data set: with -o FILE.jsonl, every graph gets a line of
    the file, in order, and a command that was stopped continues where it ended.
    """
    from streamplace.io.files import is_special
    from streamplace.model.units import total_rate
    from streamplace.objectives.throughput.robust import protected
    from streamplace.placers.request import PlacementRequest

    request = PlacementRequest(
        placer_name,
        weights,
        protected(objective, robust, error),
        require,
        _relocation(present, passes, startup),
        None if rate is None else total_rate(rate),
        by_subtask,
        seed,
        budget,
        confidence,
        ledger,
    )
    if dry_run or (output is not None and output.name.endswith(ANSWERS)):
        if what_if:
            raise SettingError("--scale and --set are for a single graph; drop them")
        _options.refuse_given(
            FOR_ONE_GRAPH, "is for a single graph; drop it, or place the graphs one by one"
        )
        data = _options.data_set(graph, split, limit, cluster, constraints_file).rereadable()
        total = _counted(graph, data)
        if dry_run:
            return _estimate(request, data, total, as_json)
        assert output is not None
        return _place_all(request, data, total, output, jobs, on, as_json)
    if output is not None and output.suffix not in SUFFIXES and not is_special(output):
        raise SettingError(
            f"-o {output}: the name must end in .json for a placement, .html for a report, or "
            ".jsonl for the placements of a data set"
        )
    _options.refuse_given(FOR_DATA_SETS, "is for data sets; add -o FILE.jsonl, or drop it")
    changes = what_if.arguments()
    problem = _options.read_problem(graph, cluster, None, constraints_file, changes)
    say_trust(problem.graph, trusts=trust_profile)
    rules = {
        "rate": rate, "objective": str(request.objective), "from": present, "startup": startup,
        "constraints": constraints_file, **what_if.options,
    }  # fmt: skip
    offered = partial(with_command, graph=graph, cluster=cluster, options=rules)
    _place(request, problem, output, as_json, offered)
    return 0


def _place(
    request: "PlacementRequest",
    problem: "Problem",
    output: Path | None,
    as_json: bool,
    with_command: "Callable[[Report], Report]",
) -> None:
    """Place one graph, and write and print the result."""
    from streamplace.io.placements import write_placement
    from streamplace.model.report import duration
    from streamplace.placers.stopwatch import start_up_seconds

    parallel = problem.graph.operators.parallel
    before = start_up_seconds()
    with request.waiting(problem.graph.name):
        result = request.answer(problem)
    took = start_up_seconds() - before
    if output is not None and output.suffix == ".html":
        with_command(result.report()).save(output)
    elif output is not None:
        write_placement(result.placement, output, **result.facts())
    say_doubts(result.problem.graph)
    if as_json:
        several = {"parallelism": parallel} if parallel else {}
        print_json({"graph": problem.graph.name, **several, **result.to_json()})
    else:
        print_report(result.report())
        if took >= NOTICEABLE:
            say(f"start-up {duration(took)} for libraries and weights, besides the search time")
    if output is not None:
        say_written("report" if output.suffix == ".html" else "placement", output)


def _estimate(request: "PlacementRequest", data: "DataSet", total: int, as_json: bool) -> int:
    """Print what placing all graphs would take."""
    from streamplace.evaluate.placing import Placing
    from streamplace.evaluate.scan import estimate

    print_estimate(estimate(Placing(request, data.reader), data, total, 1), as_json)
    return 0


def _place_all(
    request: "PlacementRequest",
    data: "DataSet",
    total: int,
    output: Path,
    jobs: int | None,
    on: str | None,
    as_json: bool,
) -> int:
    """Place all graphs, a line for each; return the exit status."""
    from streamplace.evaluate.parallel import ray_connection
    from streamplace.evaluate.placing import Placing, place_all

    placing = Placing(request, data.reader)
    failures, values, graphs = FailedGraphs(), list[float](), 0
    with resumable(output), ray_connection(on), progress("placing", total) as tick:
        for placed in tick.over(place_all(placing, data, output, jobs=jobs, on=on)):
            graphs += 1
            if placed.value is None:
                failures(placed.graph, placed.error or "")
            else:
                values.append(placed.value)
    mean = fsum(values) / len(values) if values else None
    if as_json:
        facts = {"graphs": graphs, "placed": len(values), "mean": mean}
        print_json({**facts, "output": str(output)})
    else:
        average = "" if mean is None else f", mean value {mean:.4g}"
        say(f"{len(values)} of {graphs} graphs placed{average} → {output}")
    return failures.status


def _counted(path: Path, data: "DataSet") -> int:
    """Number of graphs; raise FormatError if there are none."""
    from streamplace.io.datasets import no_graph

    total = sum(1 for _ in data.lines())
    if not total:
        raise no_graph(path, data)
    return total


def _relocation(
    present: Path | None, passes: float | None, startup: str | None
) -> "Relocation | None":
    """Relocation by the options; raise SettingError for only one of --from and --passes."""
    if present is not None and passes is None:
        raise SettingError("--from needs --passes; add the number of passes until the next change")
    if present is None and passes is not None:
        raise SettingError("--passes needs --from; add --from with the current placement")
    return _options.relocation_of(present, startup, passes or inf)
