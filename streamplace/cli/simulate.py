"""``streamplace simulate``: value and bottleneck of a placement, and advice."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from streamplace.cli._command import verb
from streamplace.cli._options import EXPLANATION, FILE, PICTURES, common, read_problem
from streamplace.cli._output import (
    print_json,
    print_report,
    save_json,
    say,
    say_written,
    with_command,
)
from streamplace.cli._settings import simulated
from streamplace.errors import SettingError
from streamplace.settings.simulate import SimulateSettings

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from streamsim.engine import GivenSettings

    from streamplace.display.report import Report
    from streamplace.evaluate.queues import QueueRun
    from streamplace.model.placement import Placement
    from streamplace.model.problem import Problem
    from streamplace.objectives.explanation import Explanation
    from streamplace.objectives.registry import Objective

TRACE = ".trace.json"


@verb(
    "simulate",
    "Show what limits a placement, and what to move; or compare two (--from).",
    "simulate tasks.json placement.json -o run.svg",
    settings=SimulateSettings,
)
@click.argument("graph", type=FILE)
@click.argument("placement", type=FILE)
@common(
    "File to write: the JSON document (.json), a report (.html), the Gantt chart of one pass "
    "(.png, .svg or .pdf), its trace (.trace.json), or with --engine a plot of the queues (.png, "
    ".svg or .pdf).",
    suffixes=(".json", ".html", *PICTURES),
    keys=EXPLANATION,
)
def command(
    graph: Path, placement: Path, settings: SimulateSettings, as_json: bool, output: Path | None
) -> int:
    """Simulate PLACEMENT of GRAPH: show what it reaches, what limits it, and what to move.

    GRAPH is a graph, or a problem that includes its cluster and constraints. PLACEMENT may also
    place subtasks, as 'place --subtasks' writes them, or be a table that export wrote (.csv).
    Throughput is computed in closed form. Loads are those at the full rate of the sources: a
    resource at 150 % lets two thirds of it pass. One pass is simulated event by event. With
    --constraints, a placement that breaks a rule is refused, and no move that would break one is
    advised. With --engine, the exit code is 1 if the run with queues has not settled or its
    settings decide its result. With --from, the command also lists the operators that move, the
    time that moving takes, and the number of passes after which the move pays off: this compares
    two placements. With --without, only the operators of the lost device move.
    """
    from streamplace.api import simulate
    from streamplace.api.arguments import objective_of
    from streamplace.engines.reading import read_placed

    changed = read_problem(graph, settings)
    rate, objective = _as_placed(placement, changed, settings)
    problem, placed = read_placed(placement, changed.at_rate(rate))
    relocation = settings.move()
    if settings.without is not None:
        from streamplace.objectives.survives import after_loss

        problem, placed, relocation = after_loss(problem, placed, settings.without, relocation)
    explanation = simulate(problem, placed, objective=objective, relocation=relocation)
    queues, figure = None, None
    if settings.engine:
        queues, figure = _queues(problem, placed, settings.queues(), output)
    offered = partial(with_command, graph=graph, options=simulated(settings))
    judge = objective_of(problem, objective)
    run = _Simulated(problem, placed, judge, explanation, queues, figure, offered)
    if output is not None:
        _write(output, run)
    print_json(_document(run)) if as_json else _print(run)
    return 0 if queues is None or queues.valid else 1


def _as_placed(
    placement: Path, problem: "Problem", settings: SimulateSettings
) -> "tuple[float | None, str | Objective]":
    """Rate and objective that are given, or else those for which a placement was made; say which.

    An objective with options replaces the usual one of its quantity; others are named only.
    """
    from streamplace.io.files import spot
    from streamplace.io.placements import read_placed_for
    from streamplace.model.units import digits
    from streamplace.objectives.registry import suggested_by

    placed_for, usual = read_placed_for(placement), suggested_by(problem.graph)
    rate, objective, name = settings.rate, settings.objective, spot(placement)
    if rate is None and not settings.set:
        rate = placed_for.other_rate(problem.graph.source_rate)
        if rate is not None:
            say(f"at {digits(rate, 6)} tuples/s, as {name} was placed (--rate for another)")
    if not objective and placed_for.objective not in ("", usual):
        if placed_for.objective.partition(":")[0] == usual:
            objective = placed_for.objective
            say(f"by {objective}, as {name} was placed (--objective for another)")
        else:
            say(f"{name} was placed for {placed_for.objective} (add --objective to evaluate it)")
    return rate, objective


class _Simulated(NamedTuple):
    """A placement with its explanation, and with --engine the run with queues and its picture.

    ``offered`` adds the command that repeats the simulation to a report.
    """

    problem: "Problem"
    placement: "Placement"
    judge: "Objective"
    explanation: "Explanation"
    queues: "QueueRun | None"
    figure: "Figure | None"
    offered: "Callable[[Report], Report]"


def _queues(
    problem: "Problem", placement: "Placement", engine: "GivenSettings", output: Path | None
) -> "tuple[QueueRun, Figure | None]":
    """Run with queues, with its picture if that is written."""
    from streamplace.evaluate.queues import draw_queues, run_queues, run_queues_traced

    if output is None or output.suffix in (".json", ".html"):
        return run_queues(problem, placement, engine), None
    run, ticks, settings = run_queues_traced(problem, placement, engine)
    return run, draw_queues(problem, ticks, settings)


def _document(run: _Simulated) -> dict[str, Any]:
    """Build the JSON document."""
    document = run.explanation.document()
    if run.queues is None:
        return document
    facts = asdict(run.queues)
    first = {
        name: facts.pop(name) for name in ("latency", "latency_without_backlog", "time_to_steady")
    }
    return document | first | {"engine": facts}


def _print(run: _Simulated) -> None:
    """Print the explanation, and the result of the run with queues if there is one."""
    from streamplace.display.report import Detail, Heading, Report
    from streamplace.display.sheets import operators_sheet

    graph, report = run.problem.graph, run.explanation.report()
    title = Heading(graph.name, f": {report.title}")
    placed = Detail(operators_sheet(graph.operators, run.placement))
    queues = () if run.queues is None else run.queues.report().parts
    print_report(Report((title, *report.parts, placed, *queues)))


def _write(output: Path, run: _Simulated) -> None:
    """Write the format of the file's suffix: a trace, the document, or a picture of the run."""
    if output.name.endswith(TRACE):
        judge = run.judge
        if judge.timeline is None:
            raise SettingError(
                f"{judge.name} has no trace; add --objective makespan for the trace of a pass"
            )
        from streamplace.drawing.gantt import trace

        case = run.problem, run.placement
        save_json(trace(*case, judge.timeline(*case)), output)
        say(f"trace → {output} (open it in https://ui.perfetto.dev)")
    elif output.suffix == ".html":
        _save_report(run, output)
        say(f"report → {output}")
    elif output.suffix == ".json":
        save_json(_document(run), output)
        say_written("document", output)
    else:
        from streamplace.drawing.figures import save

        save(_picture(run), output)
        say(f"plot → {output}")


def _save_report(run: _Simulated, output: Path) -> None:
    """Write the explanation, and the queues if there are any, as a page."""
    from streamplace.display.report import Report
    from streamplace.drawing.graphs import NamedPlacements

    placed = (("placement", run.placement),)
    subject = NamedPlacements(run.problem, placed, run.judge)
    report = run.explanation.report()
    queues = () if run.queues is None else run.queues.report().parts
    run.offered(Report((*report.parts, *queues), report.title, subject)).save(output)


def _picture(run: _Simulated) -> "Figure":
    """Draw the queues over time, or without the engine one pass."""
    judge = run.judge
    if run.figure is not None:
        return run.figure
    if judge.timeline is None:
        raise SettingError(
            f"{judge.name} has no picture of a run; add --engine for queues over time, or "
            "--objective makespan for the Gantt chart of a pass"
        )
    from streamplace.drawing.figures import empty_figure, finish
    from streamplace.drawing.gantt import gantt

    figure, case = empty_figure(), (run.problem, run.placement)
    return finish(figure, gantt(*case, judge.timeline(*case), figure))
