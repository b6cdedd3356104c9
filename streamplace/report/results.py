"""Comparisons and plans in the document."""

from collections.abc import Iterable
from math import isfinite

import numpy as np

from streamplace.evaluate.comparison import Comparison, GraphResults, as_document
from streamplace.evaluate.results import ObjectiveResults, ResultColumns
from streamplace.io.fields import plain
from streamplace.model.arrays import Floats
from streamplace.model.expansion import expand
from streamplace.model.message_text import printable
from streamplace.model.problem import Problem
from streamplace.objectives.registry import DEFAULT, OBJECTIVES
from streamplace.planning.offers import offer_of
from streamplace.planning.result import PlanCurve, PlanResult, contents_of
from streamplace.report.document import (
    ComparedPart,
    ComparisonPart,
    CurvePart,
    MachinesPart,
    PlanPart,
    ProblemPart,
    ReportDocument,
    column,
    finite,
)
from streamplace.report.limits import MAX_GAP, MAX_OPERATORS
from streamplace.report.problems import (
    Shown,
    errors_part,
    objective_part,
    planning_title,
    problem_part,
)


def add_results(document: ReportDocument, subject: object) -> None:
    """Add a comparison, a plan, or a curve of plans."""
    if isinstance(subject, Comparison):
        document["comparison"], document["problems"] = comparison_part(subject)
        document["notes"].extend(map(printable, subject.notes))
        if subject.graphs.left_out:
            document["notes"].append(
                f"The values of {subject.graphs.left_out} further graphs are in the tables alone."
            )
    elif isinstance(subject, PlanResult):
        document["title"] = planning_title(subject.graph, subject.rate)
        document["plan"], document["problems"] = plan_part(subject)
    elif isinstance(subject, PlanCurve):
        values = subject.values
        document["title"] = planning_title(subject.results[0].graph, values[0], values[-1])
        document["plan"], document["problems"] = plan_part(subject.results[-1], subject)
    else:
        raise TypeError(f"a report cannot be about {type(subject).__name__}")


def comparison_part(comparison: Comparison) -> tuple[ComparisonPart, list[ProblemPart]]:
    """Describe a comparison, and the graphs of it that a page shows."""
    graphs = comparison.graphs
    judges = {result.judge.name: result.judge for result in comparison.results}
    shown = {
        row: problem
        for row, problem in sorted(graphs.problems.items())
        if problem.n_operators <= MAX_OPERATORS
    }
    problems = []
    for row, problem in shown.items():
        records = graphs.placed[row]
        placed = [
            Shown(record.label, record.placement(problem), record.bound) for record in records
        ]
        problems.append(problem_part(problem, placed, judges[records[0].objective]))
    number = {row: i for i, row in enumerate(shown)}
    part = ComparisonPart(
        graphs=graphs.names,
        problem=[number.get(row) for row in range(len(graphs.names))],
        reference=comparison.reference,
        aliases=dict(comparison.aliases),
        results=[part for result in comparison.results for part in _compared(result, graphs)],
        failures=dict(comparison.failures),
    )
    return part, problems


def _compared(result: ObjectiveResults, graphs: GraphResults) -> Iterable[ComparedPart]:
    """Results of one objective, for every rate."""
    table = result.columns
    document = as_document([result])["rates"]
    for (rate, by_placer), facts in zip(sorted(table.items()), document.values(), strict=True):
        rows = facts["placers"]
        values, times = {}, {}
        optimum: list[float | None] = [None] * len(graphs.names)
        for placer, columns in by_placer.items():
            values[placer] = _by_graph(columns, columns.value, graphs)
            times[placer] = _by_graph(columns, columns.milliseconds.astype(np.float64), graphs)
            optima = _by_graph(columns, result.optima.at(columns.problem), graphs)
            optimum = [a if b is None else b for a, b in zip(optimum, optima, strict=True)]
        yield ComparedPart(
            objective=objective_part(result.judge),
            rate=rate,
            placers=list(by_placer),
            rows=[{"placer": placer, **rows[placer]} for placer in by_placer],
            values=list(values.values()),
            milliseconds=[[value or 0 for value in column] for column in times.values()],
            optimum=optimum,
        )


def _by_graph(columns: ResultColumns, values: Floats, graphs: GraphResults) -> list[float | None]:
    """Values of results by graph, None for missing ones."""
    by_graph: list[float | None] = [None] * len(graphs.names)
    for problem, value in zip(columns.problem.tolist(), values.tolist(), strict=True):
        row = graphs.row.get(problem)
        if row is not None and isfinite(value):
            by_graph[row] = plain(float(f"{value:.12g}"))
    return by_graph


def plan_part(
    plan: PlanResult, curve: PlanCurve | None = None
) -> tuple[PlanPart, list[ProblemPart]]:
    """Describe a plan with its problem, and the curve to which it belongs."""
    judge = OBJECTIVES[DEFAULT]
    problem, contents = planned_problem(plan), contents_of(plan)
    part = PlanPart(
        rate=plain(plan.rate),
        cost=plain(plan.cost),
        bound=plain(float(plan.bound)),
        gap=min(plan.gap, MAX_GAP),
        cheapest=plan.is_cheapest,
        priced=plan.priced,
        machines=[
            MachinesPart(
                name=name, number=number, price=plan.prices.get(name), contents=contents[name]
            )
            for name, number in plan.machines.items()
        ],
        free=dict(plan.free),
        carries=finite(plan.carries),
        curve=[
            CurvePart(
                at=plain(value),
                cost=plain(result.cost),
                bound=plain(float(result.bound)),
                gap=min(result.gap, MAX_GAP),
                machines=dict(result.machines),
            )
            for value, result in (zip(curve.values, curve.results, strict=True) if curve else ())
        ],
    )
    if problem.n_operators > MAX_OPERATORS:
        return part, []
    described = problem_part(problem, [Shown("plan", plan.placement)], judge)
    for placement in described["placements"]:
        placement.pop("one_pass", None)  # as a plan is for a rate
    if plan.errors is not None:
        described["errors"] = errors_part(plan.errors)
    if plan.priced and "devices" in described:
        offers = [offer_of(machine, plan.alone) for machine in plan.cluster.devices.name]
        described["devices"]["price"] = column([plan.prices.get(offer, 0.0) for offer in offers])
    return part, [described]


def planned_problem(plan: PlanResult) -> Problem:
    """Problem of the subtasks of a plan on its machines."""
    # The operators may be no problem of these machines: one may need more memory than any has.
    is_split = plan.placement.operators != plan.graph.operators.name
    graph = expand(plan.graph).graph if is_split else plan.graph
    return Problem(graph, plan.cluster, known=plan.placement)
