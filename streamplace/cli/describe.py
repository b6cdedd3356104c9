"""``streamplace describe``: statistics of a graph or a data set."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli import _options
from streamplace.cli._options import FILE
from streamplace.cli._output import console, counted, print_json, progress, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamplace.evaluate.profile import Profile, Spread
    from streamplace.model.graph import StreamGraph
    from streamplace.model.problem import Problem


@click.command(
    "describe",
    short_help="Print statistics of a graph or a data set.",
    epilog="Example: streamplace describe datasets/branched.jsonl.gz -o figure4.png",
)
@click.argument("data", type=FILE)
@click.option(
    "--mips",
    default="2500 MIPS",
    show_default=True,
    help="Speed of the device that is the unit of CPU.",
)
@click.option(
    "--bandwidth",
    default="1000 Mbps",
    show_default=True,
    help="Bandwidth of the link that is the unit of traffic.",
)
@_options.split
@_options.common("Draw the histograms to this .png, .svg or .pdf file.")
def command(
    data: Path,
    mips: str,
    bandwidth: str,
    split: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Print statistics of DATA: a graph or problem (.json), a data set, or a folder."""
    from streamplace.evaluate import profile as profiling
    from streamplace.model import units

    with progress(f"reading {data}") as tick:
        profile = profiling.profile(
            tick.over(_read(data, split)),
            mips=units.mips(mips),
            bandwidth_bps=units.bandwidth_bps(bandwidth),
        )
    if output is not None:
        from streamplace.drawing.figures import save
        from streamplace.evaluate.profile_plot import draw_profile

        save(draw_profile(profile), output)
        say(f"figure → {output}")
    if as_json:
        print_json(as_document(profile))
    else:
        show(data, profile)


def _read(data: Path, split: str | None) -> "Iterator[StreamGraph | Problem]":
    """Problems, if the documents have a cluster; otherwise graphs."""
    from streamplace.io.graphs import documents
    from streamplace.io.problems import problem_of

    for document in documents(data):
        if split is None or document.parts["graph"].get("attributes", {}).get("split") == split:
            own = "cluster" in document.parts
            yield problem_of(document, None, None) if own else document.graph()


def as_document(profile: "Profile") -> dict[str, Any]:
    """JSON document of a profile."""
    return {
        "graphs": len(profile.operators),
        "splits": profile.splits,
        **{name: asdict(spread) for name, spread in _spreads(profile).items()},
        "classes": [
            {**group.attributes, "graphs": group.graphs, "cpu": asdict(group.cpu)}
            for group in profile.classes
        ],
    }


def show(data: Path, profile: "Profile") -> None:
    """Print a profile as a table."""
    from rich.table import Table

    from streamplace.model.console import titled

    out = console()
    out.print(titled(str(data), f": {counted(len(profile.operators), 'graph')}"))
    for name, count in profile.splits.items():
        out.print(f"  {name}: {count}")
    table = Table("", "min", "q1", "median", "mean", "q3", "max", box=None)
    words = {
        "operators": "operators per graph",
        "streams": "streams per graph",
        "sources": "sources per graph",
        "sinks": "sinks per graph",
        "cpu": "CPU per graph (devices)",
        "utilisation": "CPU per operator (devices)",
        "saturation": "traffic per stream (links)",
        "devices": "devices per problem",
        "ccr": "communication / computation",
    }
    for name, spread in _spreads(profile).items():
        table.add_row(words[name], *(f"{value:.4g}" for value in asdict(spread).values()))
    out.print(table)
    if len(profile.classes) > 1:
        out.print(_class_table(profile))


def _class_table(profile: "Profile") -> Any:
    from rich.table import Table

    names = list(dict.fromkeys(name for group in profile.classes for name in group.attributes))
    table = Table(*names, "graphs", "CPU (devices)", box=None)
    for group in profile.classes:
        low, high = f"{group.cpu.min:.6g}", f"{group.cpu.max:.6g}"
        cpu = low if low == high else f"{low} to {high}"
        cells = (str(group.attributes.get(name, "")) for name in names)
        table.add_row(*cells, str(group.graphs), cpu)
    return table


def _spreads(profile: "Profile") -> "dict[str, Spread]":
    from streamplace.evaluate.profile import Spread

    columns = ("operators", "streams", "sources", "sinks", "cpu", "utilisation", "saturation")
    own = ("devices", "ccr") if profile.devices else ()
    return {name: Spread.of(getattr(profile, name)) for name in (*columns, *own)}
