"""Whether a measured graph may be trusted: what its model says of the placement that was measured.

A graph that was measured on a running job has the attribute `CONSISTENCY_ERROR`: what the model
predicts for the present placement, over what was measured there, less 1.
"""

from typing import NamedTuple

from streamplace.errors import ProblemError
from streamplace.model.graph import CONSISTENCY_ERROR, CULPRIT, StreamGraph
from streamplace.model.messages import quoted

DOUBTFUL, WRONG = 0.15, 0.3
"""Errors from which on a profile is doubted, and from which on nothing is decided with it."""


class Trust(NamedTuple):
    """What a profile says of itself.

    Attributes
    ----------
    error
        Predicted over measured for the present placement, less 1.
    culprit
        Operator whose figure is the likely cause.
    """

    error: float
    culprit: str

    @property
    def is_doubtful(self) -> bool:
        """Whether users should know before they read anything else."""
        return abs(self.error) > DOUBTFUL

    @property
    def is_wrong(self) -> bool:
        """Whether nothing should be decided with it."""
        return abs(self.error) > WRONG

    def __str__(self) -> str:
        text = f"the model is off by {self.error:+.0%} for the placement that was profiled"
        if self.culprit:
            text += f"; the likely cause is the figure of operator {quoted(self.culprit)}"
        return text


def trust_of(graph: StreamGraph) -> Trust | None:
    """What a measured graph says of itself; None where it was not checked."""
    error = graph.attributes.get(CONSISTENCY_ERROR)
    if not isinstance(error, float | int):
        return None
    return Trust(float(error), str(graph.attributes.get(CULPRIT, "")))


def check_trust(graph: StreamGraph, *, trusts: bool = False) -> str | None:
    """Return what to print before a result; None where nothing speaks against the profile.

    Parameters
    ----------
    trusts
        Whether the user asked for a result whatever the profile says.

    Raises
    ------
    ProblemError
        For a profile that is off by more than `WRONG`, unless the user trusts it.
    """
    trust = trust_of(graph)
    if trust is None or not trust.is_doubtful:
        return None
    if trust.is_wrong and not trusts:
        raise ProblemError(
            f"{trust}, so nothing that it predicts means much; profile the job again while it is "
            "warm, or use the profile nevertheless with --trust-profile"
        )
    return str(trust)
