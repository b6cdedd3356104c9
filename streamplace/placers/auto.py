"""Auto: what an expert would do within the budget.

First the cheap members of the portfolio, those expected to take a small part of the budget each;
then local search; then, on small graphs, a proof. The best answer of all counts. Where evaluations
are counted, because they are dear, the learned policy begins: it needs a handful where search
needs thousands. Where seconds are counted, search is as good within a millisecond.
"""

from dataclasses import dataclass
from typing import Any

from streamplace.errors import StreamplaceError
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import PLACERS, Budget, Found, Improvement, Result, placer
from streamplace.placers.stopwatch import now


@dataclass(frozen=True, slots=True)
class Member:
    """A cheap member of the portfolio and what it costs, in seconds.

    Attributes
    ----------
    per_call, per_operator
        Expected cost of one call: constant, and per operator.
    per_device
        Whether it is called once per device.
    """

    name: str
    per_call: float
    per_operator: float
    per_device: bool = False

    def calls(self, problem: Problem) -> int:
        """Calls that it takes, each with a placement to evaluate."""
        return problem.n_devices if self.per_device else 1

    def cost(self, problem: Problem) -> float:
        """Expected seconds on a problem."""
        return self.calls(problem) * (self.per_call + self.per_operator * problem.n_operators)


CHEAP = (
    Member("single", 2e-5, 4e-8, per_device=True),
    Member("metis-oracle", 3e-4, 6e-6, per_device=True),
    Member("fuser-oracle", 3e-4, 5e-5, per_device=True),
    Member("metis", 3e-4, 6e-6),
)
CHEAP_SHARE = 0.15
"""A member is cheap where it is expected to take no more than this share of the budget."""
ASSUMED_SECONDS = 1.0
"""What cheap members are measured against where the budget has no seconds."""
QUICKLY_DECIDED, QUICK_LOOKS = 2000, 6
"""Up to this many operators the learned policy answers at once, with so many evaluations."""
PROVABLE = 200
"""Up to this many operators a proof may succeed within seconds;"""
EASILY_PROVABLE = 40
"""up to this many it mostly does, and gets most of the budget."""
SEARCH_FIRST, SEARCH_MOSTLY = 0.3, 0.7


@placer("auto")
def auto(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Found:
    """Portfolio, local search, and a proof where the graph is small; the default."""
    team = Team(problem, objective, seed, budget)
    try:
        few = budget.evaluations is not None and problem.n_operators <= QUICKLY_DECIDED
        _work(team, problem, objective, budget.seconds or ASSUMED_SECONDS, few)
    except KeyboardInterrupt:
        if not team.placements:
            raise
    return team.found()


def _work(team: "Team", problem: Problem, objective: Objective, seconds: float, few: bool) -> None:
    """Let the members try, one after another; interrupted, the best so far is the answer."""
    if few:
        team.ask("pilot", evaluations=QUICK_LOOKS, refine="none", samples=0)
    for member in CHEAP:
        if member.cost(problem) <= CHEAP_SHARE * seconds:
            team.ask(member.name, evaluations=member.calls(problem))
    team.ask("anneal", _search_share(problem, objective), start=team.placements)
    if problem.n_operators <= PROVABLE and objective.name == "throughput":
        team.ask("exact", 1.0)


def _search_share(problem: Problem, objective: Objective) -> float:
    if problem.n_operators > PROVABLE or objective.name != "throughput":
        return 1.0
    return SEARCH_FIRST if problem.n_operators <= EASILY_PROVABLE else SEARCH_MOSTLY


class Team:
    """Placers asked one after another on one budget, and the best of what they answered."""

    def __init__(self, problem: Problem, objective: Objective, seed: int, budget: Budget) -> None:
        self._problem, self._objective, self._seed = problem, objective, seed
        self._start = now()
        self._budget = budget
        self._evaluations = budget.evaluations
        self._best: Result | None = None
        self._bound: float | None = None
        self._trace: list[Improvement] = []
        self._error: StreamplaceError | None = None

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The best placement so far, if any."""
        return () if self._best is None else (self._best.placement,)

    def ask(
        self,
        name: str,
        share: float = 1.0,
        *,
        evaluations: int | None = None,
        **options: Any,
    ) -> None:
        """Let a placer try, with a share of what is left; not if nothing is left to gain.

        Parameters
        ----------
        evaluations
            Those that it takes, where they are known; if fewer are left, others are asked.
        """
        if name not in PLACERS or self._proven():
            return
        left = self._left(share, evaluations)
        if left is None:
            return
        began = now() - self._start
        try:
            member = PLACERS[name].with_options(**options) if options else PLACERS[name]
            result = member.place(self._problem, self._objective, seed=self._seed, budget=left)
        except StreamplaceError as error:
            self._error = error
            return
        self._take(result, began)

    def found(self) -> Found:
        """Return the best answer."""
        if self._best is None:
            raise self._error or StreamplaceError("no placer could answer within the budget")
        return Found(self._best.placement, self._bound, tuple(self._trace))

    def _left(self, share: float, most: int | None) -> Budget | None:
        """Budget of the next member; None where nothing is left and there is an answer."""
        seconds, evaluations = self._budget.seconds, self._evaluations
        if seconds is not None:
            seconds -= now() - self._start
            if seconds <= 0 and self._best is not None:
                return None
            seconds = max(seconds * share, 1e-6)
        if evaluations is not None:
            if evaluations == 0 or ((most or 0) > evaluations and self._best is not None):
                return None
            given = max(1, int(evaluations * share))
            given = given if most is None else min(given, most)
            self._evaluations = evaluations - given
            evaluations = given
        return Budget(seconds, evaluations)

    def _proven(self) -> bool:
        if self._best is None or self._bound is None:
            return False
        return not self._objective.better(self._bound, self._best.value)

    def _take(self, result: Result, began: float) -> None:
        """Keep what is better, and note when it came."""
        better = self._objective.better
        for step in (*result.trace, Improvement(result.seconds, result.value)):
            if not self._trace or better(step.value, self._trace[-1].value):
                self._trace.append(Improvement(began + step.seconds, step.value))
        if self._best is None or better(result.value, self._best.value):
            self._best = result
        if result.bound is not None and (self._bound is None or better(self._bound, result.bound)):
            self._bound = result.bound
