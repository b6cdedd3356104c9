"""Options of the throughput: operators that cost more than the graph says."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from streamplace.errors import SettingError
from streamplace.model.arrays import Floats, Ints
from streamplace.model.defaults import USUAL_ERROR
from streamplace.model.messages import quoted
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.report import Report, percent
from streamplace.model.units import exact_digits
from streamplace.objectives.explanation import PlainExplanation
from streamplace.objectives.registry import DEFAULT, Objective

SUBTASK = re.compile(r"(.*#)(0|[1-9][0-9]{0,7})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Protection:
    """Operators of each device that may cost more at the same time."""

    number: int  # Γ, how many; the subtasks of an operator count as one
    error: float = USUAL_ERROR  # share by which they cost more

    @property
    def words(self) -> str:
        """The worst case in words.

        >>> Protection(1).words
        'any operator of each device costs 15 % more'
        >>> Protection(3, 0.5).words
        'any 3 operators of each device cost 50 % more'
        """
        more = f"{100 * self.error:.3g} % more"
        if self.number == 1:
            return f"any operator of each device costs {more}"
        return f"any {self.number} operators of each device cost {more}"

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> "Protection":
        """Parse the options of ``throughput:robust=2:error=0.2``.

        >>> Protection.of({"robust": "2", "error": "20%"})
        Protection(number=2, error=0.2)
        """
        unknown = sorted(texts.keys() - {"robust", "error"})
        if unknown:
            raise SettingError(
                f"objective throughput has no option {quoted(unknown[0])}; it has robust, error"
            )
        if "robust" not in texts:
            raise SettingError(
                "option error of throughput needs robust, as in throughput:robust=2:error=0.2"
            )
        return cls(int(_number(texts, "robust")), _number(texts, "error", USUAL_ERROR))


def protected(
    objective: str | Objective, robust: int, error: float | None = None
) -> str | Objective:
    """Objective for which so many operators of each device may cost more by an error.

    >>> protected("", 2), protected("latency", 0)
    ('throughput:robust=2:error=0.15', 'latency')
    """
    if not robust:
        if error is not None:
            raise SettingError("error is that of robust operators; give robust, or drop error")
        return objective
    if isinstance(objective, Objective) or objective not in ("", DEFAULT):
        raise SettingError("only the throughput can be robust; drop robust, or the objective")
    share = USUAL_ERROR if error is None else error
    return f"{DEFAULT}:robust={robust}:error={exact_digits(share)}"


@dataclass(frozen=True, slots=True)
class WorstCase(PlainExplanation):
    """Value in the worst case, beside the loads of the graph as it is."""

    def headline(self) -> dict[str, Any]:
        """The value, and the facts of the graph as it is."""
        facts = {} if self.beside is None else self.beside.headline()
        return {"robust_throughput": self.value, **facts}

    def brief(self) -> Report:
        """Devices with their loads and operators, and the bottleneck."""
        return PlainExplanation.brief(self) if self.beside is None else self.beside.brief()


def robust(problem: Problem, placements: Ints, protection: Protection) -> Floats:
    """Relative throughput [B] if on every device the dearest operators cost more."""
    from streamsim.robust import robust_throughput

    units = problem.cached("units of robust operators", _units)
    return robust_throughput(
        problem.instance, placements, protection.number, protection.error, units
    )


def explain_robust(problem: Problem, placement: Placement, protection: Protection) -> WorstCase:
    """Explain a placement in the worst case."""
    from streamplace.objectives.throughput.explain import explain

    value = float(robust(problem, placement.index[None, :], protection)[0])
    words = f"{percent(value)} of the sources' rate even if {protection.words}"
    return WorstCase("throughput", value, words, placement, explain(problem, placement))


def _units(problem: Problem) -> Ints:
    """Unit of every operator; subtasks of one operator, such as map#0 and map#1, share one.

    Subtasks are numbered from 0 without gaps, unlike operators of which imports repeat the name.
    """
    names = problem.graph.operators.name
    rows_by_number: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for v, name in enumerate(names):
        if named := SUBTASK.fullmatch(name):
            rows_by_number[named[1]][int(named[2])] = v
    units = np.arange(len(names), dtype=np.int32)
    for rows in rows_by_number.values():
        if max(rows) == len(rows) - 1:
            units[list(rows.values())] = rows[0]
    return units


def _number(texts: Mapping[str, str], key: str, usual: float = 0.0) -> float:
    text = texts.get(key)
    if text is None:
        return usual
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = np.nan
    if not isfinite(value) or value < 0 or (key == "robust" and value != int(value)):
        what = "a whole number" if key == "robust" else "a share such as 0.1 or 10%"
        raise SettingError(f"option {key} of throughput is {quoted(text)}; give {what}")
    return value
