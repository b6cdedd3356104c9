"""Placement of a graph, and evaluation of a placement."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from streamplace.api.arguments import (
    GraphLike,
    PlacementLike,
    objective_of,
    placed_problem,
    problem_of,
)
from streamplace.io.files import spot
from streamplace.io.placements import read_placed_for
from streamplace.model.problem import Problem
from streamplace.model.units import Quantity, digits
from streamplace.settings.convert import (
    BudgetLike,
    ClusterLike,
    ConstraintsLike,
    FilePath,
    is_path,
    path_of,
)
from streamplace.settings.simulate import SimulateSettings

if TYPE_CHECKING:
    from streamsim.engine.settings import Policy, Randomness

    from streamplace.evaluate.queues import QueueRun
    from streamplace.model.relocation import Relocation
    from streamplace.objectives.explanation import Explanation
    from streamplace.objectives.registry import Objective
    from streamplace.placers.registry import Placer
    from streamplace.placers.result import Result

LOG = logging.getLogger(__name__)
DEFAULT_PLACER = "auto"
SHORT = 2.0
"""Longest search, in seconds, without a progress display."""


def place(
    graph: GraphLike,
    cluster: ClusterLike | None = None,
    *,
    placer: str | Placer = DEFAULT_PLACER,
    weights: FilePath | None = None,
    objective: str | Objective = "",
    require: str | Iterable[str] = (),
    relocation: Relocation | None = None,
    constraints: ConstraintsLike | None = None,
    rate: Quantity | None = None,
    without: str | None = None,
    subtasks: bool = False,
    confidence: float | None = None,
    trust_profile: bool = False,
    seed: int = 0,
    budget: BudgetLike | None = None,
) -> Result:
    """Find a placement of a graph on a cluster.

    ``print`` shows the result like ``streamplace place``; notebooks show it with a picture.

    Parameters
    ----------
    graph
        A graph, a problem with its cluster and constraints, or the path of a file with one.
    cluster
        A cluster, a number of equal devices, the path of a cluster file (TOML), or a dictionary
        with the tables of one. By default five devices of 2500 MIPS, joined by 1000 Mbps.
    placer
        Placement algorithm. Options follow its name, separated by colons, as in ``metis:k=3``.
    weights
        Weights file of a learned placer.
    objective
        Objective: a name, with options after colons, or an `Objective`. By default the makespan
        of a task graph (all of its operators fire "all"), else the throughput.
    require
        Conditions that the placement must meet, such as ``throughput>=0.99``.
    relocation
        Current placement of the graph; the objective then includes the cost of moving from it.
    constraints
        Constraints, a dictionary such as ``{"pin": {"source": "d0"}}``, or the path of a
        constraints file (TOML).
    rate
        Total rate of the sources in tuples/s, or a text such as ``"10 k/s"``. Replaces the rate of
        the graph.
    without
        Device that is lost; pins to it are dropped.
    subtasks
        Whether to place the subtasks of parallel operators one by one (``join#0``, …).
    confidence
        Confidence of the interval of the throughput, for graphs that were measured on a running
        job; 0.9 by default, 0 for no interval.
    trust_profile
        Whether to use a measured graph whose model is off by more than 30 % for the placement that
        was profiled.
    seed
        Random seed; equal seeds give equal results.
    budget
        Search time in seconds, a text such as ``"50 ms"``, or a `Budget`, which may limit
        evaluations in addition or instead. One second by default.

    Returns
    -------
    Result
        The ``placement``, its ``value``, and the proven ``bound`` if there is one.

    Examples
    --------
    >>> from streamplace import Operator, Stream, StreamGraph
    >>> graph = StreamGraph.of("pipe", [Operator("a", ipt=2e5, rate=1e4), Operator("b", ipt=2e5)],
    ...                        [Stream("a", "b")])
    >>> place(graph).value
    1.0
    >>> place(graph, objective="devices", require="throughput>=0.6").value
    1.0
    >>> place(graph, 3, constraints={"pin": {"a": "d2"}}, budget="50 ms").placement["a"]
    'd2'
    """
    keywords = locals()
    from streamplace.model.profile_trust import check_trust
    from streamplace.settings.place import PlaceSettings

    settings = PlaceSettings.of(keywords)
    request = settings.request()
    problem = problem_of(graph, settings.cluster, settings.constraints)
    problem = problem if settings.without is None else problem.without(settings.without)
    check_trust(problem.graph, trusts=settings.trust_profile)
    takes_long = request.budget.seconds is None or request.budget.seconds > SHORT
    with request.waiting(problem.graph.name) if takes_long else nullcontext():
        return request.answer(problem)


def simulate(
    graph: GraphLike,
    placement: PlacementLike,
    cluster: ClusterLike | None = None,
    *,
    objective: str | Objective = "",
    relocation: Relocation | None = None,
    constraints: ConstraintsLike | None = None,
    rate: Quantity | None = None,
    without: str | None = None,
) -> Explanation:
    """Explain the value of a placement and its bottleneck, and advise moves.

    ``print`` shows the explanation like ``streamplace simulate``.

    Parameters
    ----------
    graph, cluster, rate
        As for `place`.
    constraints
        As for `place`. Placements that break them are refused, and advice respects them.
    placement
        A placement of operators or of subtasks: a `Placement`, the result of `place`, a mapping of
        operators to devices, or the path of a placement file.
    objective
        Objective that evaluates the placement, as for `place`.
    relocation
        Current placement of the graph. The explanation then also lists the moves, their time, and
        the passes until they pay off.
    without
        Device that is lost. Its operators move to the best places among the other devices, and
        pins to it are dropped.

    Examples
    --------
    >>> from streamplace import Operator, Stream, StreamGraph
    >>> graph = StreamGraph.of("pipe", [Operator("a", ipt=2e5, rate=1e4), Operator("b", ipt=2e5)],
    ...                        [Stream("a", "b")])
    >>> simulate(graph, {"a": "d0", "b": "d0"}).verdict
    "62.5 % of the sources' rate; the CPU of d0 is the limit"
    """
    settings = SimulateSettings.of(locals())
    problem = problem_of(graph, settings.cluster, settings.constraints, settings.rate)
    if settings.rate is None and is_path(placement):
        _say_other_rate(path_of("placement", placement), problem)
    problem, placed = placed_problem(problem, placement)
    problem.check(placed)
    relocation = settings.relocation
    if settings.without is not None:
        from streamplace.objectives.survives import after_loss

        problem, placed, relocation = after_loss(problem, placed, settings.without, relocation)
    judge = objective_of(problem, settings.objective, relocation=relocation)
    judge.check(problem)
    return judge.explained(problem, placed)


def _say_other_rate(path: Path, problem: Problem) -> None:
    """Log that a file says another rate than that of the problem."""
    simulated = problem.graph.source_rate
    rate = read_placed_for(path).other_rate(simulated)
    if rate is not None:
        words = "%s was placed at %s tuples/s, and is simulated at %s; give rate for another"
        LOG.warning(words, spot(path), digits(rate, 6), digits(simulated, 6))


def simulate_queues(
    graph: GraphLike,
    placement: PlacementLike,
    cluster: ClusterLike | None = None,
    *,
    constraints: ConstraintsLike | None = None,
    rate: Quantity | None = None,
    duration: Quantity | None = None,
    dt: Quantity | None = None,
    capacity: float | None = None,
    policy: Policy = "dynamic",
    random: Randomness = "nothing",
) -> QueueRun:
    """Simulate a placement with queues, tick by tick, for latencies and transients.

    Parameters
    ----------
    graph, cluster, constraints, rate
        As for `place`.
    placement
        As for `simulate`.
    duration, dt
        Simulated time and time step, in seconds or as texts such as ``"100 ms"``. By default, the
        time step follows from latencies and windows, and the run is long enough to settle and to
        be measured.
    capacity
        Largest queue in tuples; by default, it follows from the rate of each stream.
    policy
        Policy by which operators share a CPU: ``dynamic``, …; see `streamsim.engine`.
    random
        What is random in latencies: ``nothing``, ``arrivals``, or ``all``, times of service too.

    Examples
    --------
    >>> from streamplace import Operator, Stream, StreamGraph
    >>> graph = StreamGraph.of("pipe", [Operator("a", ipt=2e5, rate=1e4), Operator("b", ipt=2e5)],
    ...                        [Stream("a", "b")])
    >>> run = simulate_queues(graph, {"a": "d0", "b": "d0"})
    >>> run.valid, round(run.relative_throughput, 2)
    (True, 0.62)
    """
    settings = SimulateSettings.of({"engine": True, **locals()})
    from streamplace.evaluate.queues import run_queues

    problem = problem_of(graph, settings.cluster, settings.constraints, settings.rate)
    problem, placed = placed_problem(problem, placement)
    return run_queues(problem, placed, settings.queues())
