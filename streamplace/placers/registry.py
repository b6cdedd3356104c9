"""Placers and budgets, and the registry that command line, docs and tests read."""

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, Protocol, get_args

from streamplace.errors import PlacementError, SettingError
from streamplace.model.defaults import PLACE_SECONDS
from streamplace.model.message_text import quoted
from streamplace.model.mixins import call_of
from streamplace.model.paths import wrong
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.units import seconds
from streamplace.objectives.registry import OF_TASKS, Objective
from streamplace.placers.result import Improvement, MoveStep, Result, verified
from streamplace.placers.stopwatch import now
from streamplace.registry import Registry

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a search, which ends at the first limit that it reaches. None is no limit.

    With ``evaluations`` alone no search reads the clock, so that results depend on the seed only,
    not on the machine or its load.

    Examples
    --------
    >>> Budget(evaluations=500)
    Budget(evaluations=500)
    """

    seconds: float | None = None
    evaluations: int | None = None

    __repr__ = call_of

    def __post_init__(self) -> None:
        if self.seconds is not None and not (
            isinstance(self.seconds, Real) and 0 < self.seconds <= 1e6
        ):
            raise SettingError(
                f"the budget is {self.seconds} s; it must be above 0 and at most 1e6"
            )
        if self.evaluations is not None and not (
            isinstance(self.evaluations, Integral) and self.evaluations >= 1
        ):
            raise SettingError(
                f"the budget is {self.evaluations} evaluations; it must be a whole number from 1 on"
            )


def budget_of(budget: Budget | float | str | None) -> Budget | None:
    """Convert a description to a budget; None for None.

    >>> budget_of("50 ms"), budget_of(2)
    (Budget(seconds=0.05), Budget(seconds=2.0))
    """
    if budget is None or isinstance(budget, Budget):
        return budget
    if isinstance(budget, str | Real) and not isinstance(budget, bool):
        return Budget(seconds(budget))
    raise wrong("budget", budget, "a number of seconds, a text such as '50 ms', or a Budget")


def remaining_budget(seconds: float | None, evaluations: int | None) -> Budget:
    """Budget of the remaining limits; without time, a microsecond, for a search's minimum."""
    return Budget(None if seconds is None else max(seconds, 1e-6), evaluations)


USUAL_BUDGET = Budget(PLACE_SECONDS)
"""Budget of a placer without one of its own."""


@dataclass(frozen=True, slots=True)
class Found:
    """A placement with a proven bound and a trace, which a placer may return."""

    placement: Placement
    bound: float | None = None  # proven bound of the value of every placement
    trace: tuple[Improvement, ...] = ()  # improvements during the search
    value: float | None = None  # of the placement, if the placer evaluated it
    # Lower bound of the load of the fullest resource of every placement that carries the full rate.
    least_load: float | None = None
    # Best value for each number of moves from the present placement.
    steps: tuple[MoveStep, ...] = ()
    # Proven bounds of the shares of sources beside stuck ones, level by level.
    levels: tuple[float, ...] = ()


