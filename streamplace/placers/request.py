"""Requests for placements: the same for one graph, for a data set and for a comparison."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from streamplace.errors import StreamplaceError
from streamplace.io.ledger import errors_for
from streamplace.model.expansion import expand
from streamplace.model.problem import Problem
from streamplace.model.relocation import Relocation
from streamplace.objectives.conditions import composed_objective
from streamplace.objectives.registry import Objective, suggested_by
from streamplace.placers.incumbent import SearchInterrupt
from streamplace.placers.meter import Meter
from streamplace.placers.named import named_placer, with_weights
from streamplace.placers.registry import PLACERS, USUAL_BUDGET, Budget, Placer
from streamplace.placers.result import Result
from streamplace.placers.stopwatch import now
from streamplace.progress import waiting

MIN_GAIN = 1.1
"""Factor by which subtasks placed one by one must be better to be mentioned."""
SUBTASK_SHARE = 0.1
"""Share of the budget, in addition to it, for placing subtasks."""
MAX_SUBTASKS = 2_000
"""Most subtasks that are placed for a hint."""


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """A placer, an objective and limits, with which problems are placed.

    Examples
    --------
    >>> PlacementRequest("metis:k=2", require=("throughput>=0.9",)).algorithm
    <Placer metis:k=2>
    """

    placer: str | Placer = "auto"  # a placer, or its name with options after colons
    weights: Path | None = None  # file of a learned placer
    objective: str | Objective = ""  # objective or its name; empty for each graph's default one
    require: Sequence[str] = ()  # conditions that a placement must meet
    # Current placement of the graph; the objective then includes the cost of moving from it.
    relocation: Relocation | None = None
    rate: float | None = None  # total tuples/s of the sources; None for every graph's own rate
    subtasks: bool = False  # whether the subtasks of parallel operators are placed one by one
    seed: int = 0
    budget: Budget = USUAL_BUDGET
    # Confidence of the interval of a measured graph's throughput, from errors of recorded runs.
    confidence: float | None = None

    def __post_init__(self) -> None:
        self.algorithm  # noqa: B018 - an unknown placer is refused now

    @property
    def algorithm(self) -> Placer:
        """The placer with its weights; raise SettingError for an unknown one."""
        placer = named_placer(self.placer) if isinstance(self.placer, str) else self.placer
        return placer if self.weights is None else with_weights(placer, self.weights)

    def answer(self, problem: Problem) -> Result:
        """Place a problem as the request says; the result has an interval of its throughput.

        After Ctrl-C, ``auto`` answers with its best placement so far.
        """
        prepared, began = self.prepared(problem), now()
        errors = errors_for(prepared.graph, self.confidence)
        parallelism = problem.graph.operators.parallel
        try:
            result = self.place(prepared)
            by_subtasks = self._by_subtasks(problem, result)
        except SearchInterrupt as stop:
            if not self._keeps:
                raise
            judge, took = self.judge(prepared), now() - began
            result = self.algorithm.evaluated(prepared, judge, self.seed, took, stop.best)
            by_subtasks = None
        return replace(result, errors=errors, parallelism=parallelism, by_subtasks=by_subtasks)

    def _by_subtasks(self, problem: Problem, result: Result) -> float | None:
        """Value of the subtasks placed one by one in a small part of the budget, if it is better.

        None if it is not better by `MIN_GAIN`, or if no operator has several subtasks.
        """
        judge = result.judge
        subtasks = int(problem.graph.operators.parallelism.sum())
        is_able = problem.graph.operators.parallel and subtasks <= MAX_SUBTASKS
        is_short = judge.is_share and judge.usual and result.value < 1 / MIN_GAIN
        part = Meter(self.budget).part(SUBTASK_SHARE)
        if self.subtasks or not (is_able and is_short) or part is None:
            return None
        try:
            each = replace(self, subtasks=True).prepared(problem)
            found = PLACERS["auto"].attempt(each, judge, seed=self.seed, budget=part)
        except (StreamplaceError, SearchInterrupt):  # rules that subtasks cannot keep, or Ctrl-C
            return None
        return found.value if found.value > MIN_GAIN * result.value else None

    def prepared(self, problem: Problem) -> Problem:
        """Return a problem at the rate of the request, with its subtasks if these are placed."""
        if self.rate is not None:
            problem = problem.at_rate(self.rate)
        return expand(problem.graph).problem(problem) if self.subtasks else problem

    def place(self, prepared: Problem) -> Result:
        """Place a prepared problem; `Placer.place` evaluates the placement."""
        judge = self.judge(prepared)
        return self.algorithm.place(prepared, judge, seed=self.seed, budget=self.budget)

    def judge(self, problem: Problem) -> Objective:
        """Objective for a problem, with the conditions and the relocation."""
        chosen = self.objective or suggested_by(problem.graph)
        return composed_objective(chosen, self.require, self.relocation, problem)

    def waiting(self, graph: str) -> AbstractContextManager[None]:
        """Show a spinner for this graph."""
        hint = "Ctrl-C keeps the best so far" if self._keeps else ""
        return waiting(f"placing {graph}", hint)

    @property
    def _keeps(self) -> bool:
        """Whether its best placement is kept on Ctrl-C."""
        return self.algorithm.name == "auto"
