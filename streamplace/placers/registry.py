"""What a placer is, and the registry that the command line, docs and contract tests read."""

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Protocol

from streamplace.errors import PlacementError, SettingError
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.units import seconds
from streamplace.objectives.registry import Objective
from streamplace.placers.stopwatch import now
from streamplace.registry import Registry

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Budget:
    """How long a placer may search: whichever limit comes first; None is no limit.

    Results depend on the seed alone where ``evaluations`` is what ends the search.
    """

    seconds: float | None = 1.0
    evaluations: int | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None and not 0 < self.seconds <= 1e6:
            raise SettingError(f"a budget of {self.seconds} s; it must be above 0 and at most 1e6")
        if self.evaluations is not None and self.evaluations < 1:
            raise SettingError(f"a budget of {self.evaluations} evaluations; it must be at least 1")


@dataclass(frozen=True, slots=True)
class Improvement:
    """A better placement was found: when, and how good."""

    seconds: float
    value: float


@dataclass(frozen=True, slots=True)
class Found:
    """What a placer may return instead of a bare placement, when it knows more.

    Attributes
    ----------
    bound
        No placement can be better than this, proven.
    trace
        Improvements on the way.
    """

    placement: Placement
    bound: float | None = None
    trace: tuple[Improvement, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """A placer's answer, judged by the objective."""

    placement: Placement
    value: float
    placer: str
    seed: int
    seconds: float
    bound: float | None = None
    trace: tuple[Improvement, ...] = ()


class PlacerFunction(Protocol):
    """The algorithm of a placer; further keyword arguments with defaults are its options."""

    def __call__(
        self, problem: Problem, objective: Objective, *, seed: int, budget: Budget
    ) -> Placement | Found:
        """Answer a problem."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Placer:
    """A registered algorithm with its options set.

    Attributes
    ----------
    options
        The algorithm's own options, by name; what is not set keeps its default.
    budget
        Budget of its own, whatever budget it is given; None takes what it is given.
    """

    name: str
    summary: str
    function: PlacerFunction
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    budget: Budget | None = None

    def place(
        self, problem: Problem, objective: Objective, *, seed: int = 0, budget: Budget | None = None
    ) -> Result:
        """Place, check that the answer is legal, and judge it."""
        start = now()
        answer = self.function(
            problem, objective, seed=seed, budget=self.budget or budget or Budget(), **self.options
        )
        elapsed = now() - start
        found = answer if isinstance(answer, Found) else Found(answer)
        try:
            problem.check(found.placement)
        except PlacementError as error:
            raise PlacementError(
                f"placer {self.name!r} cannot honour this problem: {error}"
            ) from None
        value = objective.value(problem, found.placement)
        LOG.info("%s: %.6g in %.1f ms", self.name, value, 1000 * elapsed)
        return Result(found.placement, value, self.name, seed, elapsed, found.bound, found.trace)

    def defaults(self) -> dict[str, Any]:
        """Options this placer takes, with their defaults."""
        return dict(_options(self.function))

    def texts(self) -> dict[str, Any]:
        """Options that can be written as a text, with their defaults; others are Python's alone."""
        plain = (type(None), str, int, float)
        return {name: value for name, value in self.defaults().items() if isinstance(value, plain)}

    def with_options(self, **options: Any) -> "Placer":
        """Return the same placer with some options set."""
        known = self.defaults()
        for name in options:
            if name not in known:
                takes = ", ".join(known) or "none"
                raise SettingError(f"placer {self.name!r} has no option {name!r}; it takes {takes}")
        return replace(self, options={**self.options, **options})


@lru_cache
def _options(function: PlacerFunction) -> Mapping[str, Any]:
    """Options of an algorithm, read from its signature once: that takes longer than a cut."""
    reserved = {"seed", "budget"}
    return {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and name not in reserved
    }


PLACERS: Registry[Placer] = Registry("streamplace.placers", "placer")


def placer(name: str) -> Callable[[PlacerFunction], PlacerFunction]:
    """Register a placer; the first line of the docstring describes it."""

    def register(function: PlacerFunction) -> PlacerFunction:
        summary = (function.__doc__ or "").strip().splitlines()[0]
        PLACERS.add(name, Placer(name, summary, function))
        return function

    return register


def named_placer(text: str) -> Placer:
    """Placer from a name and options after colons, such as ``metis:k=3`` or ``anneal:budget=5ms``.

    >>> named_placer("random:budget=5ms").budget
    Budget(seconds=0.005, evaluations=None)
    """
    name, *settings = text.split(":")
    placer = _by_name(name)
    options = {}
    for setting in settings:
        option, equals, value = setting.partition("=")
        if not equals:
            raise SettingError(f"{text!r} must be written NAME:OPTION=VALUE")
        if option == "budget":
            placer = replace(placer, budget=Budget(seconds(value)))
            continue
        if option not in placer.texts():
            takes = ", ".join([*placer.texts(), "budget"])
            raise SettingError(f"placer {name!r} has no option {option!r}; it takes {takes}")
        options[option] = _converted(option, value, placer.texts()[option])
    return placer.with_options(**options)


def _by_name(name: str) -> Placer:
    """Placer registered under a name; any ``X-oracle`` follows from a registered X with a k."""
    base = name.removesuffix("-oracle")
    if base == name or name in PLACERS or base not in PLACERS:
        return PLACERS[name]
    from streamplace.placers.oracle import oracle_of

    return oracle_of(PLACERS[base])


def _converted(option: str, value: str, default: Any) -> Any:
    """Convert a text to the type of an option's default; a default of None means a whole number."""
    if isinstance(default, str):
        return value
    kind = float if isinstance(default, float) else int
    try:
        return kind(value)
    except ValueError:
        wanted = "a number" if kind is float else "a whole number"
        raise SettingError(f"option {option} is {value!r}; it must be {wanted}") from None
