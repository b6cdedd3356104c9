"""Trust in profiles: the error of the model for the placement that was measured.

A graph that was measured on a running job has the attribute `CONSISTENCY_ERROR`, which is
predicted / measured rate of that placement, minus 1.
"""

from collections.abc import Iterator
from typing import NamedTuple

from streamplace.errors import ProblemError
from streamplace.model.graph import (
    CONSISTENCY_ERROR,
    CPU_ERROR,
    CPU_OF,
    CPU_ORIGIN,
    PROFILE_DRIFT,
    PROFILE_SPREAD,
    StreamGraph,
)
from streamplace.model.units import digits

DOUBTFUL, WRONG = 0.15, 0.3
"""Errors above which a profile is doubtful, and above which it must not decide anything."""
MAX_RATE_RATIO = 2.0
"""Multiple of the measured rate from which a prediction is called an extrapolation.

Measured: intervals of recorded runs hold as often as they say up to it (docs/results/evidence.md).
"""


def extrapolation(graph: StreamGraph, rate: float) -> str | None:
    """Sentence on a rate far above that of a measured graph; None for other rates and graphs."""
    if CPU_ORIGIN not in graph.attributes or not rate > MAX_RATE_RATIO * graph.source_rate:
        return None
    return (
        f"{digits(rate)} tuples/s are {rate / graph.source_rate:.1f} times the measured rate, so "
        "costs are extrapolated, and another resource may limit the job first; measure again at a "
        "rate in between"
    )


class Trust(NamedTuple):
    """Error of a profile.

    ``drift`` is the expected further change of the CPU per tuple, as a share, of a job that was not
    warm; 0 if it was.
    """

    error: float  # predicted / measured for the profiled placement, minus 1
    drift: float = 0.0

    @property
    def is_wrong(self) -> bool:
        """Whether the profile must not be used.

        The model may be off by the change while a job warms up, because its CPU and its rate are
        not counted at exactly the same time; intervals allow for that.
        """
        spread = 1 + self.drift
        return not (1 - WRONG) / spread <= 1 + self.error <= (1 + WRONG) * spread

    def __str__(self) -> str:
        return f"the model is off by {self.error:+.0%} for the placement that was profiled"


def trust_of(graph: StreamGraph) -> Trust | None:
    """Trust in a measured graph; None if its profile was not checked."""
    error = graph.attributes.get(CONSISTENCY_ERROR)
    if not isinstance(error, float | int):
        return None
    return Trust(float(error), profile_drift(graph))


def profile_drift(graph: StreamGraph) -> float:
    """Expected further change of the CPU per tuple of a job, as a share; 0 if unknown."""
    return _positive(graph, PROFILE_DRIFT)


def cpu_error(graph: StreamGraph) -> float:
    """Relative error of the CPU of an operator by its origin; 0 if threads were measured."""
    return _positive(graph, CPU_ERROR)


def _positive(graph: StreamGraph, name: str) -> float:
    value = graph.attributes.get(name, 0.0)
    return max(0.0, float(value)) if isinstance(value, float | int) else 0.0


def profile_spread(graph: StreamGraph) -> float:
    """Relative spread of the CPU per tuple over the windows of a profile, at most 1; 0 if unknown.

    It is 0 for a job that was not warm: the windows have the same changes as its `profile_drift`.
    """
    return 0.0 if profile_drift(graph) else min(1.0, _positive(graph, PROFILE_SPREAD))


def check_trust(graph: StreamGraph, *, trusts: bool = False) -> str | None:
    """Return the warning to print before a result; None if the profile is not doubtful.

    A profile that is off by more than `WRONG` raises ProblemError, unless the user trusts it.
    """
    trust = trust_of(graph)
    if trust is None or abs(trust.error) <= DOUBTFUL:
        return None
    if trust.is_wrong and not trusts:
        raise ProblemError(
            f"{trust}, so its predictions mean little; profile the job again while it is "
            "warm, or use the profile nevertheless with trust-profile"
        )
    return str(trust)


def cpu_origins(graph: StreamGraph) -> Iterator[str]:
    """Yield where the CPU of the operators of a measured graph comes from."""
    for name, text in graph.attributes.items():
        if name.startswith((CPU_OF, CPU_ORIGIN)):
            yield f"{name}: {text}"
