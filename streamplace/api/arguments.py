"""Problems, placements and objectives of requests."""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamplace.io.given import GraphLike, PlacementLike, given_placement, problem_of
from streamplace.model.cluster import Cluster
from streamplace.model.constraints import Constraints
from streamplace.model.graph import StreamGraph
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.subtasks import named_problem
from streamplace.objectives.registry import Objective, named_objective, suggested_by
from streamplace.settings.convert import checked_objective, checked_relocation
from streamplace.settings.verb import Progress

if TYPE_CHECKING:
    from streamplace.model.relocation import Relocation

LOG = logging.getLogger(__name__)


def problem_for(
    graph: GraphLike,
    machines: Cluster | None,
    constraints: Constraints | None,
    changes: Mapping[str, Any],
) -> Problem:
    """Problem of a graph, with a cluster, constraints and changes."""
    problem = problem_of(graph, machines, constraints)
    if any(changes.values()):
        from streamplace.model.what_if import changed_problem

        problem = changed_problem(problem, **changes)
    LOG.info(
        "%d operators, %d streams, %d devices, %g tuples/s",
        problem.n_operators,
        problem.graph.n_streams,
        problem.n_devices,
        problem.graph.source_rate,
    )
    return problem


def check_profile(graph: StreamGraph, progress: Progress, *, trusts: bool) -> None:
    """Warn if a measured graph contradicts its measurement; refuse one that is wrong."""
    from streamplace.model.profile_trust import check_trust

    if (warning := check_trust(graph, trusts=trusts)) is not None:
        progress.say(f"warning: {warning}")


def placed_problem(problem: Problem, placement: PlacementLike) -> tuple[Problem, Placement]:
    """Placement of a problem's operators or subtasks, with the problem of these."""
    assignment = given_placement(placement)
    if isinstance(assignment, Path):
        from streamplace.engines.reading import read_placed

        return read_placed(assignment, problem)
    expanded = named_problem(problem, assignment)
    operators, devices = expanded.graph.operators.name, expanded.cluster.devices.name
    return expanded, Placement.of(operators, devices, assignment)


def objective_of(
    problem: Problem,
    objective: str | Objective = "",
    relocation: "Relocation | None" = None,
    require: Iterable[str] = (),
) -> Objective:
    """Objective by name, or the default of the problem, with conditions and costs of moving."""
    chosen = checked_objective(objective) or suggested_by(problem.graph)
    if relocation is None and not require:
        return (named_objective(chosen) if isinstance(chosen, str) else chosen).on(problem)
    from streamplace.objectives.conditions import composed_objective

    return composed_objective(chosen, require, checked_relocation(relocation), problem)
