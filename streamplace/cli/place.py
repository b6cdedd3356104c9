"""``streamplace place``: placements of a graph or of a data set, and their quality."""

from dataclasses import dataclass
from math import fsum, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli import _options
from streamplace.cli._options import CONFIDENCE, FILE, LEDGER, TRUST, ClusterChoice
from streamplace.cli._output import (
    print_json,
    print_report,
    progress,
    say,
    say_doubts,
    say_trust,
    say_written,
    with_command,
)
from streamplace.cli._sweeps import FailedGraphs, dry_run, print_estimate, resumable, spread
from streamplace.cli._what_ifs import WhatIf, what_ifs
from streamplace.errors import SettingError

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
def command(**options: Any) -> int:
    """Place the operators of GRAPH on devices.

    GRAPH is a stream graph, which is placed for the highest throughput, a task graph (its operators
    fire "all"), which is placed for the shortest pass, or a problem that includes its cluster and
    constraints. --objective asks for something else. Of placements of equal throughput, the default
    placer returns the one whose fullest resource is least loaded, then the one that sends the least
    over the network. GRAPH may also be a data set: with -o FILE.jsonl, every graph gets a line of
    the file, in order, and a command that was stopped continues where it ended.
    """
    asked = _PlaceOptions(**options)
    request = asked.request()
    asked.check()
    if not asked.is_for_data_set:
        _place(request, asked.problem(), asked)
        return 0
    data = asked.data_set()
    total = _counted(asked.graph, data)
    if asked.dry_run:
        _estimate(request, data, total, asked.as_json)
        return 0
    return _place_all(request, data, total, asked)


@dataclass(frozen=True, slots=True)
class _PlaceOptions:
    """Options of the command."""

    graph: Path
    placer_name: str
    weights: Path | None
    budget: "Budget"
    rate: str | None
    by_subtask: bool
    split: str | None
    limit: int | None
    jobs: int | None
    on: str | None
    dry_run: bool
    constraints_file: Path | None
    cluster: ClusterChoice
    objective: str
    require: tuple[str, ...]
    present: Path | None
    passes: float | None
    startup: str | None
    what_if: WhatIf
    trust_profile: bool
    confidence: float | None
    ledger: Path | None
    as_json: bool
    seed: int
    output: Path | None

    @property
    def is_for_data_set(self) -> bool:
        """Whether all graphs of a data set are placed, or some of them for an estimate."""
        return self.dry_run or (self.output is not None and self.output.name.endswith(ANSWERS))

    def request(self) -> "PlacementRequest":
        """Request that these options make; raise SettingError for an unknown placer."""
        from streamplace.model.units import total_rate
        from streamplace.placers.request import PlacementRequest

        return PlacementRequest(
            placer=self.placer_name,
            weights=self.weights,
            objective=self.objective,
            require=self.require,
            relocation=_relocation(self.present, self.passes, self.startup),
            rate=None if self.rate is None else total_rate(self.rate),
            subtasks=self.by_subtask,
            seed=self.seed,
            budget=self.budget,
            confidence=self.confidence,
            ledger=self.ledger,
        )

    def check(self) -> None:
        """Raise SettingError for options that do not go together."""
        from streamplace.io.files import is_special, spot

        if self.is_for_data_set:
            if self.what_if:
                raise SettingError("--scale and --set are for a single graph; drop them")
            _options.refuse_given(
                FOR_ONE_GRAPH, "is for a single graph; drop it, or place the graphs one by one"
            )
            return
        output = self.output
        if output is not None and output.suffix not in SUFFIXES and not is_special(output):
            raise SettingError(
                f"-o {spot(output)}: the name must end in .json for a placement, .html for a "
                "report, or .jsonl for the placements of a data set"
            )
        _options.refuse_given(FOR_DATA_SETS, "is for data sets; add -o FILE.jsonl, or drop it")

    def data_set(self) -> "DataSet":
        """Data set whose graphs are placed."""
        data = _options.data_set(
            self.graph, self.split, self.limit, self.cluster, self.constraints_file
        )
        return data.rereadable()

    def problem(self) -> "Problem":
        """Problem of a single graph; say if its measurement contradicts it."""
        changes = self.what_if.arguments()
        problem = _options.read_problem(
            self.graph, self.cluster, None, self.constraints_file, changes
        )
        say_trust(problem.graph, trusts=self.trust_profile)
        return problem


def _place(request: "PlacementRequest", problem: "Problem", asked: _PlaceOptions) -> None:
    """Place one graph, and write and print the result."""
    from streamplace.io.placements import write_placement
    from streamplace.model.report import duration
    from streamplace.placers.stopwatch import start_up_seconds

    output, parallel = asked.output, problem.graph.operators.parallel
    before = start_up_seconds()
    with request.waiting(problem.graph.name):
        result = request.answer(problem)
    took = start_up_seconds() - before
    if output is not None and output.suffix == ".html":
        _with_command(result.report(), request, asked).save(output)
    elif output is not None:
        write_placement(result.placement, output, **result.facts())
    say_doubts(result.problem.graph)
    if asked.as_json:
        several = {"parallelism": parallel} if parallel else {}
        print_json({"graph": problem.graph.name, **several, **result.to_json()})
    else:
        print_report(result.report())
        if took >= NOTICEABLE:
            say(f"start-up {duration(took)} for libraries and weights, besides the search time")
    if output is not None:
        say_written("report" if output.suffix == ".html" else "placement", output)


def _with_command(report: "Report", request: "PlacementRequest", asked: _PlaceOptions) -> "Report":
    """Add the command that simulates the placement to its report."""
    rules = {
        "rate": asked.rate, "objective": str(request.objective), "from": asked.present,
        "startup": asked.startup, "constraints": asked.constraints_file, **asked.what_if.options,
    }  # fmt: skip
    return with_command(report, asked.graph, {**rules, **asked.cluster.options})


def _estimate(request: "PlacementRequest", data: "DataSet", total: int, as_json: bool) -> None:
    """Print what placing all graphs would take."""
    from streamplace.evaluate.placing import Placing
    from streamplace.evaluate.scan import estimate

    print_estimate(estimate(Placing(request, data.reader), data, total, 1), as_json)


def _place_all(
    request: "PlacementRequest", data: "DataSet", total: int, asked: _PlaceOptions
) -> int:
    """Place all graphs, a line for each; return the exit status."""
    from streamplace.evaluate.parallel import ray_connection
    from streamplace.evaluate.placing import Placing, place_all

    output, jobs, on = asked.output, asked.jobs, asked.on
    assert output is not None
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
    if asked.as_json:
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
