"""``streamplace describe``: statistics of a graph or a data set."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from streamplace.cli import _options
from streamplace.cli._command import verb
from streamplace.cli._options import FILE
from streamplace.cli._output import counted, print_json, print_report, progress, say
from streamplace.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from streamplace.evaluate.profile import Profile
    from streamplace.model.graph import StreamGraph
    from streamplace.model.problem import Problem


@verb(
    "describe",
    "Print statistics of a graph or a data set.",
    "describe datasets/branched.jsonl.gz -o figure4.png",
)
@click.argument("data", type=FILE, nargs=-1, required=True)
@click.option("--mips", help="Speed of the device that is the unit of CPU.  [default: 2500 MIPS]")
@click.option(
    "--bandwidth", help="Bandwidth of the link that is the unit of traffic.  [default: 1000 Mbps]"
)
@click.option(
    "--cluster",
    "cluster_file",
    type=FILE,
    help="TOML file of a cluster, whose mean device and link are the units.",
)
@click.option("--split", help="Use only the graphs of this split, such as test.")
@_options.common("Draw the histograms to this .png, .svg or .pdf file.")
def command(
    data: tuple[Path, ...],
    mips: str | None,
    bandwidth: str | None,
    cluster_file: Path | None,
    split: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Print statistics of DATA: graphs or problems (.json), data sets, or folders of them."""
    from streamplace.evaluate import profile as profiling

    units = _units(mips, bandwidth, cluster_file)
    title = ", ".join(map(str, data))
    with progress(f"reading {title}") as tick:
        profile = profiling.profile(
            tick.over(_read(data, split)), mips=units.mips, bandwidth_bps=units.bandwidth_bps
        )
    if output is not None:
        from streamplace.drawing.figures import save
        from streamplace.evaluate.profile import draw_profile

        of_split = f" of split {split}" if split else ""
        graphs = counted(len(profile.operators), "graph")
        names = ", ".join(path.name for path in data)
        save(draw_profile(profile, f"{names}: {graphs}{of_split}", units.words), output)
        say(f"figure → {output}")
    if as_json:
        print_json(as_document(profile))
    else:
        show(title, profile, units)


class _Units(NamedTuple):
    """Device and link that are the units of CPU and traffic."""

    mips: float
    bandwidth_bps: float
    words: str


def _units(mips: str | None, bandwidth: str | None, cluster_file: Path | None) -> _Units:
    """Units by the options."""
    from streamplace.evaluate.profile import link_in_words, mean_device_and_link
    from streamplace.io.clusters import read_cluster
    from streamplace.model import units

    if cluster_file is None:
        mips, bandwidth = mips or "2500 MIPS", bandwidth or "1000 Mbps"
        speed = units.mips(mips)
        words = f"CPU in devices of {units.format_speed(speed)}, traffic in links of {bandwidth}"
        return _Units(speed, units.bandwidth_bps(bandwidth), words)
    for name, value in {"mips": mips, "bandwidth": bandwidth}.items():
        if value is not None:
            raise SettingError(f"--{name} and --cluster exclude each other; drop one")
    cluster = read_cluster(cluster_file)
    device, link = mean_device_and_link(cluster)
    words = (
        f"CPU in devices of {units.format_speed(device)}, the mean of the {cluster.n_devices} in "
        f"{cluster_file}; traffic in {link_in_words(link)}, the mean of theirs"
    )
    return _Units(device, link, words)


def _read(data: "Iterable[Path]", split: str | None) -> "Iterator[StreamGraph | Problem]":
    """Graphs and problems of the files; each must have some."""
    from streamplace.io.datasets import DataSet, no_graph

    for path in data:
        stored, item = DataSet(path, split), None
        for item in stored.graphs_and_problems():
            yield item
        if item is None:
            raise no_graph(path, stored)


def as_document(profile: "Profile") -> dict[str, Any]:
    """Convert a profile to a JSON document."""
    return {
        "graphs": len(profile.operators),
        "splits": profile.splits,
        **{name: asdict(spread) for name, spread in profile.spreads().items()},
        "classes": [
            {**group.attributes, "graphs": group.graphs, "cpu": asdict(group.cpu)}
            for group in profile.classes
        ],
    }


def show(title: str, profile: "Profile", units: _Units) -> None:
    """Print a profile as tables."""
    from streamplace.display.report import Heading, Report

    graphs = Heading(title, f": {counted(len(profile.operators), 'graph')}")
    print_report(Report((graphs, *profile.parts(units.words))))
