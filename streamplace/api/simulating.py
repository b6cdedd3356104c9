"""``simulate``: the value of a placement, its bottleneck, and advice."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from streamplace.errors import SettingError
from streamplace.io.suffixes import PICTURES
from streamplace.model.paths import is_path, path_of
from streamplace.settings.convert import (
    Moved,
    Objective,
    PlacementFile,
    Positive,
    Relocation,
    Seconds,
)
from streamplace.settings.option import (
    EXPLANATION,
    HOW_LONG,
    argument,
    file_key,
    names_in,
    option,
    output,
)
from streamplace.settings.shared import (
    ChangeOptions,
    ConditionOptions,
    ConstraintOptions,
    DeviceOptions,
    LossOptions,
    ObjectiveOptions,
)
from streamplace.settings.verb import SILENT, Progress, Verb

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from streamsim.engine import GivenSettings
    from streamsim.engine.settings import Policy, Randomness

    from streamplace.display.report import Report
    from streamplace.evaluate.queues import QueueRun
    from streamplace.io.given import ClusterLike, ConstraintsLike, GraphLike, PlacementLike
    from streamplace.model.placement import Placement
    from streamplace.model.problem import Problem
    from streamplace.model.units import Quantity
    from streamplace.objectives.explanation import Explanation, PassTimeline

LOG = logging.getLogger(__name__)
TRACE = ".trace.json"


class Simulate(
    ObjectiveOptions,
    ConditionOptions,
    ChangeOptions,
    LossOptions,
    DeviceOptions,
    ConstraintOptions,
    Verb,
):
    """Simulate PLACEMENT of GRAPH: show what it reaches, what limits it, and what to move.

    GRAPH is a graph, or a problem that includes its cluster and constraints. PLACEMENT may also
    place subtasks, as 'place --subtasks' writes them, or be a table that export wrote (.csv).
    Throughput is computed in closed form. Loads are those at the full rate of the sources: a
    resource at 150 % lets two thirds of it pass. One pass is simulated event by event. With
    --constraints, a placement that breaks a rule is refused, and no move that would break one is
    advised; with --require, one that misses a condition is refused. With --engine, the exit code
    is 1 if the run with queues has not settled or its settings decide its result. With --from, the
    command also lists the operators that move, the time that moving takes, and the number of
    passes after which the move pays off: this compares two placements. With --without, only the
    operators of the lost device move.
    """

    graph: Any = argument()
    placement: Any = argument()
    relocation: Moved = None
    present: PlacementFile | None = option(
        "--from FILE",
        "The current placement: lists the moves, their time, and when they pay off.",
        key="from",
    )
    passes: Positive | None = file_key("N", "Passes until the next change, as for place.")
    startup: Seconds | None = option(
        "--startup TIME",
        "Time that a moved operator needs to start, such as '2 s'. Only for problems that do not "
        "specify it.",
        HOW_LONG,
    )
    engine: bool = option(
        "--engine", "Also simulate with queues, which gives latencies and transients."
    )
    duration: Seconds | None = option(
        "--duration TIME",
        "Simulated time with queues.  [default: as long as it takes to settle and to measure]",
        HOW_LONG,
    )
    dt: Seconds | None = file_key(
        "TIME", "Time step with queues, by default from latencies and windows."
    )
    capacity: Positive | None = file_key(
        "N", "Largest queue in tuples, by default from what each stream carries."
    )
    policy: str = option(
        "NAME",
        "How a device shares its CPU among its operators, with queues.",
        default="dynamic",
        choices=names_in("streamsim.engine.settings:POLICIES"),
    )
    random: str = option(
        "--random NAME",
        "What is random with queues, for latencies: nothing, arrivals, or the times of service too "
        "(all).",
        default="nothing",
        choices=names_in("streamsim.engine.settings:RANDOMNESS"),
    )
    out: Path | None = output(
        "File to write: the JSON document (.json), a report (.html), the Gantt chart of one pass "
        "(.png, .svg or .pdf), its trace (.trace.json), or with --engine a plot of the queues "
        "(.png, .svg or .pdf).",
        suffixes=(".json", ".html", *PICTURES),
        keys=EXPLANATION,
    )

    def check(self) -> None:
        """Refuse options of queues without --engine, and of moves without --from."""
        super().check()
        self.need("present", "startup", "passes")
        self.need("engine", "duration", "dt", "capacity", "policy", "random")

    def run(self, progress: Progress = SILENT) -> Simulation:
        """Simulate a placement at the rate and by the objective that its file names."""
        from streamplace.api.arguments import objective_of, placed_problem, problem_for

        changed = problem_for(self.graph, self.machines(), self.constraints, self.changes())
        rate, objective = self._placed_for(changed, progress)
        problem, placed = placed_problem(changed.at_rate(rate), self.placement)
        problem, placed, explanation = self.explain(problem, placed, objective)
        queues, figure = self._queues(problem, placed) if self.engine else (None, None)
        judge = objective_of(problem, objective, require=self.require)
        return Simulation(problem, placed, judge, explanation, queues, figure)

    def explain(
        self, problem: Problem, placement: Placement, objective: str | Objective
    ) -> tuple[Problem, Placement, Explanation]:
        """Explain a placement and the moves to it, after the loss of a device if one is named."""
        from streamplace.api.arguments import objective_of

        move = self.relocation
        if self.present is not None:
            from streamplace.model.relocation import Relocation

            move = Relocation(self.present, self.passes or inf, self.startup)
        problem.check(placement)
        if self.without is not None:
            from streamplace.objectives.survives import after_loss

            problem, placement, move = after_loss(problem, placement, self.without, move)
        judge = objective_of(problem, objective, move, self.require)
        judge.check_use(problem)
        if judge.conditions:
            from streamplace.objectives.conditions import refuse_missed

            refuse_missed(problem, judge, placement)
        return problem, placement, judge.explained(problem, placement)

    def _placed_for(
        self, problem: Problem, progress: Progress
    ) -> tuple[float | None, str | Objective]:
        """Rate and objective of the request, else those that the placement was made for.

        An objective with options replaces the usual one of its quantity; others are only named.
        """
        from streamplace.io.files import spot
        from streamplace.io.placements import read_placed_for
        from streamplace.model.units import digits
        from streamplace.objectives.registry import suggested_by

        path, usual = path_of("placement", self.placement), suggested_by(problem.graph)
        placed_for, name = read_placed_for(path), spot(path)
        rate, objective = self.rate, self.objective
        if rate is None and not self.set:
            rate = placed_for.other_rate(problem.graph.source_rate)
            if rate is not None:
                words = f"at {digits(rate, 6)} tuples/s, as {name} was placed"
                progress.say(f"{words} (--rate for another)")
        if not objective and placed_for.objective not in ("", usual):
            if placed_for.objective.partition(":")[0] == usual:
                objective = placed_for.objective
                progress.say(f"by {objective}, as {name} was placed (--objective for another)")
            else:
                words = f"{name} was placed for {placed_for.objective}"
                progress.say(f"{words} (add --objective to evaluate it)")
        return rate, objective

    def _queues(self, problem: Problem, placement: Placement) -> tuple[QueueRun, Figure | None]:
        """Run with queues, and its picture if ``-o`` names one."""
        from streamplace.evaluate.queues import draw_queues, run_queues, run_queues_traced

        engine = self.queue_settings()
        if self.out is None or self.out.suffix in (".json", ".html"):
            return run_queues(problem, placement, engine), None
        run, ticks, settings = run_queues_traced(problem, placement, engine)
        return run, draw_queues(problem, ticks, settings)

    def queue_settings(self) -> GivenSettings:
        """Settings of the engine; raise SettingError for invalid ones."""
        from streamsim.engine import GivenSettings

        try:
            return self.part(GivenSettings)
        except ValueError as error:
            raise SettingError(str(error)) from None


class Simulation(NamedTuple):
    """A placement with its explanation, and with queues their run and its picture."""

    problem: Problem
    placement: Placement
    judge: Objective
    explanation: Explanation
    queues: QueueRun | None
    figure: Figure | None

    @property
    def status(self) -> int:
        """Exit status: 1 for a run with queues whose result is not reliable."""
        return 0 if self.queues is None or self.queues.valid else 1

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``streamplace simulate --json``."""
        document = self.explanation.document()
        document |= self.judge.condition_facts(self.problem, self.placement)
        if self.queues is None:
            return document
        facts = asdict(self.queues)
        names = ("latency", "latency_without_backlog", "time_to_steady")
        return document | {name: facts.pop(name) for name in names} | {"engine": facts}

    def report(self) -> Report:
        """Report the explanation, the operators, and the run with queues."""
        from streamplace.display.report import Detail, Heading, Report
        from streamplace.display.sheets import operators_sheet

        graph, report = self.problem.graph, self.explanation.report()
        title = Heading(graph.name, f": {report.title}")
        placed = Detail(operators_sheet(graph.operators, self.placement))
        queues = () if self.queues is None else self.queues.report().parts
        told = self.judge.condition_sentences(self.problem, self.placement)
        return Report((title, *report.parts, *told, placed, *queues))

    def page(self) -> Report:
        """Report for a page, on which the placement is drawn."""
        from streamplace.display.report import Report
        from streamplace.drawing.graphs import NamedPlacements

        report = self.explanation.report()
        queues = () if self.queues is None else self.queues.report().parts
        subject = NamedPlacements(self.problem, (("placement", self.placement),), self.judge)
        return Report((*report.parts, *queues), report.title, subject)

    def write(self, path: Path) -> str:
        """Write the document, the trace of a pass, or a picture, by the suffix."""
        from streamplace.io.files import json_text, write_text

        problem, placement = self.problem, self.placement
        if path.name.endswith(TRACE):
            from streamplace.drawing.gantt import trace

            timeline = self._timeline("trace; add --objective makespan for the trace of a pass")
            write_text(path, json_text(trace(problem, placement, timeline)))
            return "trace for https://ui.perfetto.dev"
        if path.suffix == ".json":
            write_text(path, json_text(self.to_json()))
            return "document"
        from streamplace.drawing.figures import empty_figure, finish, save
        from streamplace.drawing.gantt import gantt

        figure = self.figure
        if figure is None:
            timeline = self._timeline(
                "picture of a run; add --engine for queues over time, or --objective makespan for "
                "the Gantt chart of a pass"
            )
            figure = empty_figure()
            finish(figure, gantt(problem, placement, timeline, figure))
        save(figure, path)
        return "plot"

    def _timeline(self, missing: str) -> PassTimeline:
        """One pass; raise SettingError if the objective has none."""
        if self.judge.timeline is None:
            raise SettingError(f"{self.judge.name} has no {missing}")
        return self.judge.timeline(self.problem, self.placement)


def simulate(
    graph: GraphLike,
    placement: PlacementLike,
    cluster: ClusterLike | None = None,
    *,
    objective: str | Objective = "",
    require: str | Iterable[str] = (),
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
    require
        Conditions, as for `place`. A placement that misses one is refused.
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
    from streamplace.api.arguments import placed_problem
    from streamplace.io.given import problem_of

    request = Simulate.of(locals())
    problem = problem_of(graph, request.cluster, request.constraints, request.rate)
    if request.rate is None and is_path(placement):
        _log_other_rate(Path(placement), problem.graph.source_rate)
    return request.explain(*placed_problem(problem, placement), request.objective)[2]


def _log_other_rate(path: Path, simulated: float) -> None:
    """Log that a file names another rate than that of the problem."""
    from streamplace.io.files import spot
    from streamplace.io.placements import read_placed_for
    from streamplace.model.units import digits

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
    from streamplace.api.arguments import placed_problem
    from streamplace.evaluate.queues import run_queues
    from streamplace.io.given import problem_of

    request = Simulate.of({"engine": True, **locals()})
    problem = problem_of(graph, request.cluster, request.constraints, request.rate)
    return run_queues(*placed_problem(problem, placement), request.queue_settings())
