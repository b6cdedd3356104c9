"""``streamplace flink advise``: the cost of a running job, and the cheapest machines for a rate."""

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli import _options
from streamplace.cli._command import GroupedCommand
from streamplace.cli._flink import (
    BANDWIDTH,
    JOB,
    MIPS,
    NIC,
    PATIENCE,
    asks,
    given_program,
    may_submit,
)
from streamplace.cli._options import CONFIDENCE, FILE, OFFERS, TRUST
from streamplace.cli._output import print_json, print_line, print_report, say, say_written, waiting
from streamplace.errors import SettingError

if TYPE_CHECKING:
    from streamplace.engines.flink.advise.advice import Advice
    from streamplace.engines.flink.rest.client import Rest


@click.command(
    "advise",
    cls=GroupedCommand,
    short_help="Plan the cheapest machines for a running job.",
    epilog="Example: streamplace flink advise --rest http://localhost:8081 --rate 2x "
    "--offers offers.toml",
)
@may_submit
@asks
@JOB
@click.option(
    "--rate",
    required=True,
    help="Total rate of the sources in tuples/s, such as 50000 or '50 k/s', or a multiple of what "
    "they are offered now, such as 2x.",
)
@OFFERS
@click.option(
    "--cluster",
    "cluster_file",
    type=FILE,
    help="TOML file of the machines that there are, of which the plan uses as few as possible.  "
    "[default without --offers: the TaskManagers]",
)
@click.option(
    "--seconds",
    type=click.FloatRange(2, 3600),
    default=10.0,
    show_default=True,
    help="Length of each of the two windows in which the job is watched.",
)
@PATIENCE
@TRUST
@CONFIDENCE
@click.option(
    "--headroom",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.03,
    show_default=True,
    help="With --offers, share h of CPU and network cards that stays free: the plan is for "
    "1 / (1 − h) times the rate.",
)
@click.option(
    "--budget",
    "search_seconds",
    type=_options.TIME,
    default=10.0,
    show_default=True,
    help="Time for the plan in seconds, or with a unit, as in '1 min'.",
)
@MIPS
@BANDWIDTH
@NIC
@_options.seeded(
    "Folder for plan.json, graph.json, cluster.toml, placement.json, plan.svg and report.html, or "
    "the report alone (.html).",
    folder=None,
)
def advise_(
    rest: "Rest",
    job: str | None,
    rate: str,
    offers_file: Path | None,
    cluster_file: Path | None,
    search_seconds: float,
    nic: tuple[str, ...],
    as_json: bool,
    output: Path | None,
    **options: Any,
) -> int:
    """Read a running job, and plan the cheapest machines for a rate. Nothing is changed.

    The job needs no placement and no restart, and its scheduler may be the default or the adaptive
    one. The command prints what the TaskManagers cost by the offers, the rate and the CPU per tuple
    of the job, the cheapest plan that carries the rate with --confidence, with a proven bound, what
    is not known of it and which measurement would tell most, what changing would gain and cost, and
    the commands that would do it. It waits until the job is steady, as 'move' does, and fails while
    its rate changes or garbage collection dominates.

    The plan keeps the parallelism of operators that have it from the program. To find them, the
    program's main method is run twice, without submitting anything. Give JAR, options and ARGUMENTS
    as the job was submitted with; leave them out if streamplace has submitted or moved the job on
    this machine. Without a program, the plan may change the parallelism of all operators.
    """
    from streamplace.engines.flink.advise.advise import AdviceSettings
    from streamplace.engines.flink.engine import FlinkEngine
    from streamplace.engines.flink.measure.cards import parse_cards
    from streamplace.engines.flink.measure.sources import check_rate
    from streamplace.io.clusters import read_cluster
    from streamplace.placers.registry import Budget
    from streamplace.planning.offers import read_offers
    from streamplace.planning.result import FILES

    if offers_file is not None and cluster_file is not None:
        raise SettingError("--offers and --cluster exclude each other; give one of them")
    _options.refuse_unused({"headroom": "offers_file"})
    check_rate(rate)
    is_folder = output is not None and output.suffix != ".html"
    if output is not None and is_folder:
        _options.spare_inputs(*(output / name for name in FILES))
    _options.check_output(is_folder=is_folder)
    offers = None if offers_file is None else read_offers(offers_file)
    cluster = None if cluster_file is None else read_cluster(cluster_file)
    own = {one.name: options.pop(one.name) for one in fields(AdviceSettings) if one.name in options}
    settings = AdviceSettings(
        **own,
        budget=Budget(search_seconds),
        program=given_program(**options),
        cards=parse_cards(nic),
    )
    if is_folder:
        settings = replace(settings, folder=str(output))
    engine = FlinkEngine(rest, mips=settings.mips, bandwidth=settings.bandwidth, tell=say)
    with waiting("watching the job until it is steady, then planning"):
        advice = engine.advise(engine.job(job), rate, offers or cluster, settings)
    if output is not None:
        advice.plan.write(output)
    _show(advice, as_json)
    if output is not None:
        say_written("report" if output.suffix == ".html" else ", ".join(FILES), output)
    return 0


def _show(advice: "Advice", as_json: bool) -> None:
    """Print advice."""
    from streamplace.engines.flink.advise.advice import summary_of_advice

    if advice.warning is not None:
        say(f"warning: {advice.warning}")
    if as_json:
        print_json(advice.to_json())
        return
    print_report(summary_of_advice(advice))
    for command in advice.commands:
        print_line(f"  {command}")
    for note in advice.notes:
        say(f"note: {note}")
