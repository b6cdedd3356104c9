"""``place``: a graph, or every graph of a data set, is placed on devices."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from math import fsum, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from streamplace.errors import FormatError, SettingError
from streamplace.io.suffixes import PICTURES
from streamplace.model.message_text import counted, grouped_notes
from streamplace.model.paths import FilePath, path_of
from streamplace.settings.convert import (
    BudgetLike,
    Count,
    Moved,
    Objective,
    ObjectiveName,
    PlacementFile,
    Placer,
    PlacerName,
    Positive,
    Relocation,
    Seconds,
    Whole,
)
from streamplace.settings.option import PLACEMENT, argument, file_key, option, output
from streamplace.settings.searches import DataSetOptions, MeasuredGraphOptions, SearchOptions
from streamplace.settings.shared import (
    ChangeOptions,
    ConditionOptions,
    ConstraintOptions,
    DeviceOptions,
    LossOptions,
    ObjectiveOptions,
)
from streamplace.settings.verb import SILENT, Progress, Verb, Written

if TYPE_CHECKING:
    from streamplace.evaluate.front import Front
    from streamplace.io.given import ClusterLike, ConstraintsLike, GraphLike
    from streamplace.model.units import Quantity
    from streamplace.placers.request import PlacementRequest
    from streamplace.placers.result import Result

FOR_ONE_GRAPH = (
    *("set", "without", "present", "passes", "moves", "confidence", "trust_profile", "against"),
)
FOR_DATA_SETS = ("split", "limit", "jobs", "on")
DATA_SET = ".jsonl"
"""Suffix of files for the placements of a data set."""
MIN_REPORTED_S, MAX_SILENT_S = 0.5, 2.0
"""Shortest reported start-up, and longest search in Python without a spinner, in seconds."""
DEFAULT_PLACER = "auto"


class Place(
    ObjectiveOptions,
    LossOptions,
    ConditionOptions,
    ChangeOptions,
    DataSetOptions,
    DeviceOptions,
    ConstraintOptions,
    SearchOptions,
    MeasuredGraphOptions,
    Verb,
):
    """Place the operators of GRAPH on devices.

    GRAPH is a stream graph, which is placed for the highest throughput, a task graph (its operators
    fire "all"), which is placed for the shortest pass, or a problem that includes its cluster and
    constraints. Of placements of equal throughput, the default placer prefers the least load of the
    fullest resource, then the least traffic over the network. For a graph of up to 200 operators
    that is carried at its full rate, it says whether that load is proven to be the least. GRAPH may
    also be a data set: with -o FILE.jsonl, every graph gets a line of the file, in order, and a
    command that was stopped continues where it ended.
    """

    graph: Any = argument()
    placer: PlacerName = option(
        "--placer NAME",
        "Placement algorithm (see: streamplace placers). Options follow after colons, as in "
        "metis:k=3 or pilot:weights=best.safetensors.",
        default=DEFAULT_PLACER,
    )
    weights: Path | None = file_key("FILE", "Weights file of a learned placer.")
    against: ObjectiveName = option(
        "--against NAME",
        "Second objective: find the placements of which none is better by both, and draw them "
        "(-o front.svg).",
        default="",
    )
    subtasks: bool = option(
        "--subtasks", "Place the subtasks of parallel operators one by one (join#0, join#1, …)."
    )
    relocation: Moved = None
    present: PlacementFile | None = file_key(
        "FILE",
        "Current placement: an objective in seconds includes the cost of moving; for others, the "
        "answer has the best value for each number of moves.",
        key="from",
    )
    passes: Positive | None = file_key(
        "N", "Passes until the next change, which share the cost of moving."
    )
    moves: Whole | None = file_key(
        "N", "Maximum number of operators that move, for an objective that is not in seconds."
    )
    startup: Seconds | None = file_key(
        "TIME", "Time that a moved operator takes to start, if the problem has none."
    )
    split: str | None = file_key("TEXT", "Use only the graphs of this split, such as test.")
    jobs: Count | None = file_key("N", "Number of processes, by default one per core.")
    out: Path | None = output(
        "File to write: the placement (.json), a report (.html), a picture (.svg; with --against "
        "also .png or .pdf), or the placements of a data set (.jsonl).",
        suffixes=(".json", ".html", *PICTURES, DATA_SET),
        keys=PLACEMENT | {"points"},
    )

    def check(self) -> None:
        """Refuse options of moves without --from, and options that exclude each other."""
        super().check()
        self.need("present", "passes", "startup", "moves")
        if self.against:
            for name in ("present", "relocation"):
                self.exclude(name, "against")
        elif self.out is not None and self.out.suffix in (".png", ".pdf"):
            raise SettingError(f"-o {self.out}: the picture of a placement is .svg; name it so")

    @property
    def is_for_data_set(self) -> bool:
        """Whether every graph of a data set is placed, into a file."""
        return self.out is not None and self.out.name.endswith(DATA_SET)

    def run(self, progress: Progress = SILENT) -> Result | Front | Written:
        """Place a graph, or all graphs of a data set."""
        from streamplace.io.graphs import SeveralFound

        if self.is_for_data_set:
            for name in FOR_ONE_GRAPH:
                self.refuse(name, "is for a single graph; drop it, or place the graphs one by one")
            return self._place_all(progress)
        for name in FOR_DATA_SETS:
            self.refuse(name, "is for data sets; add -o FILE.jsonl, or drop it")
        try:
            return self.place(progress)
        except SeveralFound as error:
            raise FormatError(f"{error}, or place all: -o FILE.jsonl") from None

    def when_stopped(self, progress: Progress) -> int | None:
        """Say how to continue with a data set."""
        if self.is_for_data_set:
            progress.say(resumable(self.out))
        return None

    def place(self, progress: Progress = SILENT) -> Result | Front:
        """Place a graph; with ``against``, find the front of two objectives."""
        from streamplace.api.arguments import check_profile, objective_of, problem_for
        from streamplace.display.report import duration
        from streamplace.model.profile_trust import cpu_origins
        from streamplace.placers.stopwatch import start_up_seconds

        request = self.request()
        problem = problem_for(self.graph, self.machines(), self.constraints, self.changes())
        problem = problem if self.without is None else problem.without(self.without)
        check_profile(problem.graph, progress, trusts=self.trust_profile)
        judge = objective_of(problem, self.objective)
        if self.present is not None and self.passes is None and judge.unit == "s":
            raise SettingError(
                f"{self.name('present')} needs {self.name('passes')}, over which the time of "
                f"moves is shared, as {judge.name} is measured in seconds"
            )
        before, longest = start_up_seconds(), request.budget.seconds
        is_shown = progress is not SILENT or longest is None or longest > MAX_SILENT_S
        with request.waiting(problem.graph.name) if is_shown else nullcontext():
            if self.against:
                from streamplace.evaluate.front import answer

                result: Result | Front = answer(request, problem, self.against)
            else:
                result = request.answer(problem)
        took = start_up_seconds() - before
        for note in grouped_notes(cpu_origins(result.problem.graph)):
            progress.say(note)
        if took >= MIN_REPORTED_S:
            words = f"start-up {duration(took)} for libraries and weights"
            progress.hint(f"{words}, besides the search time")
        return result

    def _place_all(self, progress: Progress) -> Written:
        """Place all graphs of a data set, one line each."""
        from streamplace.evaluate.on_ray import connected
        from streamplace.evaluate.placing import Placing, place_all
        from streamplace.evaluate.runner import check_placer
        from streamplace.io.datasets import DataSet, Reader, no_graph
        from streamplace.progress import tracked

        assert self.out is not None
        request, reader = self.request(), Reader(self.machines(), self.constraints)
        path = path_of("graph", self.graph)
        data = DataSet(path, self.split, self.limit, reader, self.seed).rereadable()
        if not (total := sum(1 for _ in data.lines())):
            raise no_graph(path, data)
        judge = request.judge(data.reader(next(data.lines())))
        check_placer(request.algorithm, (judge,))
        values, graphs, reused = list[float](), 0, 0
        placing = Placing(request, reader)
        with connected(self.on):
            every = place_all(placing, data, self.out, jobs=self.jobs, on=self.on)
            for placed in tracked(every, "placing", total):
                graphs += 1
                reused += placed.is_saved
                if placed.value is None:
                    progress.failed(placed.graph, placed.error or "")
                else:
                    values.append(placed.value)
        mean = fsum(values) / len(values) if values else None
        if reused:
            progress.say(f"{counted(reused, 'result')} reused from {self.out}")
        average = "" if mean is None else f", mean value {mean:.4g}"
        return Written(
            {"graphs": graphs, "placed": len(values), "mean": mean, "output": str(self.out)},
            (f"{len(values)} of {graphs} graphs placed{average} → {self.out}",),
        )

    def request(self) -> PlacementRequest:
        """Request for the placers."""
        from streamplace.model.relocation import Relocation
        from streamplace.placers.registry import USUAL_BUDGET
        from streamplace.placers.request import PlacementRequest

        relocation = self.relocation
        if self.present is not None:
            relocation = Relocation(self.present, self.passes or inf, self.startup, self.moves)
        budget = self.limits() or USUAL_BUDGET
        return self.part(PlacementRequest, relocation=relocation, budget=budget)


def resumable(out: Path | None) -> str:
    """How to continue a command on a data set."""
    if out is None:
        return "stopped; nothing was kept, but with -o the same command continues where it ended"
    return f"stopped; {out} holds what is done, and the same command continues from there"


@overload
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
) -> Result: ...


@overload
def place(
    graph: GraphLike,
    cluster: ClusterLike | None = None,
    *,
    placer: str | Placer = DEFAULT_PLACER,
    weights: FilePath | None = None,
    objective: str | Objective = "",
    against: str | Objective,
    require: str | Iterable[str] = (),
    constraints: ConstraintsLike | None = None,
    rate: Quantity | None = None,
    without: str | None = None,
    subtasks: bool = False,
    confidence: float | None = None,
    trust_profile: bool = False,
    seed: int = 0,
    budget: BudgetLike | None = None,
) -> Front: ...


def place(
    graph: GraphLike,
    cluster: ClusterLike | None = None,
    *,
    placer: str | Placer = DEFAULT_PLACER,
    weights: FilePath | None = None,
    objective: str | Objective = "",
    against: str | Objective = "",
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
) -> Result | Front:
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
    against
        Second objective: instead of one placement, find those of which none is better by both.
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
    Result or Front
        The ``placement``, its ``value``, and the proven ``bound`` if there is one; with
        ``against``, the ``points`` of the front.

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
    return Place.of(locals()).place()
