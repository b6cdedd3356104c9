"""Front of two objectives: placements of which none is better by both.

If few placements are legal, all are evaluated, and the front is complete. Otherwise the first
objective is optimised under limits of the second (ε-constraint method); each limit is in the middle
of the largest gap so far. The searches share the budget.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.display.report import Heading, Report, Sheet, duration
from streamplace.display.sheets import with_rest
from streamplace.errors import PlacementError, SettingError
from streamplace.io.files import check_suffix, json_text, write_text
from streamplace.io.placements import order_facts
from streamplace.io.suffixes import PICTURES
from streamplace.model.arrays import ROUNDING, Floats, Ints
from streamplace.model.message_text import counted
from streamplace.model.mixins import Pictured, data_frame
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.conditions import BEYOND, composed_objective, subject_to
from streamplace.objectives.registry import Condition, Objective
from streamplace.placers.exact.enumeration import is_enumerable, judge_all
from streamplace.placers.exact.units import units_of
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Budget, Placer
from streamplace.placers.request import PlacementRequest
from streamplace.placers.result import Result, proven
from streamplace.placers.stopwatch import now

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

MAX_LIMITS = 8
"""Limits of the second objective between both ends."""
MAX_SEARCHES = MAX_LIMITS + 4
"""Searches that share the budget equally: two for each end, and one for every limit."""
ALL = "all placements"
SIGNS = {"max": ">=", "min": "<="}


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """A placement with its values by both objectives."""

    placement: Placement
    value: float
    against: float
    found_by: str  # search that found it: objective and limits
    proven: bool  # whether no placement is better by both objectives


@dataclass(frozen=True)
class Front(Pictured):
    """Placements of which none is better by both objectives, the best by the first one first.

    Attributes
    ----------
    is_complete
        Whether the points have all pairs of values that no placement dominates.
    """

    objective: Objective
    against: Objective
    points: tuple[FrontPoint, ...]
    is_complete: bool
    placer: str
    seed: int
    seconds: float
    problem: Problem = field(repr=False, compare=False)

    def report(self) -> Report:
        """Values of all points, with their searches and proofs."""
        names = self.objective.quantity, self.against.quantity
        rows = tuple(
            (
                self.objective.format(point.value),
                self.against.format(point.against),
                "proven" if point.proven else "found",
                point.found_by,
            )
            for point in self.points
        )
        sheet = with_rest(Sheet((*names, "", "by"), rows, names=1))
        heading = f" by {self.placer}: {self.verdict}, search time {duration(self.seconds)}"
        return Report((sheet, Heading(self.problem.graph.name, heading)))

    def page(self) -> Report:
        """Report for a page, on which the placements are drawn."""
        from streamplace.drawing.graphs import NamedPlacements

        report, judges = self.report(), (self.objective, self.against)
        placed = tuple(
            (", ".join(map(Objective.format, judges, (p.value, p.against))), p.placement)
            for p in self.points
        )
        return Report(report.parts, self.verdict, NamedPlacements(self.problem, placed, judges[0]))

    @property
    def verdict(self) -> str:
        """Number of the points, and how many are proven."""
        number = sum(point.proven for point in self.points)
        rest = "all there are" if self.is_complete else f"{number} proven; there may be others"
        return f"{counted(len(self.points), 'placement')} on the front, {rest}"

    def to_json(self) -> dict[str, Any]:
        """Return the document that ``streamplace place --against --json`` prints."""
        return {
            "graph": self.problem.graph.name,
            "rate": self.problem.graph.source_rate,
            "objective": self.objective.name,
            "against": self.against.name,
            "points": [
                {
                    "value": point.value,
                    "against": point.against,
                    "proven": point.proven,
                    "found_by": point.found_by,
                    "assignment": point.placement.as_dict(),
                    **order_facts(point.placement),
                }
                for point in self.points
            ],
            "complete": self.is_complete,
            "verdict": self.verdict,
            "placer": self.placer,
            "seed": self.seed,
            "seconds": self.seconds,
        }

    def to_pandas(self) -> "DataFrame":
        """Table of the points, one row each."""
        names = ("value", "against", "proven", "found_by")
        return data_frame({name: [getattr(p, name) for p in self.points] for name in names})

    def figure(self) -> "Figure":
        """Return a plot of the points; full dots are proven."""
        from streamplace.drawing.curves import dotted_steps
        from streamplace.drawing.figures import legend_text

        points = [(point.against, point.value, point.proven) for point in self.points]
        names = self.against.quantity, self.objective.quantity
        title = f"{names[1]} against {names[0]}\n{legend_text(self.problem.graph.name)}"
        # Best values within limits of the second objective, the loosest limit last.
        ordered = sorted(points, reverse=self.against.sense == "max")
        figure = dotted_steps(ordered, *names, title)
        (axes,) = figure.axes
        axes.locator_params("x", nbins=5)
        axes.xaxis.set_major_formatter(lambda value, _: self.against.format(value))
        axes.yaxis.set_major_formatter(lambda value, _: self.objective.format(value))
        return figure

    def write(self, path: str | PathLike[str]) -> str:
        """Write a plot (.svg, .png or .pdf), a report (.html) or the document (.json)."""
        from streamplace.drawing.figures import save

        target = Path(path)
        check_suffix(target, "a front", *PICTURES, ".html", ".json")
        if target.suffix == ".html":
            self.page().save(target)
            return "report"
        if target.suffix == ".json":
            write_text(target, json_text(self.to_json()))
            return "placements"
        save(self.figure(), target)
        return "plot"

    def __repr__(self) -> str:
        return f"<Front of {self.objective.name} and {self.against.name}: {self.verdict}>"


def answer(request: PlacementRequest, problem: Problem, against: str | Objective) -> Front:
    """Front of the objective of a request and another one."""
    prepared, placer = request.prepared(problem), request.algorithm
    judge, other = request.judge(prepared), composed_objective(against, problem=prepared)
    budget = placer.budget or request.budget
    return front_of(prepared, judge, other, placer, seed=request.seed, budget=budget)


def front_of(
    problem: Problem,
    objective: Objective,
    against: Objective,
    placer: Placer,
    *,
    seed: int,
    budget: Budget,
) -> Front:
    """Search for the front of two objectives; conditions of the first one hold for all points."""
    plain = objective.plain
    if plain.quantity == against.quantity and plain.name == against.name:
        raise SettingError(f"a front needs two objectives; {against.name} is given twice")
    against.check(problem)
    placer.check(problem, objective)
    began, meter = now(), Meter(budget)
    points, is_complete = None, True
    if placer.name == "auto" and not against.ordered and is_enumerable(problem, objective, budget):
        points = _of_all(problem, objective, against, Meter(budget))
    if points is None:
        part = meter.some(1 / MAX_SEARCHES)
        points, is_complete = _searched(problem, objective, against, placer, seed, part)
    seconds, name = now() - began, placer.name
    return Front(plain, against, tuple(points), is_complete, name, seed, seconds, problem)


def _of_all(
    problem: Problem, objective: Objective, against: Objective, meter: Meter
) -> list[FrontPoint] | None:
    """Front of all legal placements; None if the budget ends, or none meets the conditions."""
    unit = problem.unit
    best = np.empty((0, problem.n_operators), np.int32), np.empty(0), np.empty(0)

    def keep(batch: Ints) -> None:
        nonlocal best
        places = batch[:, unit]
        values = objective.values(problem, places)
        good = np.abs(values) < BEYOND
        merged = np.concatenate([best[0], places[good]])
        values = np.concatenate([best[1], values[good]])
        others = np.concatenate([best[2], against.values(problem, places[good])])
        rows = undominated(objective, against, values, others)
        best = merged[rows], values[rows], others[rows]
        meter.spend(len(batch))

    if not judge_all(units_of(problem), meter, keep) or not len(best[0]):
        return None
    return [
        FrontPoint(problem.placement(place), float(value), float(other), ALL, proven=True)
        for place, value, other in zip(*best, strict=True)
    ]


def undominated(objective: Objective, against: Objective, values: Floats, others: Floats) -> Ints:
    """Rows that no other row dominates, the best by the first objective first.

    A row dominates another if it is at least as good by both objectives and better by one. Of rows
    that are equal but for rounding, one is kept.
    """
    losses = [
        values * (1 if judge.sense == "min" else -1)
        for judge, values in ((objective, values), (against, others))
    ]
    rows: list[int] = []
    for i in np.lexsort((losses[1], losses[0])).tolist():
        if rows and losses[1][i] >= losses[1][rows[-1]] - ROUNDING * abs(losses[1][i]):
            continue
        if rows and losses[0][i] <= losses[0][rows[-1]] + ROUNDING * abs(losses[0][i]):
            rows.pop()
        rows.append(i)
    return np.array(rows, np.int32)


def _searched(
    problem: Problem,
    objective: Objective,
    against: Objective,
    placer: Placer,
    seed: int,
    budget: Budget,
) -> tuple[list[FrontPoint], bool]:
    """Front of the best placements by the first objective under limits of the second.

    It is complete if one placement is proven to be the best by both.
    """
    plain, conditions = objective.plain, objective.conditions
    words, results = list[str](), list[Result]()

    def search(judge: Objective, *limits: Condition) -> Result | None:
        """Best by one objective within a limit of the other; None if no placement meets it."""
        try:
            limited = subject_to(judge, (*conditions, *limits))
            results.append(placer.place(problem, limited, seed=seed, budget=budget))
        except PlacementError:
            if not limits:
                raise
            return None
        texts = [
            f"{limit.objective.name} {SIGNS[limit.sense]} {limit.objective.format(limit.limit)}"
            for limit in limits
        ]
        words.append(" ".join(texts) or f"{judge.name} alone")
        return results[-1]

    def values_of(result: Result) -> tuple[float, float]:
        return against.value(problem, result.placement), plain.value(problem, result.placement)

    alone, ends = list[float | None](), list[tuple[float, float]]()
    for judge, other in ((plain, against), (against, plain)):
        end = search(judge)
        assert end is not None
        alone.append(end.bound)
        limit = Condition(judge, judge.sense, judge.value(problem, end.placement))
        ends.append(values_of(search(other, limit) or end))
    gaps = [(*ends[1], *ends[0])]  # limit and value at both ends of each gap
    for _ in range(MAX_LIMITS):
        low, least, high, most = gap = max(gaps, key=lambda g: abs((g[2] - g[0]) * (g[3] - g[1])))
        if (high - low) * (most - least) == 0:
            break
        half = (low + high) / 2
        result = search(plain, Condition(against, against.sense, half))
        reached, value = (low, least) if result is None else values_of(result)
        gaps.remove(gap)
        gaps += [(half, value, high, most), (low, least, reached, value)]
    values = np.array([plain.value(problem, result.placement) for result in results])
    others = np.array([against.value(problem, result.placement) for result in results])
    points = [
        FrontPoint(
            results[i].placement,
            values[i].item(),
            others[i].item(),
            words[i],
            _is_proven(values[i], others[i], results, plain, against),
        )
        for i in undominated(plain, against, values, others).tolist()
    ]
    is_best = all(map(proven, (points[0].value, points[0].against), alone))
    return points, len(points) == 1 and is_best


def _is_proven(
    value: float, other: float, results: Sequence[Result], plain: Objective, against: Objective
) -> bool:
    """Whether a point reaches the bound of a search whose limits it meets."""
    at = {plain.name: value, against.name: other}
    for result in results:
        bound, reached = result.bound, at[result.judge.plain.name]
        limits = [c for c in result.judge.conditions if c.objective.name in at]
        is_within = all(not c.shortfall(np.array(at[c.objective.name])) for c in limits)
        if is_within and proven(reached, bound):
            return True
    return False
