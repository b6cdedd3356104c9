"""Auto: a portfolio of cheap placers, then local search, then a proof if the graph is small.

Objectives without a proof of their own begin with all placements, if these are few.

A placer is cheap if its estimated running time is a small part of the budget. The best placement
is the answer; of placements with equal throughput, the one with the least peak load, then the
least traffic, as far as moves of single operators can improve them. If the budget is a number of
evaluations, the learned policy runs first: it needs a handful of evaluations, and search needs
thousands. If the budget is a time, search is as good within a millisecond.
"""

from math import isclose
from typing import Any

import numpy as np
from streamsim import Instance, throughput

from streamplace.errors import StreamplaceError
from streamplace.model.arrays import ROUNDING, Floats, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem, one_moved
from streamplace.objectives.conditions import BEYOND, subject_to
from streamplace.objectives.registry import OBJECTIVES, Condition, Objective
from streamplace.placers.exact.enumeration import BEST_OF_ALL, HALF, is_enumerable
from streamplace.placers.exact.throughput import PROOF, settled
from streamplace.placers.incumbent import SearchInterrupt, continued, interruptible
from streamplace.placers.meter import Meter
from streamplace.placers.portfolio import CHEAP
from streamplace.placers.registry import PLACERS, Budget, Found, Placer, placer, remaining_budget
from streamplace.placers.result import Improvement, Result
from streamplace.placers.stopwatch import now

MAX_PILOT_OPERATORS, PILOT_EVALUATIONS = 2000, 6
"""Most operators for which the learned policy runs first, and its evaluations."""
MAX_PROVABLE = 200
"""Most operators for which a proof may succeed within seconds."""
MAX_EASILY_PROVABLE = 40
"""Most operators for which it usually does, so that it gets most of the budget."""
SEARCH_FIRST, SEARCH_MOSTLY = 0.3, 0.7
SCHEDULES = ("foresight", "cpop", "duplex", "sufferage", "etf")
"""Schedulers for the makespan; only the first runs on large graphs."""
MAX_REBUILT = 1000
"""Most schedules to rebuild if evaluations are limited; beyond these, search is more efficient."""
MAX_TIE_WORK, MAX_TIE_ROUNDS = 3_000_000, 100
"""Limits of tie-breaking, which takes some milliseconds: operators and streams examined; rounds."""
OVERLOAD = 2.0**20
"""Multiple of the rate at which no placement keeps up, so that throughput gives the peak load; a
power of two, so that loads are multiplied without rounding."""
FLOWS = ("rate", "input_rate", "output_rate", "load", "core_load", "tuples", "intake", "traffic")
"""Fields of an instance that are proportional to the rate of the sources."""


