"""``streamplace describe``: statistics of a graph or a data set."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli._command import verb
from streamplace.cli._options import FILE, PICTURES, common
from streamplace.cli._output import counted, print_json, print_report, progress, say
from streamplace.model.defaults import BANDWIDTH, SPEED
from streamplace.settings.base import VerbSettings
from streamplace.settings.convert import ClusterFile
from streamplace.settings.option import WHERE, option
from streamplace.settings.shared import SPLIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from streamplace.evaluate.graph_statistics import GraphStatistics
    from streamplace.model.graph import StreamGraph
    from streamplace.model.problem import Problem


class DescribeSettings(VerbSettings):
    """Which graphs are described, and in which units."""

    cluster: ClusterFile = option(
        "--cluster FILE",
        "TOML file of a cluster, whose mean device and link are the units of CPU and traffic.  "
        f"[default: {SPEED}, {BANDWIDTH}]",
        WHERE,
    )
    split: str | None = SPLIT


@verb(
    "describe",
    "Print statistics of a graph or a data set.",
    "describe datasets/branched.jsonl.gz -o figure4.png",
    settings=DescribeSettings,
)
@click.argument("data", type=FILE, nargs=-1, required=True)
@common("Draw the histograms to this .png, .svg or .pdf file.", suffixes=PICTURES)
def command(
    data: tuple[Path, ...], settings: DescribeSettings, as_json: bool, output: Path | None
) -> None:
    """Print statistics of DATA: graphs or problems (.json), data sets, or folders of them."""
    from streamplace.display.report import Heading, Report
    from streamplace.evaluate.graph_statistics import draw_statistics, statistics_of

    title = ", ".join(map(str, data))
    with progress(f"reading {title}") as tick:
        found = statistics_of(tick.over(_read(data, settings.split)), settings.cluster)
    graphs = counted(len(found.operators), "graph")
    if output is not None:
        from streamplace.drawing.figures import save

        names = ", ".join(path.name for path in data)
        of_split = f" of split {settings.split}" if settings.split else ""
        save(draw_statistics(found, f"{names}: {graphs}{of_split}"), output)
        say(f"figure → {output}")
    report = Report((Heading(title, f": {graphs}"), *found.report().parts))
    print_json(as_document(found)) if as_json else print_report(report)


def _read(data: "Iterable[Path]", split: str | None) -> "Iterator[StreamGraph | Problem]":
    """Graphs and problems of the files; each must have some."""
    from streamplace.io.datasets import DataSet, no_graph

    for path in data:
        stored, item = DataSet(path, split), None
        for item in stored.graphs_and_problems():
            yield item
        if item is None:
            raise no_graph(path, stored)


def as_document(statistics: "GraphStatistics") -> dict[str, Any]:
    """Convert statistics to a JSON document."""
    return {
        "graphs": len(statistics.operators),
        "splits": statistics.splits,
        **{name: asdict(spread) for name, spread in statistics.spreads().items()},
    }
