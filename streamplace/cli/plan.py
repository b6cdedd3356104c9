"""``streamplace plan``: the cheapest machines, parallelism and placement that carry a rate."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from streamplace.cli import _options
from streamplace.cli._command import verb
from streamplace.cli._options import FILE
from streamplace.cli._output import (
    print_json,
    print_line,
    print_report,
    say_doubts,
    say_trust,
    say_written,
    waiting,
)
from streamplace.errors import SettingError
from streamplace.settings.plan import PlanSettings

if TYPE_CHECKING:
    from streamplace.control.schedule import PlanSchedule
    from streamplace.planning.result import PlanCurve, PlanResult


@verb(
    "plan",
    "Find the cheapest machines that carry a rate.",
    "plan graph.json --rate 50000 --offers offers.toml -o plan/",
    settings=PlanSettings,
)
@click.argument("graph", type=FILE)
@_options.common(
    "Folder for plan.json, graph.json, cluster.toml, placement.json, plan.svg and report.html, or "
    "the report alone (.html); for a range, its plot (.svg, .png, .pdf) or the report; for a "
    "schedule, a folder.",
    folder=None,
)
def command(graph: Path, settings: PlanSettings, as_json: bool, output: Path | None) -> int:
    """Plan the machines for GRAPH at a rate: which, how many, and what runs on them.

    The plan says how many subtasks each operator has and where they run, what it costs per hour,
    and a proven bound: no plan costs less. A range of rates gives cost against rate. A graph that
    'flink profile' has measured carries the rate even at the lower end of its prediction.
    """
    from streamplace.api.arguments import planned_graph
    from streamplace.api.planning import PlanRequest
    from streamplace.model.what_if import changed_graph

    rates = settings.rate or ()
    _check_output(output, is_curve=len(rates) > 1, is_schedule=settings.schedule)
    whole = changed_graph(planned_graph(graph), **settings.changes())
    say_trust(whole, trusts=settings.trust_profile)
    request = PlanRequest.of(whole, settings)
    answer: PlanResult | PlanCurve | PlanSchedule
    each = ", with the budget for each plan" if settings.trace or len(rates) > 1 else ""
    with waiting(f"planning {whole.name}{each}"):
        if settings.schedule:
            answer = request.schedule(settings)
        elif len(rates) > 1:
            answer = request.frontier(rates)
        else:
            answer = request.single(settings)
    say_doubts(whole)
    written = "" if output is None else answer.write(output)
    if as_json:
        print_json(answer.to_json())
    else:
        print_report(answer.report())
        _say_next(answer, output)
    if output is not None:
        say_written(written, output)
    return 0


def _check_output(output: Path | None, *, is_curve: bool, is_schedule: bool) -> None:
    """Raise an error for an output that cannot be written, before any planning."""
    from streamplace.control.schedule import FILES as SCHEDULE_FILES
    from streamplace.io.files import check_suffix
    from streamplace.planning.result import FILES

    if output is None:
        return
    page = output.suffix == ".html"
    if page and is_schedule:
        raise SettingError(f"-o {output}: a schedule is written into a folder; name a folder")
    _options.check_output(output, is_folder=not (is_curve or page))
    if page:
        return
    if is_curve:
        check_suffix(output, "the figure", *_options.PICTURES, ".html")
    else:
        files = [output / name for name in {*FILES, *SCHEDULE_FILES}]
        files += [path for name in FILES for path in output.glob(f"plan-*/{name}")]
        _options.spare_inputs(*files)
        _options.spare_others(*files)


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
