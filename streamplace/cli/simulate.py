"""``streamplace simulate``: what a placement sustains, what limits it, and what to move."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli._options import (
    FILE,
    ClusterChoice,
    cluster,
    common,
    objective,
    present,
    read_problem,
    relocation_of,
)
from streamplace.cli._output import (
    console,
    print_about,
    print_json,
    print_report,
    save_json,
    say,
)
from streamplace.errors import SettingError
from streamplace.objectives.report import percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from streamsim.engine import Settings

    from streamplace.evaluate.queues import QueueRun
    from streamplace.model.placement import Placement
    from streamplace.model.problem import Problem
    from streamplace.objectives.registry import Objective

TRACE = ".trace.json"


@click.command(
    "simulate",
    epilog="Example: streamplace simulate tasks.json placement.json -o run.svg",
)
@click.argument("graph", type=FILE)
@click.argument("placement", type=FILE)
@objective
@present
@cluster
@click.option("--rate", help="Total rate of the sources, instead of the graph's own.")
@click.option(
    "--preset",
    help="Simulate a pass as the papers do: giph, placeto or doppler (short for --objective "
    "makespan:preset=NAME).",
)
@click.option("--engine", is_flag=True, help="Run the queue simulation too: latency, transients.")
@click.option("--duration", type=float, default=30.0, show_default=True, help="Seconds to run.")
@click.option("--dt", type=float, default=0.1, show_default=True, help="Seconds per tick.")
@click.option(
    "--capacity", type=float, default=2048.0, show_default=True, help="Tuples a stream may hold."
)
@click.option(
    "--policy", default="dynamic", show_default=True,
    help="How a device shares its CPU: dynamic, uniform or weighted.",
)  # fmt: skip
@common(
    "Write the JSON document to this .json file; of one pass, the Gantt chart to this .png, .svg "
    "or .pdf, or the trace to this .trace.json; with --engine, the plot of the queues."
)
def command(
    graph: Path,
    placement: Path,
    cluster: ClusterChoice,
    rate: str | None,
    engine: bool,
    duration: float,
    dt: float,
    capacity: float,
    policy: str,
    objective: str,
    preset: str | None,
    present: Path | None,
    startup: str | None,
    as_json: bool,
    seed: int,
    output: Path | None,
) -> None:
    """Simulate PLACEMENT of GRAPH: what it reaches, what limits it, and what to move.

    GRAPH may be a problem, which brings its cluster and constraints along; PLACEMENT may be one of
    its subtasks, as 'place --subtasks' writes it. The steady state is
    computed in closed form; loads are at the sources' full rate, so a resource at 150 % lets
    through two thirds of it. One pass is simulated event by event. With --from, it also says what
    moves from the placement that runs now, what that takes, and after how many passes it pays off.
    """
    from streamplace.api import chosen_objective, simulate
    from streamplace.cli._console import titled
    from streamplace.io.placements import read_placed

    problem, placed = read_placed(placement, read_problem(graph, cluster, rate))
    asked = _asked(objective, preset)
    relocation = relocation_of(present, startup)
    told, run = simulate(problem, placed, objective=asked, relocation=relocation), None
    settings = engine_settings(duration, dt, capacity, policy) if engine else None
    if settings is not None:
        from streamplace.evaluate.queues import run_queues

        run = run_queues(problem, placed, settings)
    document = told.document() | ({} if run is None else engine_document(run))
    if output is not None:
        _write(output, document, problem, placed, chosen_objective(problem, asked), settings)
    if as_json:
        print_json(document)
        return
    report = told.report()
    console().print(titled(problem.graph.name, f": {report.title}"))
    print_report(report)
    print_about(problem.graph)
    if run is not None:
        show_engine(run)


def _asked(objective: str, preset: str | None) -> str:
    """Objective by name, as the preset has it."""
    if preset is None:
        return objective
    if objective.partition(":")[0] not in ("", "makespan"):
        raise SettingError(
            f"--preset says how a pass is simulated, and --objective {objective} asks for no pass; "
            "drop one of them"
        )
    return f"{objective or 'makespan'}:preset={preset}"


def engine_settings(duration: float, dt: float, capacity: float, policy: str) -> "Settings":
    """Settings of the engine; what they refuse becomes an error of ours."""
    from streamsim.engine import Settings

    try:
        return Settings(duration=duration, dt=dt, capacity=capacity, policy=policy)  # type: ignore[arg-type]
    except ValueError as error:
        raise SettingError(str(error)) from None


def _write(
    output: Path,
    document: dict[str, Any],
    problem: "Problem",
    placed: "Placement",
    judge: "Objective",
    settings: "Settings | None",
) -> None:
    """Write what the name of the file asks for: a trace, the document, or a picture of the run."""
    if output.name.endswith(TRACE):
        if judge.trace is None:
            raise SettingError(
                f"{judge.name} has no trace, which is of one pass; add --objective makespan"
            )
        save_json(judge.trace(problem, placed), output)
        say(f"trace → {output} (open it in https://ui.perfetto.dev)")
    elif output.suffix == ".json":
        save_json(document, output)
    else:
        from streamplace.drawing.figures import save

        save(_picture(problem, placed, judge, settings), output)
        say(f"plot → {output}")


def _picture(
    problem: "Problem", placed: "Placement", judge: "Objective", settings: "Settings | None"
) -> "Figure":
    """Queues over time with the engine, else the objective's chart of the run."""
    if settings is not None:
        from streamplace.evaluate.queues import draw_queues

        return draw_queues(problem, placed, settings)
    if judge.chart is None:
        raise SettingError(
            f"{judge.name} has no picture of a run; add --engine for queues over time, or "
            "--objective makespan for the Gantt chart of a pass"
        )
    from streamplace.drawing.figures import empty_figure

    figure = empty_figure()
    judge.chart(problem, placed, figure)
    return figure


def engine_document(run: "QueueRun") -> dict[str, Any]:
    """What the engine adds to the JSON document."""
    facts = asdict(run)
    return {
        "latency": facts.pop("latency"),
        "latency_without_backlog": facts.pop("latency_without_backlog"),
        "time_to_steady": facts.pop("time_to_steady"),
        "engine": facts,
    }


def show_engine(run: "QueueRun") -> None:
    """Print what the queue simulation adds."""
    out = console()
    out.print()
    out.print(
        f"With queues: {percent(run.relative_throughput)} of the offered tuples, "
        f"{run.throughput:g} source tuples/s at the sinks"
    )
    for name, wait in (("latency", run.latency), ("without backlog", run.latency_without_backlog)):
        numbers = asdict(wait).items()
        told = ", ".join(f"{key} {value:.3g} s" for key, value in numbers if value is not None)
        out.print(f"  {name}: {told or 'nothing arrived'}")
    steady = run.time_to_steady
    out.print(f"  steady after: {'never' if steady is None else f'{steady:.1f} s'}")
    longest = sorted(run.queues.items(), key=lambda item: -item[1])[:4]
    out.print(f"  longest queues: {', '.join(f'{name} {q:.0f}' for name, q in longest)}")
    if run.backlog >= 1:
        out.print(f"  waiting at the sources in the end: {run.backlog:.0f} tuples")
    for warning in run.warnings:
        say(f"warning: {warning}")
