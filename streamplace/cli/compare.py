"""``streamplace compare``: who places best, how far from the optimum, in what time."""

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli import _options
from streamplace.cli._options import FILE, ClusterChoice
from streamplace.cli._output import console, print_json, progress, save_json, say
from streamplace.errors import FormatError, SettingError
from streamplace.objectives.report import percent

if TYPE_CHECKING:
    from streamplace.evaluate.compare import Contest
    from streamplace.evaluate.records import Record
    from streamplace.evaluate.standings import Standing, Table
    from streamplace.model.graph import StreamGraph
    from streamplace.placers.registry import Budget


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
    help="Who takes part; options after colons: metis:k=3, anneal:budget=5ms.",
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
@_options.search
@click.option("--jobs", type=click.IntRange(1), help="Processes.  [default: all cores]")
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
    constraints_file: Path | None,
    cluster: ClusterChoice,
    as_json: bool,
    seed: int,
    output: Path | None,
) -> None:
    """Compare placers on DATA: a graph, a data set or a folder of graphs.

    Results go to the folder -o as they come: a run that was stopped goes on where it was, and
    another placer costs only its own time.
    """
    from streamplace.evaluate.compare import Contest
    from streamplace.evaluate.optima import known_optima
    from streamplace.evaluate.standings import optima, standings
    from streamplace.model.units import tuple_rate

    graphs = _graphs(data, split, limit)
    contest = Contest(
        tuple(placers.split(",")),
        cluster.build(),
        tuple(tuple_rate(rate) for rate in rates) or _common_rate(graphs),
        seed,
        budget,
        _options.constraints_of(constraints_file),
    )
    records = _records(contest, graphs, output, jobs)
    best = optima([*records, *known_optima().values()])
    table = standings(records, reference, best)
    document = as_document(table)
    if output is not None:
        save_json(document, output / "table.json")
        _plots(records, table, best, output)
    if as_json:
        print_json(document)
    else:
        show(table, reference)


def _graphs(data: Path, split: str | None, limit: int | None) -> "list[StreamGraph]":
    """Graphs to compare on, at least one."""
    found = list(islice(_options.read_split(data, split), limit))
    if not found:
        raise SettingError(f"{data} holds no graph" + (f" of split {split!r}" if split else ""))
    return found


def _common_rate(graphs: "list[StreamGraph]") -> tuple[float, ...]:
    """The rate that all graphs have, none where they differ."""
    rates = {graph.source_rate for graph in graphs}
    return tuple(rates) if len(rates) == 1 else ()


def _records(
    contest: "Contest", graphs: "list[StreamGraph]", output: Path | None, jobs: int | None
) -> "list[Record]":
    """Records of all graphs, kept in the output folder or, without one, in a temporary one."""
    from tempfile import TemporaryDirectory

    from streamplace.evaluate.compare import compare
    from streamplace.evaluate.records import RecordFile

    with TemporaryDirectory() as temporary:
        folder = Path(temporary) if output is None else output
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FormatError(f"{folder}: cannot be a folder: {error.strerror}") from None
        file = RecordFile(folder / "results.jsonl")
        with progress("comparing", len(graphs)) as tick:
            return [
                record
                for found in tick.over(compare(contest, graphs, file, jobs=jobs))
                for record in found
            ]


def _plots(records: "list[Record]", table: "Table", best: dict[str, float], output: Path) -> None:
    from streamplace.evaluate import contest_plots as plots
    from streamplace.evaluate.figures import save

    figures = {
        "cdf.png": plots.draw_cdf(records),
        "devices.png": plots.draw_devices(table),
        "scatter.png": plots.draw_scatter(records, best),
        "tradeoff.png": plots.draw_tradeoff(table),
    }
    drawn = {name: figure for name, figure in figures.items() if figure is not None}
    for name, figure in drawn.items():
        save(figure, output / name)
    say(f"results.jsonl, table.json, {', '.join(drawn)} → {output}/")


def as_document(table: "Table") -> dict[str, Any]:
    """JSON document of a comparison."""
    return {
        "rates": {
            _key(rate): {"placers": {name: _without_nan(asdict(s)) for name, s in found.items()}}
            for rate, found in sorted(table.items())
        }
    }


def _key(rate: float | None) -> str:
    if rate is None:
        return "own"
    return f"{rate:g}" if rate < 1e6 else str(int(rate))


def _without_nan(row: dict[str, Any]) -> dict[str, Any]:
    return {key: None if value != value else value for key, value in row.items()}


def show(table: "Table", reference: str) -> None:
    """Print the paper's Table 1, one per rate, with the distance to the optimum beside it."""
    from rich.table import Table as RichTable

    from streamplace.cli._console import titled
    from streamplace.evaluate.standings import heading

    out = console()
    for rate, by_placer in sorted(table.items()):
        graphs = max(s.graphs for s in by_placer.values())
        proven = max(s.proven for s in by_placer.values())
        facts = f", {graphs} graphs, {proven} with a proven optimum"
        out.print(titled(heading(rate), facts))
        rows = RichTable(
            "placer",
            "mean",
            "q1",
            "median",
            "min",
            f"vs {reference} +/=/−",
            "of optimum",
            "optimal",
            "ms",
            box=None,
        )
        for name, s in by_placer.items():
            rows.add_row(
                name,
                *(f"{value:.3f}" for value in (s.mean, s.q1, s.median, s.min)),
                _signs(s, reference),
                "—" if s.share_of_optimum is None else f"{100 * s.share_of_optimum:.2f} %",
                "—" if s.reached is None else percent(s.reached),
                f"{s.ms_per_graph:.2f}" + (f"  ({s.failed} not placed)" if s.failed else ""),
            )
        out.print(rows)


def _signs(standing: "Standing", reference: str) -> str:
    if reference not in standing.better_than:
        return "—"
    shares = (standing.better_than, standing.equal_to, standing.worse_than)
    return " / ".join(f"{100 * share[reference]:.0f}" for share in shares) + " %"
