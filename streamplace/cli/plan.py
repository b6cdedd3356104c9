"""``streamplace plan``: the cheapest machines, parallelism and placement that carry a rate."""

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamplace.cli import _options
from streamplace.cli._options import FILE, OFFERS
from streamplace.cli._output import print_json, print_report, waiting
from streamplace.errors import SettingError

if TYPE_CHECKING:
    from streamplace.planning.headroom import Headroom
    from streamplace.planning.result import PlanResult

POINTS = 9
"""Rates of a frontier."""


@click.command(
    "plan",
    epilog="Example: streamplace plan graph.json --rate 50000 --offers offers.toml -o plan/",
)
@click.argument("graph", type=FILE)
@click.option(
    "--rate",
    required=True,
    help="Total rate of the sources in tuples/s, such as 50000 or '50 k/s', or a range such as "
    "20000..80000.",
)
@OFFERS
@click.option(
    "--cluster",
    "cluster_file",
    type=FILE,
    help="TOML file of the machines that there are. The plan uses as few of them as possible.",
)
@click.option(
    "--headroom",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="Share of every resource that stays free.",
)
@click.option("--restart", default="0 s", help="Time that a restart stops the job, as in '30 s'.")
@click.option("--catch-up", help="Time after which what waited during a restart is worked off.")
@click.option("--latency", help="Time that a tuple may wait for cores on its way, in the mean.")
@click.option(
    "--variability",
    type=click.FloatRange(0),
    default=1.0,
    show_default=True,
    help="Mean squared coefficient of variation of arrivals and of service, for --latency.",
)
@click.option(
    "--robust",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Number of operators on each machine that may cost more than the graph says.",
)
@click.option(
    "--error",
    type=click.FloatRange(0),
    default=0.15,
    show_default=True,
    help="Share by which they may cost more.",
)
@click.option(
    "--evaluations",
    type=click.IntRange(1),
    help="Maximum number of moves to try. Results then do not depend on the machine.",
)
@click.option(
    "--budget",
    "seconds",
    type=click.FloatRange(0, 1e6, min_open=True),
    help="Time for each rate in seconds.  [default: 10; no limit where --evaluations is given]",
)
@_options.seeded("Folder for plan.json, graph.json, cluster.toml and placement.json.")
def command(
    graph: Path,
    rate: str,
    offers_file: Path | None,
    cluster_file: Path | None,
    headroom: float,
    restart: str,
    catch_up: str | None,
    latency: str | None,
    variability: float,
    robust: int,
    error: float,
    seconds: float | None,
    evaluations: int | None,
    as_json: bool,
    seed: int,
    output: Path | None,
) -> int:
    """Plan the machines for GRAPH at a rate: which, how many, and what runs on them.

    The plan says how many subtasks each operator has and where they run, what it costs per hour,
    and a proven bound: no plan costs less.
    """
    from streamplace.api import plan
    from streamplace.io.clusters import read_cluster
    from streamplace.io.graphs import read_graph
    from streamplace.placers.registry import Budget
    from streamplace.planning.offers import read_offers
    from streamplace.planning.result import FILES, frontier_report

    budget = None if seconds is None and evaluations is None else Budget(seconds, evaluations)
    if output is not None:
        _options.spare_inputs(*(output / name for name in FILES))
    spare = _headroom(headroom, restart, catch_up, latency, variability)
    rates = rates_of(rate)
    if output is not None and len(rates) > 1:
        raise SettingError("-o is for one rate; drop it, or name one rate")
    stream_graph = read_graph(graph)
    offers = None if offers_file is None else read_offers(offers_file)
    cluster = None if cluster_file is None else read_cluster(cluster_file)
    results: list[PlanResult] = []
    for value in rates:
        with waiting(f"planning {stream_graph.name} at {value:g} tuples/s"):
            results.append(
                plan(
                    stream_graph,
                    rate=value,
                    offers=offers,
                    cluster=cluster,
                    headroom=spare,
                    robust=robust,
                    error=error,
                    seed=seed,
                    budget=budget,
                )
            )
    if output is not None:
        results[0].write(output)
    if as_json:
        documents = [result.to_json() for result in results]
        print_json(documents if len(rates) > 1 else documents[0])
    else:
        print_report(frontier_report(results) if len(rates) > 1 else results[0].report())
    return 0


def _headroom(
    flat: float, restart: str, catch_up: str | None, latency: str | None, variability: float
) -> "Headroom":
    from streamplace.model.units import seconds
    from streamplace.planning.headroom import Headroom

    if catch_up is None and seconds(restart):
        raise SettingError("--restart needs --catch-up; add the time to work off what waited")
    return Headroom(
        seconds(restart),
        inf if catch_up is None else seconds(catch_up),
        inf if latency is None else seconds(latency),
        variability,
        flat,
    )


def rates_of(text: str) -> list[float]:
    """Rates that a text names: one, or nine of a range.

    >>> rates_of("50 k/s"), len(rates_of("20000..80000"))
    ([50000.0], 9)
    """
    from streamplace.model.units import tuple_rate

    first, dots, last = text.partition("..")
    low = tuple_rate(first)
    high = tuple_rate(last) if dots else low
    if not 0 < low <= high or (dots and low == high):
        raise SettingError(
            f"--rate is {text}; it must be above 0, and a range must lead from a lower rate to a "
            "higher one"
        )
    if not dots:
        return [low]
    return [low + (high - low) * i / (POINTS - 1) for i in range(POINTS)]
