"""``streamplace plan``: the cheapest machines, parallelism and placement that carry a rate."""

from math import inf
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from streamplace.cli import _options
from streamplace.cli._command import GroupedCommand
from streamplace.cli._options import FILE, LAG
from streamplace.cli._output import (
    print_json,
    print_line,
    print_report,
    say_doubts,
    say_trust,
    say_written,
    waiting,
)
from streamplace.cli._plan_options import plan_options, rates_of
from streamplace.cli._what_ifs import WhatIf
from streamplace.errors import SettingError

if TYPE_CHECKING:
    from streamplace.api.plan_request import PlanOptions, PlanRequest
    from streamplace.control.day import MoveTerms
    from streamplace.control.schedule import PlanSchedule
    from streamplace.planning.curve import PlanCurve
    from streamplace.planning.result import PlanResult

NEEDED = {
    "quantile": "trace_file",
    "slot": "is_schedule",
    "move_price": "is_schedule",
    "lag": "is_schedule",
    "restart": "is_schedule",
}
"""Options that have an effect beside another one only."""


@click.command(
    "plan",
    cls=GroupedCommand,
    short_help="Find the cheapest machines that carry a rate.",
    epilog="Example: streamplace plan graph.json --rate 50000 --offers offers.toml -o plan/",
)
@click.argument("graph", type=FILE)
@click.option(
    "--rate",
    help="Total rate of the sources in tuples/s, such as 50000 or '50 k/s', a range such as "
    "20000..80000, or max for the highest rate that the machines carry.  [default: that of GRAPH]",
)
@click.option(
    "--trace",
    "trace_file",
    type=FILE,
    help="CSV file with rates over time: a column 'time' (seconds or dates), and 'rate' or a "
    "column for each source. The plan carries their peaks, and every hour is planned alone, too.",
)
@click.option(
    "--quantile",
    type=_options.Share(click.FloatRange(0, 1, min_open=True)),
    default=1.0,
    show_default=True,
    help="Quantile of the rates of --trace that the plan carries, for each source; 1 is the peak.",
)
@click.option(
    "--schedule",
    "is_schedule",
    is_flag=True,
    help="Find the cheapest sequence of plans for --trace, and a bound for every controller.",
)
@click.option(
    "--policy",
    "policies",
    type=_options.OneOf("policy", lambda: (*_options.control_policies(), "all")),
    multiple=True,
    help="Also replay this policy, which does not know the rates to come, with --schedule. May be "
    "repeated.",
)
@click.option("--slot", default="5 min", show_default=True, help="Time between two decisions.")
@click.option(
    "--move-price",
    default="30 min",
    show_default=True,
    help="Price of a move: as much as running the mean of both plans for this time.",
)
@LAG
@click.option(
    "--restart",
    default="5 s",
    show_default=True,
    help="Time for which a move stops the job, with --schedule.",
)
@plan_options
@_options.seeded(
    "Folder for plan.json, graph.json, cluster.toml, placement.json, plan.svg and report.html, or "
    "the report alone (.html); for a range, its plot (.svg, .png, .pdf) or the report; for a "
    "schedule, a folder.",
    folder=None,
)
def command(
    graph: Path,
    rate: str | None,
    trace_file: Path | None,
    quantile: float,
    is_schedule: bool,
    policies: tuple[str, ...],
    slot: str,
    move_price: str,
    lag: str,
    restart: str,
    what_if: WhatIf,
    options: "PlanOptions",
    as_json: bool,
    output: Path | None,
) -> int:
    """Plan the machines for GRAPH at a rate: which, how many, and what runs on them.

    The plan says how many subtasks each operator has and where they run, what it costs per hour,
    and a proven bound: no plan costs less. A range of rates gives cost against rate. A graph that
    'flink profile' has measured carries the rate even at the lower end of its prediction, with
    --confidence.
    """
    from streamplace.api.arguments import planned_graph
    from streamplace.api.plan_request import PlanRequest
    from streamplace.model.units import seconds as seconds_of
    from streamplace.model.what_if import what_if as changed
    from streamplace.planning.traces import read_trace

    if rate is not None and trace_file is not None:
        raise SettingError("--rate and --trace exclude each other; drop one")
    rates = [] if rate is None else rates_of(rate)
    _check_schedule(trace_file, policies, is_schedule=is_schedule, quantile=quantile)
    _options.refuse_unused(NEEDED)
    _check_output(output, is_curve=len(rates) > 1, is_schedule=is_schedule)
    whole = changed(planned_graph(graph), **what_if.arguments())
    say_trust(whole, trusts=options["trust_profile"])
    request = PlanRequest.of(whole, options)
    trace = None if trace_file is None else read_trace(trace_file)
    answer: PlanResult | PlanCurve | PlanSchedule
    with waiting(f"planning {whole.name}"):
        if is_schedule and trace is not None:
            terms = _terms(move_price, lag, restart)
            answer = request.schedule(trace, seconds_of(slot), terms, policies)
        elif trace is not None:
            answer = request.for_trace(trace, quantile)
        else:
            answer = _answer(request, rates)
    say_doubts(whole)
    _tell(answer, as_json, output)
    return 0


