"""Placements of a model without search, before and after training, and of other placers."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from streamplace.errors import StreamplaceError
from streamplace.evaluate.records import Record, problem_hash
from streamplace.evaluate.results import ObjectiveResults, Row
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective, named_objective
from streamplace.placers.registry import PLACERS, USUAL_BUDGET, Budget, Placer
from streamplace.training.solutions import Track, untracked
from streamplace.training.trained import Trained

BEFORE, AFTER = "greedy before", "greedy after"
NO_SEARCH = {"samples": 0, "refine": "none"}
"""Options with which a learned placer does not search; each takes those that it has."""
MOST_PROBLEMS = 20
EVALUATIONS = 1000
"""Evaluations of `auto` for a problem."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Results of the model and of other placers on the same problems."""

    objective: Objective
    held_out: bool  # whether the problems were held out; otherwise the model was trained on them
    problems: int  # number of problems that were placed
    total: int  # number of problems that were held out, or trained on
    reference: str  # placer that the others are compared with: METIS, or HEFT for one pass
    rows: dict[str, Row]  # row of a table by placer


def answers_of(trained: Trained, track: Track = untracked) -> Answers | None:
    """Place the problems that were held out, or those of the training if none were.

    At most twenty problems are placed. None if no placer has the name of the model.
    """
    if trained.model not in PLACERS:
        return None
    objective = named_objective(trained.objective)
    reference = "heft" if objective.kind == "pass" else "metis"
    placers = {
        **_without_search(trained),
        reference: (PLACERS[reference], USUAL_BUDGET),
        "auto": (PLACERS["auto"], Budget(evaluations=EVALUATIONS)),
    }
    chosen = trained.problems[:MOST_PROBLEMS]
    results = ObjectiveResults(objective)
    for problem in track(chosen, "comparing with other placers", len(chosen)):
        results.add(_records(problem, objective, placers, trained.seed))
    (rows,) = results.table.values()
    return Answers(objective, trained.held_out, len(chosen), len(trained.problems), reference, rows)


def _without_search(trained: Trained) -> dict[str, tuple[Placer, Budget]]:
    """The model's placer with the weights before and after training."""
    placer = PLACERS[trained.model]
    options = {name: value for name, value in NO_SEARCH.items() if name in placer.defaults()}
    weights: dict[str, Path] = {BEFORE: trained.start, AFTER: trained.weights}
    return {
        name: (placer.with_options(**options, weights=str(path)), Budget(None))
        for name, path in weights.items()
        if path.is_file()
    }


def _records(
    problem: Problem, objective: Objective, placers: dict[str, tuple[Placer, Budget]], seed: int
) -> Iterator[Record]:
    digest = problem_hash(problem)
    for name, (placer, budget) in placers.items():
        try:
            result = placer.place(problem, objective, seed=seed, budget=budget)
        except StreamplaceError:
            yield Record(digest, "", None, name, "", None, None, 0.0, (), objective=objective.name)
            continue
        devices = tuple(result.placement.index.tolist())
        row = (digest, "", None, name, "", result.value, result.bound, 1000 * result.seconds)
        yield Record(*row, devices, objective=objective.name)