@placer("auto")
def auto(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Found:
    """Portfolio, local search, and a proof where the graph is small; the default."""
    cheap = [member.name for member in CHEAP]
    PLACERS.prepare(SCHEDULES if objective.usual_kind == "pass" else cheap)
    PLACERS.prepare(("anneal", "exact"))
    team = Team(problem, objective, seed, budget)
    with interruptible(lambda: team.answer() if team.placements else None):
        _work(team)
    return team.answer()


def _work(team: "Team") -> None:
    """Run the members one after another.

    If evaluations are quick, the clock ends only the proof.
    """
    problem, objective, budget = team.problem, team.objective, team.budget
    has_proof = objective.usual_kind in ("rate", "pass")
    # Under a limit of moves, the search itself proves what few moves reach.
    has_proof |= objective.relocation is not None and objective.plain.unit != "s"
    if not has_proof and is_enumerable(problem, objective, budget):
        team.ask(BEST_OF_ALL, team.part(HALF))
    if objective.relocation is not None:  # the search starts at the present placement
        team.ask("anneal", team.part(1.0))
        return
    if objective.usual_kind == "pass":
        _shortest(team)
        return
    quick, n = objective.quick, problem.n_operators
    if quick and budget.evaluations is not None and n <= MAX_PILOT_OPERATORS:
        team.ask("pilot", team.part(1.0, PILOT_EVALUATIONS), refine="none", samples=0)
    for member in CHEAP:
        if member.cheap(problem, budget) and (quick or not team.late):
            calls, share = member.calls(problem), member.share if quick else 1.0
            timed = budget.seconds is not None and member.ends_with_clock(problem)
            part = team.part(share, calls) if timed or not quick else team.untimed(calls)
            team.ask(member.name, part)
    provable = quick and n <= MAX_PROVABLE
    if quick or not team.late:
        share = SEARCH_FIRST if n <= MAX_EASILY_PROVABLE else SEARCH_MOSTLY
        rest = SEARCH_MOSTLY if objective.ties else 1.0
        team.ask("anneal", team.part(share if provable else rest), start=team.placements)
    if provable and not team.late:
        team.ask(PROOF, team.part(1.0))
    if objective.usual_kind == "rate":
        team.settle()


def _shortest(team: "Team") -> None:
    """Run the schedulers, then a proof that begins with a search.

    Large graphs without small stages get a search only. Schedulers that scan all ready tasks at
    every step skip large graphs.
    """
    problem, evaluations = team.problem, team.budget.evaluations
    small = problem.n_operators <= MAX_PILOT_OPERATORS
    for member in SCHEDULES if small else SCHEDULES[:1]:
        team.ask(member, team.part(1.0, 1))
    if evaluations is not None and small:
        most = min(MAX_REBUILT, evaluations * 4 // 5)
        team.ask("pilot", team.part(1.0, most), refine="none", samples=most)
    from streamplace.placers.exact.makespan import stages_of, unruled
    from streamplace.scheduling.tasks import tasks_of

    provable = problem.n_operators <= MAX_PROVABLE
    provable = provable or stages_of(unruled(tasks_of(problem))) is not None
    provable &= PLACERS["exact"].judges(team.objective)
    member = "exact" if provable else "anneal"
    team.ask(member, team.part(1.0), start=team.placements)


class Team:
    """Placers that share one budget and run one after another, and their best result."""

    def __init__(self, problem: Problem, objective: Objective, seed: int, budget: Budget) -> None:
        self.problem, self.objective, self.budget = problem, objective, budget
        self._seed = seed
        self._start, self._meter = now(), Meter(budget)
        self._best: Result | None = None
        self._bound: float | None = None
        self._settled: Placement | None = None
        self._least_load: float | None = None
        self._levels: tuple[float, ...] = ()
        self._trace: list[Improvement] = []
        self._before = 0
        self._error: StreamplaceError | None = None

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The best placement so far, if any."""
        return () if self._best is None else (self._best.placement,)

    @property
    def late(self) -> bool:
        """Whether the time is over and the best result meets the conditions."""
        best = self._best
        return self._meter.seconds == 0 and best is not None and abs(best.value) < BEYOND

    def ask(self, chosen: str | Placer, budget: Budget | None, **options: Any) -> None:
        """Run a placer, unless its budget is None or the best result is proven.

        The best answer of an interrupted search is kept.
        """
        if budget is None or self._proven():
            return
        began = now() - self._start
        case = self.problem, self.objective
        try:
            member = PLACERS[chosen] if isinstance(chosen, str) else chosen
            member = member.with_options(**options)
            result = member.attempt(*case, seed=self._seed, budget=budget)
        except SearchInterrupt as stop:
            seconds = now() - self._start - began
            self._take(member.result_of(*case, self._seed, seconds, stop.best), began)
            raise
        except StreamplaceError as error:
            self._error = error
            return
        self._take(result, began)

    def settle(self) -> None:
        """Lower the load of a placement that keeps up; raise sources beside stuck ones."""
        if self._best is not None and not self.late:
            found, part = Found(self._best.placement), self.part(1.0)
            found = settled(self.problem, self.objective, found, self._seed, part)
            self._settled, self._least_load = found.placement, found.least_load
            self._levels = found.levels

    def part(self, share: float, evaluations: int | None = None) -> Budget | None:
        """Share of the remaining budget, with at most ``evaluations``; None if too few remain."""
        seconds, granted = self._meter.seconds, self._given(share, evaluations)
        if granted == 0:
            return None
        return remaining_budget(None if seconds is None else seconds * share, granted)

    def untimed(self, evaluations: int) -> Budget | None:
        """Budget of ``evaluations`` without a time limit; None if too few remain."""
        granted = self._given(1.0, evaluations)
        return None if granted == 0 else Budget(None, granted)

    def answer(self) -> Found:
        """Return the best placement, with the best bound and the trace."""
        if self._best is None:
            raise self._error or StreamplaceError(
                "no placer found a placement within the budget; give a larger budget"
            )
        placement = self._best.placement if self._settled is None else self._settled
        if self.objective.usual_kind == "rate" and not self._levels:
            began = now() - self._start
            placement = with_least_peak(self.problem, placement, self._meter)
            value = self.objective.value(self.problem, placement)
            # Beside constant loads, the placement with the least peak may carry more.
            if not isclose(value, self._best.value, rel_tol=ROUNDING):
                self._trace.append(Improvement(began, value, self._before))
        if self.objective.ties and not self._best.steps:
            placement = self._best_of_equals(placement)
        steps, load = self._best.steps, self._least_load
        trace, levels = tuple(self._trace), self._levels
        return Found(placement, self._bound, trace, least_load=load, steps=steps, levels=levels)

    def _best_of_equals(self, placement: Placement) -> Placement:
        """Look for a placement of no less value that is better by the objective of ties."""
        from streamplace.placers.anneal.generic import climb

        part, objective = self.part(1.0), self.objective
        if part is None or self.late or self._best is None:
            return placement
        kept = Condition(objective.plain, objective.sense, self._best.value)
        judge = subject_to(OBJECTIVES[objective.ties], (*objective.conditions, kept))
        return climb(self.problem, judge, (placement,), self._seed, Meter(part)).placement

    def _given(self, share: float, limit: int | None) -> int | None:
        """Deduct and return the evaluations of the next member; None without limit."""
        left = self._meter.evaluations
        if left is None:
            return None
        if left == 0 or ((limit or 0) > left and self._best is not None):
            return 0
        granted = max(1, int(left * share))
        granted = granted if limit is None else min(granted, limit)
        self._meter.spend(granted)
        return granted

    def _proven(self) -> bool:
        if self._best is None or self._bound is None:
            return False
        return not self.objective.better(self._bound, self._best.value)

    def _take(self, result: Result, began: float) -> None:
        """Keep the better placement and bound, and extend the trace."""
        better = self.objective.better
        spent = max((step.evaluations for step in result.trace), default=1)
        steps = (*result.trace, Improvement(result.seconds, result.value, spent))
        self._trace = continued(self._trace, steps, began, self._before, better)
        self._before += spent
        if self._best is None or better(result.value, self._best.value):
            self._best = result
        if result.bound is not None and (self._bound is None or better(self._bound, result.bound)):
            self._bound = result.bound


def with_least_peak(problem: Problem, placement: Placement, meter: Meter) -> Placement:
    """Return a placement of no less throughput, with least peak load, then least traffic.

    All placements that carry the full rate have equal throughput, whether or not they leave
    capacity free. Single units are moved while that lowers the peak load, or lowers the traffic
    without raising the peak, so the minimum is local. Graphs too large to examine keep their
    placement, and so do all when the time is over.
    """
    unit = problem.unit
    moves = (int(unit.max()) + 1) * problem.n_devices
    rounds = min(
        MAX_TIE_ROUNDS, MAX_TIE_WORK // (moves * (problem.n_operators + problem.graph.n_streams))
    )
    if not rounds or meter.seconds == 0:
        return placement
    # Windows emit in proportion, unlike at a higher rate.
    flows = {name: OVERLOAD * getattr(problem.instance, name) for name in FLOWS}
    overloaded = problem.instance._replace(**flows)
    place = np.array(placement.index, np.int32)
    peak, traffic = _cost(overloaded, place[None])
    best = peak[0], traffic[0]
    for _ in range(rounds):
        if meter.seconds == 0:
            break
        near = one_moved(problem, place)[:, unit]
        near = near[problem.legal(near)]
        if not len(near):
            break
        peak, traffic = _cost(overloaded, near)
        first = np.lexsort((traffic, peak))[0]
        if not (peak[first], traffic[first]) < best:
            break
        place, best = near[first], (peak[first], traffic[first])
    reached = throughput(problem.instance, np.stack([placement.index, place]))
    return problem.placement(place) if reached[1] >= reached[0] else placement


def _cost(overloaded: Instance, placements: Ints) -> tuple[Floats, Floats]:
    """Peak load and traffic between devices of each placement."""
    peak = 1 / np.maximum(throughput(overloaded, placements), 1e-300)
    remote = placements[:, overloaded.source] != placements[:, overloaded.target]
    return peak / OVERLOAD, remote @ overloaded.traffic / OVERLOAD
