"""The verbs, from Python in the words of the command line."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from streamplace.engines.deployment import Deployment
from streamplace.engines.reading import implied_cluster
from streamplace.engines.registry import EXPORTS
from streamplace.errors import SettingError
from streamplace.io.problems import usual_cluster
from streamplace.model.cluster import Cluster
from streamplace.model.constraints import Constraints
from streamplace.model.graph import StreamGraph
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.relocation import Relocation
from streamplace.objectives.conditions import composed_objective
from streamplace.objectives.explanation import Explanation
from streamplace.objectives.registry import (
    Objective,
    suggested_by,
    suggested_by_all,
)
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget, Placer, Result
from streamplace.training.prepared import train_run
from streamplace.training.run import PRESET, TrainingRun
from streamplace.training.solutions import Track, untracked
from streamplace.training.trained import Trained
from streamplace.training.workers import workers_on

if TYPE_CHECKING:
    from streamplace.learn.reward import Measure
    from streamplace.learn.watching import Watcher

DEFAULT_PLACER = "auto"


def place(
    graph: StreamGraph | Problem,
    cluster: Cluster | None = None,
    *,
    placer: str | Placer = DEFAULT_PLACER,
    objective: str = "",
    require: Iterable[str] = (),
    relocation: Relocation | None = None,
    constraints: Constraints | None = None,
    seed: int = 0,
    budget: Budget | None = None,
) -> Result:
    """Find a placement of a graph on a cluster (five default devices where none is given).

    Parameters
    ----------
    graph
        A graph, or a problem, which brings its cluster and constraints along.
    placer
        Who places, options after colons, as in ``dream:weights=runs/x/best.safetensors``.
    objective
        What is best; by default the makespan of a graph whose operators all fire "all", else the
        throughput.
    require
        Conditions that the placement has to meet, such as ``throughput>=0.99``.
    relocation
        Where the graph runs now: the way from there is part of the value.

    Examples
    --------
    >>> from streamplace import Operator, Stream, StreamGraph
    >>> graph = StreamGraph.of("pipe", [Operator("a", ipt=2e5, rate=1e4), Operator("b", ipt=2e5)],
    ...                        [Stream("a", "b")])
    >>> place(graph).value
    1.0
    >>> place(graph, objective="devices", require=["throughput>=0.6"]).value
    1.0
    """
    problem = problem_of(graph, cluster, constraints)
    judge = chosen_objective(problem, objective, require, relocation)
    asked = named_placer(placer) if isinstance(placer, str) else placer
    return asked.place(problem, judge, seed=seed, budget=budget)


def simulate(
    graph: StreamGraph | Problem,
    placement: Placement | Mapping[str, str],
    cluster: Cluster | None = None,
    *,
    objective: str = "",
    relocation: Relocation | None = None,
) -> Explanation:
    """Say what a placement reaches, what limits it, and what to move.

    With a ``relocation``, also what moves from where the graph runs now, and when it has paid off.

    Examples
    --------
    >>> from streamplace import Operator, Stream, StreamGraph
    >>> graph = StreamGraph.of("pipe", [Operator("a", ipt=2e5, rate=1e4), Operator("b", ipt=2e5)],
    ...                        [Stream("a", "b")])
    >>> simulate(graph, {"a": "d0", "b": "d0"}).verdict
    "62.5 % of the sources' rate; the CPU of d0 is the limit"
    """
    problem = problem_of(graph, cluster)
    if not isinstance(placement, Placement):
        names = problem.graph.operators.name
        placement = Placement.of(names, problem.cluster.devices.name, placement)
    problem.check(placement)
    judge = chosen_objective(problem, objective, relocation=relocation)
    judge.check(problem)
    return judge.explained(problem, placement)


def problem_of(
    graph: StreamGraph | Problem,
    cluster: Cluster | None = None,
    constraints: Constraints | None = None,
) -> Problem:
    """Problem of placing a graph; a problem is taken as it is."""
    if isinstance(graph, Problem):
        if cluster is not None or constraints is not None:
            raise SettingError("a problem brings its cluster and its constraints along; drop yours")
        return graph
    return Problem(graph, cluster or usual_cluster(), constraints)


def chosen_objective(
    problem: Problem,
    name: str = "",
    require: Iterable[str] = (),
    relocation: Relocation | None = None,
) -> Objective:
    """Objective by name, or the one that the problem suggests, subject to conditions."""
    return composed_objective(name or suggested_by(problem.graph), require, relocation)


def export(
    graph: StreamGraph,
    placement: Mapping[str, str],
    to: str,
    cluster: Cluster | None = None,
    *,
    constraints: Constraints | None = None,
) -> dict[str, str]:
    """Write a placement in the form of an engine: texts by file name.

    The placement may be one of subtasks (``join#0``, …). Without a cluster, the devices are those
    that it names.

    Examples
    --------
    >>> from streamplace import Operator, Stream, StreamGraph
    >>> graph = StreamGraph.of("pipe", [Operator("a", ipt=2e5, rate=1e4), Operator("b", ipt=2e5)],
    ...                        [Stream("a", "b")])
    >>> files = export(graph, {"a": "d0", "b": "d1"}, "csv")
    >>> files["placement.csv"].splitlines()[-1]
    'b,1,d1,,,'
    """
    problem = Problem(graph, cluster or implied_cluster(graph, placement), constraints)
    return dict(EXPORTS[to].files(Deployment.of(problem, placement)))


def train(
    model: str,
    graphs: Iterable[StreamGraph | Problem],
    out: str | Path,
    *,
    cluster: Cluster | None = None,
    rates: Iterable[float] = (),
    preset: str = PRESET,
    config: str | Path | None = None,
    epochs: int | None = None,
    device: str = "cpu",
    objective: str = "",
    reward: "str | Measure" = "steady",
    seed: int = 0,
    start: str | Path | None = None,
    resume: bool = False,
    watcher: "Watcher | None" = None,
    track: Track = untracked,
    on: str | None = None,
    command: str = "",
) -> Trained:
    """Train a model on graphs or problems into the folder ``out``, as ``streamplace train`` does.

    Parameters
    ----------
    graphs
        Graphs or problems; an iterator is read by every process of the training.
    rates
        Total source rates: every graph is learned at each of them. Empty for its own rate.
    objective
        Objective to learn; by default the one that the graphs suggest.
    config
        TOML file whose tables ``[training]`` and ``[model]`` change the preset.
    reward
        Judge of placements: simulation, ``steady`` or ``engine``, real passes on a local ``ray``,
        or a function that returns the seconds [B] of one pass for a problem and placements [B, N].
    start
        Weights file to begin from, or ``shipped`` for the weights that come with streamplace.
    resume
        Continue the run in ``out`` that was stopped; all other arguments must be as they were.
    watcher
        Is called after every step and epoch.
    track
        Shows the progress of the work before training: passes on items, given a title and their
        number.
    on
        Compute on Ray: ``ray`` starts one on this machine, ``auto`` or an address names a running
        cluster. Results do not depend on it, nor on how many processes torchrun started.
    command
        Command to record in the weights file; by default the call of this function.

    Returns
    -------
    Trained
        With ``weights``, the file that a learned placer takes, and the ``history``.
    """
    with workers_on(on) as workers:
        problems = tuple(problem_of(graph, cluster) for graph in graphs)
        run = TrainingRun(
            model=model,
            problems=problems,
            rates=tuple(rates),
            preset=preset,
            config=None if config is None else Path(config),
            epochs=epochs,
            device=device,
            objective=objective or suggested_by_all(problem.graph for problem in problems),
            reward=reward,
            seed=seed,
            start=None if start is None else str(start),
            command=command or f"streamplace.train({model!r}, …)",
        )
        return train_run(
            run, Path(out), resume=resume, watcher=watcher, track=track, workers=workers
        )
