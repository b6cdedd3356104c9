"""``streamplace place``: a placement of a graph, and its quality."""

from collections.abc import Callable
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from streamplace.cli import _options
from streamplace.cli._command import with_command
from streamplace.cli._options import CONFIDENCE, FILE, LEDGER, TRUST, ClusterChoice
from streamplace.cli._output import (
    print_json,
    print_report,
    say,
    say_doubts,
    say_trust,
    say_written,
)
from streamplace.cli._sweeps import dry_run, spread
from streamplace.cli._what_ifs import WhatIf, what_ifs
from streamplace.errors import SettingError

if TYPE_CHECKING:
    from streamplace.model.problem import Problem
    from streamplace.model.relocation import Relocation
    from streamplace.model.report import Report
    from streamplace.objectives.explanation import Explanation
    from streamplace.objectives.registry import Objective
    from streamplace.placers.registry import Budget, Placer, Result

ANSWERS = ".jsonl"
"""Suffix of files for the placements of a data set."""
NOTICEABLE = 0.5
"""Seconds of start-up that are told."""
SUFFIXES = (".json", ".html")
"""Suffixes of files for a single graph."""


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
    from streamplace.placers.named import named_placer, with_weights

    placer = named_placer(placer_name)
    if weights is not None:
        placer = with_weights(placer, weights)
    relocation = _relocation(present, passes, startup)
    if dry_run or (output is not None and output.name.endswith(ANSWERS)):
        from streamplace.cli._placing import Asked, sweep

        if what_if:
            raise SettingError("--scale and --set are for a single graph; drop them")
        if relocation is not None:
            raise SettingError(
                "--from is for a single graph; drop it, or place the graphs one by one"
            )
        data = _options.data_set(graph, split, limit, cluster, constraints_file)
        asked = Asked(placer_name, weights, objective, require, rate, by_subtask, seed, budget)
        return sweep(asked, graph, data, output, jobs, on, as_json, dry_run)
    if output is not None and output.suffix not in SUFFIXES and not is_special(output):
        raise SettingError(
            f"-o {output}: the name must end in .json for a placement, .html for a report, or "
            ".jsonl for the placements of a data set"
        )
    for name, value in {"split": split, "limit": limit, "jobs": jobs, "on": on}.items():
        if value is not None:
            raise SettingError(f"--{name} is for data sets; add -o FILE.jsonl, or drop --{name}")
    changes = what_if.arguments()
    problem = _options.read_problem(graph, cluster, rate, constraints_file, changes)
    say_trust(problem.graph, trusts=trust_profile)
    parallel = problem.graph.operators.parallel
    if by_subtask:
        from streamplace.model.expansion import expand

        problem = expand(problem.graph).problem(problem)
    question = _Question(placer, objective, require, relocation, confidence, ledger, seed, budget)
    rules = {
        "rate": rate, "objective": objective, "from": present, "startup": startup,
        "constraints": constraints_file, **what_if.options,
    }  # fmt: skip
    offered = partial(with_command, graph=graph, cluster=cluster, options=rules)
    _place_one(problem, question, parallel, output, as_json, offered)
    return 0


class _Question(NamedTuple):
    """Options for the placement of one graph."""

    placer: "Placer"
    objective: str
    require: tuple[str, ...]
    relocation: "Relocation | None"
    confidence: float | None
    ledger: Path | None
    seed: int
    budget: "Budget"


def _place_one(
    problem: "Problem",
    question: _Question,
    parallel: dict[str, int],
    output: Path | None,
    as_json: bool,
    with_command: "Callable[[Report], Report]",
) -> None:
    from streamplace.api.arguments import objective_of
    from streamplace.api.placing import place, show_placing
    from streamplace.io.placements import write_placement
    from streamplace.model.report import duration
    from streamplace.placers.stopwatch import start_up_seconds

    judge = objective_of(problem, question.objective, question.require, question.relocation)
    before = start_up_seconds()
    with show_placing(problem, question.placer):
        result = place(problem, **question._asdict())
    took = start_up_seconds() - before
    explanation = judge.explained(problem, result.placement)
    if output is not None and output.suffix == ".html":
        with_command(result.report()).save(output)
    elif output is not None:
        facts = {"graph": problem.graph.name, "placer": result.placer, "objective": judge.name}
        share = explanation.headline().get("relative_throughput")
        more = {} if share is None else {"relative_throughput": share}
        write_placement(
            result.placement, output, **facts, value=result.value, **more, parallelism=parallel
        )
    say_doubts(problem.graph)
    if as_json:
        several = {"parallelism": parallel} if parallel else {}
        document = as_document(judge, result, explanation)
        print_json({"graph": problem.graph.name, **several, **document})
    else:
        print_report(result.reported(explanation))
        if took >= NOTICEABLE:
            say(f"start-up {duration(took)} for libraries and weights, besides the search time")
    if output is not None:
        say_written("report" if output.suffix == ".html" else "placement", output)


def _relocation(
    present: Path | None, passes: float | None, startup: str | None
) -> "Relocation | None":
    """Relocation by the options; raise SettingError for only one of --from and --passes."""
    if present is not None and passes is None:
        raise SettingError("--from needs --passes; add the number of passes until the next change")
    if present is None and passes is not None:
        raise SettingError("--passes needs --from; add --from with the current placement")
    return _options.relocation_of(present, startup, passes or inf)


def _likely(result: "Result") -> dict[str, Any]:
    """Interval of the throughput of a measured graph; empty for others."""
    interval = result.interval
    if interval is None or result.errors is None:
        return {}
    return {"interval": interval._asdict(), "errors": result.errors.to_json()}


def as_document(judge: "Objective", result: "Result", explanation: "Explanation") -> dict[str, Any]:
    """Convert a placement to a JSON document."""
    from streamplace.io.placements import order_facts
    from streamplace.placers.verdict import verdict

    name = judge.quantity
    return {
        "objective": judge.name,
        "assignment": result.placement.as_dict(),
        **order_facts(result.placement),
        **{**explanation.headline(), name: explanation.headline().get(name, result.value)},
        "bound": result.bound,
        "gap": result.gap,
        "verdict": verdict(result.value, result.bound, explanation),
        **_likely(result),
        "placer": result.placer,
        "seed": result.seed,
        "seconds": result.seconds,
    }