class PlacerFunction(Protocol):
    """The function of a placer; additional keyword arguments with defaults are its options."""

    def __call__(
        self, problem: Problem, objective: Objective, *, seed: int, budget: Budget
    ) -> Placement | Found:
        """Place the operators of a problem."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Placer:
    """A registered algorithm with its options set."""

    name: str
    summary: str
    function: PlacerFunction
    objectives: tuple[str, ...] = ()  # names of those that it supports; empty for any
    # By name; options that are not set keep their defaults.
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    budget: Budget | None = None  # instead of the caller's; None for that, or `PLACE_SECONDS`

    def __repr__(self) -> str:
        return f"<Placer {':'.join([self.name, *(f'{k}={v}' for k, v in self.options.items())])}>"

    def place(
        self, problem: Problem, objective: Objective, *, seed: int = 0, budget: Budget | None = None
    ) -> Result:
        """Place, and evaluate the placement independently of the search.

        An illegal placement, or one that misses a condition, raises PlacementError.
        """
        answer, seconds = self._answer(problem, objective, seed, budget)
        return self.evaluated(problem, objective, seed, seconds, answer)

    def evaluated(
        self, problem: Problem, objective: Objective, seed: int, seconds: float, answer: Found
    ) -> Result:
        """Result of an answer, whose placement is evaluated independently of the search."""
        result = self.result_of(problem, objective, seed, seconds, replace(answer, value=None))
        return verified(result, answer.value)

    def attempt(
        self, problem: Problem, objective: Objective, *, seed: int = 0, budget: Budget | None = None
    ) -> Result:
        """Place without the independent evaluation, as part of a larger search."""
        answer, seconds = self._answer(problem, objective, seed, budget)
        return self.result_of(problem, objective, seed, seconds, answer)

    def _answer(
        self, problem: Problem, objective: Objective, seed: int, budget: Budget | None
    ) -> tuple[Found, float]:
        """Legal answer of the algorithm, and its seconds."""
        self.check(problem, objective)
        start = now()
        limits = self.budget or budget or USUAL_BUDGET
        answer = self.function(problem, objective, seed=seed, budget=limits, **self.options)
        seconds = now() - start
        found = answer if isinstance(answer, Found) else Found(answer)
        if not isinstance(found.placement, Placement):
            kind = type(found.placement)
            raise PlacementError(
                f"placer {self.name!r} returned a {kind.__module__}.{kind.__qualname__}; "
                "return problem.placement(devices)"
            )
        try:
            problem.check(found.placement)
        except PlacementError as error:
            raise PlacementError(
                f"placer {self.name!r} does not support this problem: {error}"
            ) from None
        return found, seconds

    def result_of(
        self, problem: Problem, objective: Objective, seed: int, seconds: float, answer: Found
    ) -> Result:
        """Result of an answer, with the value that its search claims, or else the objective's."""
        value = answer.value
        if value is None:
            value = objective.value(problem, answer.placement)
        LOG.info("%s: %.6g in %.1f ms", self.name, value, 1000 * seconds)
        return Result(
            answer.placement,
            objective.name,
            value,
            self.name,
            seed,
            seconds,
            objective.bound(problem) if answer.bound is None else answer.bound,
            answer.trace,
            least_load=answer.least_load,
            steps=answer.steps,
            levels=answer.levels,
            problem=problem,
            judge=objective,
        )

    def check(self, problem: Problem, objective: Objective) -> None:
        """Raise if the objective does not support the problem, or the placer the objective."""
        objective.check(problem)
        self.check_objective(objective)

    def check_objective(self, objective: Objective) -> None:
        """Raise SettingError if it does not support an objective."""
        if not self.judges(objective):
            other = OF_TASKS in self.objectives and objective.quantity != OF_TASKS
            raise SettingError(
                f"placer {self.name!r} places for {', '.join(self.objectives)}, not for "
                f"{objective.name!r}; choose another placer, such as auto"
                + (f", or add --objective {OF_TASKS}" if other else "")
            )

    def judges(self, objective: Objective) -> bool:
        """Whether it supports an objective."""
        if not self.objectives:
            return True
        plain = not objective.conditions and objective.relocation is None
        return plain and objective.quantity in self.objectives

    def defaults(self) -> dict[str, Any]:
        """Options of this placer, with their defaults."""
        return {name: option.default for name, option in _options(self.function).items()}

    def texts(self) -> dict[str, Any]:
        """Options that can be written as a string, with their defaults."""
        kinds = self.kinds()
        return {name: value for name, value in self.defaults().items() if kinds[name]}

    def kinds(self) -> dict[str, type | None]:
        """Types of the options; None for options that cannot be written as a string."""
        return {name: _kind(option) for name, option in _options(self.function).items()}

    def with_options(self, **options: Any) -> "Placer":
        """Return the same placer with some options set."""
        if not options:
            return self
        defaults = self.defaults()
        for name in options:
            if name not in defaults:
                takes = ", ".join(defaults) or "none"
                raise SettingError(
                    f"placer {self.name!r} has no option {quoted(name)}; it takes {takes}"
                )
        return replace(self, options={**self.options, **options})


@lru_cache
def _options(function: PlacerFunction) -> Mapping[str, inspect.Parameter]:
    """Options of an algorithm; cached, because reading a signature takes longer than a cut."""
    reserved = {"seed", "budget"}
    return {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and name not in reserved
    }


TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
READABLE: dict[type, tuple[Callable[[str], Any], str]] = {
    bool: (lambda text: TRUTH[text.lower()], "true or false"),
    int: (int, "a whole number"),
    float: (float, "a number"),
    str: (str, "a text"),
}
"""Types that options can have on the command line, with a parser and a name for messages."""
PLACERS: Registry[Placer] = Registry("streamplace.placers", "placer")


def placer(
    name: str, *, objectives: tuple[str, ...] = ()
) -> Callable[[PlacerFunction], PlacerFunction]:
    """Register a placer; the first line of the docstring describes it.

    Parameters
    ----------
    objectives
        Names of the objectives that it supports; by default any.
    """
    return PLACERS.decorator(name, partial(Placer, name, objectives=objectives))


def _kind(parameter: inspect.Parameter) -> type | None:
    """Type of an option: from its annotation (optional or not), else from its default."""
    annotated = get_args(parameter.annotation) or (parameter.annotation,)
    for kind in (*annotated, type(parameter.default)):
        if kind in READABLE:
            return kind
    return None
