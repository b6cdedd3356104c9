"""``streamplace compare``: who places best, how far from the optimum, in what time."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from streamplace.cli import _options
from streamplace.cli._options import FILE, ClusterChoice
from streamplace.cli._output import console, print_json, progress, save_json, say
from streamplace.cli._sweeps import Failures, dry_run, spread, tell_estimate
from streamplace.errors import FormatError, SettingError
from streamplace.model.messages import quoted
from streamplace.objectives.report import percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table as RichTable

    from streamplace.evaluate.comparison import Comparison
    from streamplace.evaluate.estimate import Estimate
    from streamplace.evaluate.pareto import Point
    from streamplace.evaluate.record_file import RecordFile
    from streamplace.evaluate.records import Record
    from streamplace.evaluate.results import Optima, ResultsTable
    from streamplace.evaluate.rows import Row, Table
    from streamplace.io.datasets import DataSet
    from streamplace.objectives.registry import Objective
    from streamplace.placers.registry import Budget

    Front = dict[float | None, list[Point]]

MOST_PAIRS = 8
"""Placers in the table of pairs on a terminal; the JSON document has all."""


@click.command(
    "compare",
    epilog="Example: streamplace compare datasets/branched.jsonl.gz --split test "
    "--placers metis,fuser --rate 10000 --rate 20000 -o out/",
)
@click.argument("data", type=FILE)
@click.option(
    "--placers",
    default="metis,metis-oracle,fuser,fuser-oracle,anneal,exact",
    show_default=True,
    help="Who takes part; options after colons: metis:k=3, anneal:budget=5ms, "
    "pilot:evaluations=100.",
)
@click.option(
    "--rate",
    "rates",
    multiple=True,
    help="Total rate of the sources; repeat for several.  [default: the graphs' own]",
)
@_options.split
@click.option("--limit", type=click.IntRange(1), help="Only the first so many graphs.")
@click.option(
    "--reference", default="metis", show_default=True, help="Whom 'better than' refers to."
)
@click.option(
    "--objective",
    "objectives",
    multiple=True,
    help="What is best, as for place; repeat for a table of each and what one costs by the others.",
)
@_options.conditions
@_options.search
@spread
@dry_run
@_options.constraints
@_options.cluster
@_options.common("Folder for results.jsonl, table.json and the plots.")
def command(
    data: Path,
    placers: str,
    rates: tuple[str, ...],
    split: str | None,
    limit: int | None,
    reference: str,
    budget: "Budget",
    jobs: int | None,
    on: str | None,
    dry_run: bool,
    constraints_file: Path | None,
    cluster: ClusterChoice,
    objectives: tuple[str, ...],
    require: tuple[str, ...],
    as_json: bool,
    seed: int,
    output: Path | None,
) -> int:
    """Compare placers on DATA: a graph or a problem, a data set, in shards or not, or a folder.

    Results go to the folder -o as they come: a run that was stopped goes on where it was, and
    another placer costs only its own time. A graph that breaks a placer down is named and left out.
    """
    from streamplace.evaluate.compare import compare
    from streamplace.evaluate.comparison import Comparison
    from streamplace.evaluate.parallel import ray_connection
    from streamplace.evaluate.scan import survey
    from streamplace.model.units import tuple_rate

    problems = _options.data_set(data, split, limit, cluster, constraints_file).kept()
    failures = Failures()
    with ray_connection(on):
        seen = survey(problems, jobs, on)
        if not seen.total:
            of_split = f" of split {quoted(split)}" if split else ""
            raise SettingError(f"{data} holds no graph{of_split}")
        names = tuple(dict.fromkeys(objectives)) or (seen.objective,)
        own = Comparison(
            tuple(dict.fromkeys(placers.split(","))),
            tuple(dict.fromkeys(map(tuple_rate, rates))) or seen.rate,
            seed,
            budget,
            require=require,
        )
        contests = [
            replace(own, objective=name, beside=tuple(other for other in names if other != name))
            for name in names
        ]
        if dry_run:
            tell_estimate(_estimate(contests, problems, seen.total), as_json)
            return 0
        file = None if output is None else _results(output)
        play = partial(compare, problems=problems, file=file, jobs=jobs, on=on, on_failure=failures)
        with progress("comparing", seen.total * len(names)) as tick:
            found = [_held(contest, file, tick.over(play(contest))) for contest in contests]
    _tell(found, output, as_json, reference)
    return failures.status


def _estimate(contests: "Sequence[Comparison]", problems: "DataSet", total: int) -> "Estimate":
    """What all contests will cost, whatever is known already."""
    from streamplace.evaluate.estimate import estimate
    from streamplace.evaluate.runner import Runner

    referees = [Runner(contest, problems.reader) for contest in contests]
    each = sum(len(c.placers) * max(1, len(c.rates)) for c in contests)
    return estimate(lambda line: [referee(line) for referee in referees], problems, total, each)


def _tell(
    found: "Sequence[_Standings]", output: Path | None, as_json: bool, reference: str
) -> None:
    """Print what was found, or write it to a folder too."""
    front = _front(found) if len(found) > 1 else None
    document = as_document(found, front)
    if output is not None:
        save_json(document, output / "table.json")
        _plots(found, front, output)
    if as_json:
        print_json(document)
        return
    for one in found:
        show(one.judge, one.table, reference)
    if front is not None:
        show_front(front)


class _Standings(NamedTuple):
    """What was found by one objective."""

    judge: "Objective"
    tally: "ResultsTable"
    best: "Optima"
    table: "Table"


def _held(
    contest: "Comparison", file: "RecordFile | None", played: "Iterator[list[Record]]"
) -> _Standings:
    """Hold a contest; its standings are judged by the optima that the folder proves."""
    from streamplace.evaluate.results import ResultsTable, proven_by
    from streamplace.evaluate.rows import standings

    judge = contest.judge
    tally = ResultsTable(objective=judge.name, sense=judge.sense)
    for records in played:
        tally.add(records)
    best = tally.optima() if file is None else proven_by(file, judge.name, judge.sense)
    return _Standings(judge, tally, best, standings(tally, best))


def _front(found: "Sequence[_Standings]") -> "Front":
    from streamplace.evaluate.pareto import points

    by_name = {one.judge.name: one.tally for one in found}
    return points(by_name, [one.judge for one in found])


def _results(folder: Path) -> "RecordFile":
    """File of the results in a folder, which is made if need be."""
    from streamplace.evaluate.record_file import RecordFile

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(f"{folder}: cannot be a folder: {error.strerror}") from None
    return RecordFile(folder / "results.jsonl")


def _plots(found: "Sequence[_Standings]", front: "Front | None", output: Path) -> None:
    from streamplace.drawing.figures import save
    from streamplace.evaluate import comparison_plots as plots
    from streamplace.evaluate.pareto import draw_front

    figures: dict[str, Figure | None] = {}
    for judge, tally, best, table in found:
        before = "" if len(found) == 1 else re.sub(r"[^\w.-]+", "-", judge.name) + "-"
        figures |= {
            f"{before}cdf.png": plots.draw_cdf(tally, judge),
            f"{before}steps.png": plots.draw_steps(tally, judge),
            f"{before}devices.png": plots.draw_devices(table),
            f"{before}scatter.png": plots.draw_scatter(tally, best, judge),
            f"{before}tradeoff.png": plots.draw_tradeoff(table),
        }
    if front is not None:
        figures["pareto.png"] = draw_front(front, [one.judge for one in found])
    drawn = {name: figure for name, figure in figures.items() if figure is not None}
    for name, figure in drawn.items():
        save(figure, output / name)
    say(f"results.jsonl, table.json, {', '.join(drawn)} → {output}/")


def as_document(found: "Sequence[_Standings]", front: "Front | None" = None) -> dict[str, Any]:
    """JSON document of a comparison; by several objectives, one in another."""
    documents = [_document(one.judge, one.table) for one in found]
    if front is None:
        return documents[0]
    return {
        "objectives": {document["objective"]: document for document in documents},
        "pareto": {_key(rate): [asdict(point) for point in row] for rate, row in front.items()},
    }


def _document(judge: "Objective", table: "Table") -> dict[str, Any]:
    return {
        "objective": judge.name,
        "rates": {
            _key(rate): {"placers": {name: _finite(asdict(s)) for name, s in found.items()}}
            for rate, found in sorted(table.items())
        },
    }


def _key(rate: float | None) -> str:
    if rate is None:
        return "own"
    return f"{rate:g}" if rate < 1e6 else str(int(rate))


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """Numbers that JSON knows; None for others, such as a multiple of a best of 0."""
    return {key: _number(value) for key, value in row.items()}


def _number(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_number(one) for one in value]
    if isinstance(value, dict):
        return _finite(value)
    return None if isinstance(value, float) and not isfinite(value) else value


def show(judge: "Objective", table: "Table", reference: str) -> None:
    """Print a table per rate, with the distance to the best and to the optimum."""
    from rich.table import Table as RichTable

    from streamplace.cli._console import titled
    from streamplace.evaluate.rows import heading

    out = console()
    head, cells = _columns(judge, reference)
    for rate, by_placer in sorted(table.items()):
        graphs = max(s.graphs for s in by_placer.values())
        proven = max(s.proven for s in by_placer.values())
        facts = f", {graphs} graphs, {proven} with a proven optimum"
        asked = "" if judge.name == "throughput" else f"{judge.name}, "
        out.print(titled(f"{asked}{heading(rate)}", facts))
        own = sorted({name for s in by_placer.values() for name in s.measures})
        rows = RichTable("placer", *head, *own, "ms", box=None)
        for name, s in by_placer.items():
            left_out = f"  ({s.failed} not placed)" if s.failed else ""
            further = (f"{s.measures.get(measure, nan):.4g}" for measure in own)
            rows.add_row(name, *cells(s), *further, f"{s.ms_per_graph:.2f}{left_out}")
        out.print(rows)
        few = judge.sense == "min" or len(by_placer) > 2  # else the table above says it
        if few and 1 < len(by_placer) <= MOST_PAIRS:
            out.print(_pairs(by_placer))


def _pairs(by_placer: "dict[str, Row]") -> "RichTable":
    """How often each placer is better, equal or worse than each other."""
    from rich.table import Table as RichTable

    rows = RichTable("better / equal / worse than, %", *by_placer, box=None)
    for name, one in by_placer.items():
        shares = (one.better_than, one.equal_to, one.worse_than)
        cells = (
            "" if other == name else " / ".join(f"{100 * share[other]:.0f}" for share in shares)
            for other in by_placer
        )
        rows.add_row(name, *cells)
    return rows


def show_front(front: "Front") -> None:
    """Print what every placer reaches by all objectives, and who is not dominated."""
    from rich.table import Table as RichTable

    from streamplace.evaluate.rows import heading

    out = console()
    for rate, points in front.items():
        names = list(points[0].of_best) if points else []
        out.print(f"{heading(rate)}: value / best known, by every objective (● nobody is better)")
        rows = RichTable("asked for", "placer", *names, "", box=None)
        for point in points:
            reached = (f"{point.of_best[name]:.3f}" for name in names)
            rows.add_row(point.asked, point.placer, *reached, "●" if point.front else "")
        out.print(rows)


def _columns(
    judge: "Objective", reference: str
) -> "tuple[tuple[str, ...], Callable[[Row], tuple[str, ...]]]":
    """Heads of the columns, and their cells for one placer.

    What is maximised is told as the paper's Table 1 does; what is minimised is told as a multiple
    of the best that any of the placers found.
    """
    against = f"vs {reference} +/=/−"
    if judge.sense == "max":
        return ("mean", "q1", "median", "min", against, "of optimum", "optimal"), lambda s: (
            *(f"{value:.3f}" for value in (s.mean, s.q1, s.median, s.min)),
            _signs(s, reference),
            "—" if s.share_of_optimum is None else f"{100 * s.share_of_optimum:.2f} %",
            "—" if s.reached is None else percent(s.reached),
        )
    head = ("mean", "max", "× best", "worst", "× optimum", "optimal")
    return head, lambda s: (
        *(judge.told(value) for value in (s.mean, s.max)),
        *(f"{ratio:.3f}" for ratio in s.of_best),
        "—" if s.share_of_optimum is None else f"{s.share_of_optimum:.3f}",
        "—" if s.reached is None else percent(s.reached),
    )


def _signs(standing: "Row", reference: str) -> str:
    if reference not in standing.better_than:
        return "—"
    shares = (standing.better_than, standing.equal_to, standing.worse_than)
    return " / ".join(f"{100 * share[reference]:.0f}" for share in shares) + " %"
