"""Conditions: the best placement by one objective among those that reach limits of others."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from streamplace.errors import PlacementError, SettingError
from streamplace.model.arrays import Floats, Ints
from streamplace.model.message_text import quoted
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.relocation import Relocation
from streamplace.model.units import seconds
from streamplace.objectives.devices import least_devices
from streamplace.objectives.registry import Condition, Objective, named_objective
from streamplace.objectives.relocation import limited, relocating

BEYOND: Final = 1e100
"""A number beyond the value of any placement."""
_WRITTEN = re.compile(r"\s*(\w[\w-]*\(.*\)|[\w-]+(?::[\w-]+=[^\s:=<>]+)*)\s*(>=|<=)\s*(.+?)\s*")


def read_condition(text: str, problem: Problem | None = None) -> Condition:
    """Read a condition, such as ``throughput>=0.99`` or ``latency(camera->alarm)<=20ms``.

    Examples
    --------
    >>> read_condition("throughput >= 0.99").text
    'throughput>=0.99'
    """
    written = _WRITTEN.fullmatch(text)
    if written is None:
        raise SettingError(
            f"condition {quoted(text)} cannot be read; write OBJECTIVE>=NUMBER or "
            "OBJECTIVE<=NUMBER, as in throughput>=0.99 or latency<=20ms"
        )
    name, sign, number = written.groups()
    objective = named_objective(name)
    objective = objective if problem is None else objective.on(problem)
    return Condition(objective, "max" if sign == ">=" else "min", _number(number, objective, text))


def _number(text: str, objective: Objective, whole: str) -> float:
    if objective.unit == "s":
        return seconds(text)
    share = not objective.unit and text.endswith("%")
    try:
        number = float(text.removesuffix("%")) / (100 if share else 1)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise SettingError(f"condition {quoted(whole)}: {quoted(text)} is not a number")
    return number


def subject_to(objective: Objective, conditions: Sequence[Condition]) -> Objective:
    """Return the objective restricted to placements that meet all conditions.

    A placement that misses a condition is worse than every placement that meets all conditions, in
    proportion to its shortfall, which leads a search towards the conditions.

    Examples
    --------
    >>> fewest = subject_to(named_objective("devices"), [read_condition("throughput>=1")])
    >>> fewest.name, fewest.sense
    ('devices with throughput>=1', 'min')
    """
    if not conditions:
        return objective

    texts = ", ".join(sorted(condition.text for condition in conditions))
    bound = objective.bound
    if objective.kind == "devices":
        shares = [c.limit for c in conditions if c.objective.kind == "rate" and c.sense == "max"]
        bound = partial(least_devices, share=max(shares, default=0.0))
    return replace(
        objective,
        bound=bound,
        name=f"{objective.name} with {texts}",
        evaluate=partial(_restricted, objective, tuple(conditions)),
        ordered=objective.ordered or any(c.objective.ordered for c in conditions),
        usual=False,
        quick=False,
        base=objective,
        conditions=tuple(conditions),
    )


def _restricted(
    objective: Objective,
    conditions: tuple[Condition, ...],
    problem: Problem,
    placements: Ints,
    priorities: Floats | None = None,
    queue: str = "priority",
) -> Floats:
    values = objective.values(problem, placements, priorities, queue)
    missing = np.zeros(len(values))
    for c in conditions:
        missing += c.shortfall(c.objective.values(problem, placements, priorities, queue))
    worst = BEYOND * (1.0 + missing)
    return np.where(missing > 0, worst if objective.sense == "min" else -worst, values)


def composed_objective(
    chosen: str | Objective,
    require: Iterable[str] = (),
    relocation: Relocation | None = None,
    problem: Problem | None = None,
) -> Objective:
    """Build an objective from its name, the cost of moves, if any, and conditions.

    For a problem, values and limits have the units of the problem.

    Examples
    --------
    >>> composed_objective("devices", ["throughput>=1"]).name
    'devices with throughput>=1'
    """
    plain = named_objective(chosen) if isinstance(chosen, str) else chosen
    plain = plain if problem is None else plain.on(problem)
    limits = [read_condition(text, problem) for text in require]
    if relocation is None:
        return subject_to(plain, limits)
    if relocation.most_moves is not None:
        limits.append(limited(relocation))
    return subject_to(relocating(plain, relocation), limits)


def require_conditions(problem: Problem, objective: Objective, placement: Placement) -> None:
    """Raise PlacementError if a placement misses a condition; the message names the shortfall."""
    for condition in objective.conditions:
        if not condition.is_met(problem, placement):
            raise PlacementError(
                f"no placement was found with {condition.text} (the best one: "
                f"{condition.in_words(problem, placement)}); ask for {condition.looser}, or give a "
                "larger budget or more devices"
            )


def refuse_missed(problem: Problem, objective: Objective, placement: Placement) -> None:
    """Raise PlacementError with all conditions that a given placement misses."""
    missed = [c for c in objective.conditions if not c.is_met(problem, placement)]
    if missed:
        words = "; and ".join(c.in_words(problem, placement) for c in missed)
        raise PlacementError(f"the placement misses a required condition: {words}")