def _check_schedule(
    trace: Path | None, policies: tuple[str, ...], *, is_schedule: bool, quantile: float
) -> None:
    """Refuse options that would have no effect."""
    if is_schedule and trace is None:
        raise SettingError("--schedule is for rates over time; give --trace instead of --rate")
    if policies and not is_schedule:
        raise SettingError("--policy is for a schedule; add --schedule, or drop --policy")
    if is_schedule and quantile < 1:
        raise SettingError("a schedule carries all rates; drop --quantile, or --schedule")


def _terms(price: str, lag: str, outage: str) -> "MoveTerms":
    from streamplace.control.day import MoveTerms
    from streamplace.model.units import seconds

    return MoveTerms(seconds(price), outage=seconds(outage), lag=seconds(lag))


def _answer(request: "PlanRequest", rates: list[float]) -> "PlanResult | PlanCurve":
    """Plan for a range of rates, a single one, or that of the graph without any."""
    if len(rates) > 1:
        return request.frontier(rates)
    if rates == [inf]:
        return request.highest()
    return (request.at_rate(rates[0]) if rates else request).plan()


def _check_output(output: Path | None, *, is_curve: bool, is_schedule: bool) -> None:
    """Raise an error for an output that cannot be written, before any planning."""
    from streamplace.control.schedule import FILES as SCHEDULE_FILES
    from streamplace.drawing.figures import SUFFIXES, check_suffix
    from streamplace.planning.result import FILES

    if output is None:
        return
    page = output.suffix == ".html"
    if page and is_schedule:
        raise SettingError(f"-o {output}: a schedule is written into a folder; name a folder")
    _options.check_output(is_folder=not (is_curve or page))
    if page:
        return
    if is_curve:
        check_suffix(output, ".html")
    elif output.suffix in SUFFIXES:
        raise SettingError(
            f"-o {output}: a plan is written into a folder, with its picture and its report; "
            "name a folder, or a report (.html)"
        )
    else:
        _options.spare_inputs(*(output / name for name in {*FILES, *SCHEDULE_FILES}))


def _tell(
    answer: "PlanResult | PlanCurve | PlanSchedule", as_json: bool, output: Path | None
) -> None:
    """Write and print a plan or a curve."""
    if output is not None:
        answer.write(output)
    if as_json:
        print_json(answer.to_json())
    else:
        print_report(answer.report())
        _say_next(answer, output)
    if output is not None:
        say_written(_written(answer, output), output)


def _say_next(answer: "PlanResult | PlanCurve | PlanSchedule", output: Path | None) -> None:
    """Print what can be done with a plan."""
    from streamplace.planning.result import PlanResult

    if not isinstance(answer, PlanResult):
        return
    if output is None or output.suffix == ".html":
        print_line("Next: -o plan writes the files for simulate and export.")
    else:
        files = f"{quote(str(output / 'placement.json'))} --cluster {quote(str(output))}"
        print_line(f"Next: streamplace export {files}/cluster.toml --to flink -o flink")


def _written(answer: "PlanResult | PlanCurve | PlanSchedule", output: Path) -> str:
    """Describe what was written: a report, a plot, or the files of a folder."""
    from streamplace.control.schedule import FILES as SCHEDULE_FILES
    from streamplace.planning.curve import PlanCurve
    from streamplace.planning.result import FILES, PlanResult

    if output.suffix == ".html":
        return "report"
    if isinstance(answer, PlanCurve):
        return "plot"
    return ", ".join(FILES if isinstance(answer, PlanResult) else (*SCHEDULE_FILES, "plans"))
