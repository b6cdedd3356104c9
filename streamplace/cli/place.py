"""``streamplace place``: placements of a graph or of a data set, and their quality."""

from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamplace.cli import _options
from streamplace.cli._command import verb
from streamplace.cli._data_sets import FailedGraphs, resumable
from streamplace.cli._options import FILE
from streamplace.cli._output import (
    counted,
    print_json,
    print_report,
    progress,
    say,
    say_doubts,
    say_trust,
    say_written,
    with_command,
)
from streamplace.cli._settings import simulated
from streamplace.errors import FormatError, SettingError
from streamplace.settings.place import OF_DATA_SETS, OF_ONE_GRAPH, PlaceSettings

if TYPE_CHECKING:
    from streamplace.io.datasets import DataSet
    from streamplace.placers.request import PlacementRequest

ANSWERS = ".jsonl"
"""Suffix of files for the placements of a data set."""
NOTICEABLE = 0.5
"""Seconds of start-up that are printed."""
NOUNS = {".json": "placement", ".html": "report", ".svg": "picture"}
"""What a file for a single graph has, by its suffix."""


@verb(
    "place",
    "",
    "place graph.json --devices 5 --budget 1 --seed 1 -o placement.json",
    settings=PlaceSettings,
)
@click.argument("graph", type=FILE)
@_options.common(
    "File to write: the placement (.json), a report (.html), a picture (.svg), or "
    "the placements of a data set (.jsonl).",
    suffixes=(*NOUNS, ANSWERS),
    keys=_options.PLACEMENT,
)
def command(graph: Path, settings: PlaceSettings, as_json: bool, output: Path | None) -> int:
    """Place the operators of GRAPH on devices.

    GRAPH is a stream graph, which is placed for the highest throughput, a task graph (its operators
    fire "all"), which is placed for the shortest pass, or a problem that includes its cluster and
    constraints. Of placements of equal throughput, the default placer looks for the one whose
    fullest resource is least loaded, then for the one that sends the least over the network. Where
    a graph of up to 200 operators is carried at its full rate, it says whether that load is proven
    to be the least. GRAPH may also be a data set: with -o FILE.jsonl, every graph gets a line of
    the file, in order, and a command that was stopped continues where it ended.
    """
    request = settings.request()
    if output is None or not output.name.endswith(ANSWERS):
        for name in OF_DATA_SETS:
            settings.refuse(name, "is for data sets; add -o FILE.jsonl, or drop it")
        _place(request, settings, graph, output, as_json)
        return 0
    from streamplace.evaluate.runner import check_placer
    from streamplace.io.datasets import DataSet, Reader, no_graph

    for name in OF_ONE_GRAPH:
        settings.refuse(name, "is for a single graph; drop it, or place the graphs one by one")
    reader = Reader(settings.machines(), settings.constraints)
    data = DataSet(graph, settings.split, settings.limit, reader, settings.seed).rereadable()
    if not (total := sum(1 for _ in data.lines())):
        raise no_graph(graph, data)
    judge = request.judge(data.reader(next(data.lines())).graph)
    check_placer(request.algorithm, (judge,))
    return _place_all(request, data, total, settings, output, as_json)


def _place(
    request: "PlacementRequest",
    settings: PlaceSettings,
    graph: Path,
    output: Path | None,
    as_json: bool,
) -> None:
    """Place one graph, and write and print the result."""
    from streamplace.api.arguments import objective_of
    from streamplace.display.report import duration
    from streamplace.io.graphs import SeveralFound
    from streamplace.io.placements import write_placement
    from streamplace.placers.stopwatch import start_up_seconds

    try:
        problem = _options.read_problem(graph, settings)
        problem = problem if settings.without is None else problem.without(settings.without)
    except SeveralFound as error:
        raise FormatError(f"{error}, or place all: -o FILE.jsonl") from None
    say_trust(problem.graph, trusts=settings.trust_profile)
    judge = objective_of(problem, settings.objective)
    if settings.present is not None and settings.passes is None and judge.unit == "s":
        raise SettingError(
            f"{settings.name('present')} needs {settings.name('passes')}, over which the time of "
            f"moves is shared, as {judge.name} is measured in seconds"
        )
    before = start_up_seconds()
    with request.waiting(problem.graph.name):
        result = request.answer(problem)
    took = start_up_seconds() - before
    if output is not None and output.suffix == ".html":
        with_command(result.report(), graph, simulated(settings)).save(output)
    elif output is not None and output.suffix in NOUNS:
        result.save(output)
    elif output is not None:  # a device such as /dev/stdout
        write_placement(result.placement, output, **result.facts())
    say_doubts(result.problem.graph)
    if as_json:
        print_json(result.to_json())
    else:
        print_report(result.report())
        if took >= NOTICEABLE:
            say(f"start-up {duration(took)} for libraries and weights, besides the search time")
    if output is not None:
        say_written(NOUNS.get(output.suffix, "placement"), output)


def _place_all(
    request: "PlacementRequest",
    data: "DataSet",
    total: int,
    settings: PlaceSettings,
    output: Path,
    as_json: bool,
) -> int:
    """Place all graphs, a line for each; return the exit status."""
    from streamplace.evaluate.on_ray import connected
    from streamplace.evaluate.placing import Placing, place_all

    jobs, on = settings.jobs, settings.on
    placing = Placing(request, data.reader)
    failures, values, graphs, reused = FailedGraphs(), list[float](), 0, 0
    with resumable(output), connected(on), progress("placing", total) as tick:
        for placed in tick.over(place_all(placing, data, output, jobs=jobs, on=on)):
            graphs += 1
            reused += placed.is_saved
            if placed.value is None:
                failures(placed.graph, placed.error or "")
            else:
                values.append(placed.value)
    mean = fsum(values) / len(values) if values else None
    if reused:
        say(f"{counted(reused, 'result')} reused from {output}")
    if as_json:
        facts = {"graphs": graphs, "placed": len(values), "mean": mean}
        print_json({**facts, "output": str(output)})
    else:
        average = "" if mean is None else f", mean value {mean:.4g}"
        say(f"{len(values)} of {graphs} graphs placed{average} → {output}")
    return failures.status
