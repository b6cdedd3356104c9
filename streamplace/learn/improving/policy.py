"""What the learner and the placer ask of a policy that improves placements."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem

CHUNK = 16
"""Most steps between two looks of the placer."""
STEPS_PER_OPERATOR = 2
"""Of the longest walks."""


class Walked(NamedTuple):
    """T steps: the placements after each [T, N], and what the policy saw."""

    places: Ints
    record: Any


class Walker(Protocol):
    """A policy with weights as they are, on one problem."""

    @property
    def length(self) -> int:
        """Steps of a whole walk, at most `STEPS_PER_OPERATOR` for each."""
        ...

    def begin(self, place: Ints) -> None:
        """Stand at a legal placement [N], at the first step of a walk."""
        ...

    def go(self, uniform: Floats) -> Ints:
        """Take T steps, drawn with numbers [T] in [0, 1); the legal placements [T, N] then."""
        ...

    def recorded(self, place: Ints, uniform: Floats) -> Walked:
        """Walk from a placement and record what was seen."""
        ...


def walks(
    walker: Walker, place: Ints, rng: np.random.Generator, length: int, chunk: int = CHUNK
) -> Iterator[NDArray[np.int32]]:
    """Placements of one walk of so many steps, a few [T, N] at a time."""
    walker.begin(place)
    for done in range(0, length, chunk):
        yield walker.go(rng.random(min(chunk, length - done)))


class Improver(Protocol):
    """A policy with weights as they are."""

    def on(self, problem: Problem) -> Walker:
        """Return the policy on one problem."""
        ...


class ImprovingPolicy(Protocol):
    """A policy whose parameters are trained."""

    @property
    def module(self) -> Any:
        """The parameters."""
        ...

    def improver(self) -> Improver:
        """Return the policy with its parameters as they are now."""
        ...

    def choices(self, walked: Sequence[tuple[Any, Walked]]) -> tuple[Any, Any]:
        """Log-probability and entropy [P] of all choices, walk after walk, step after step."""
        ...

    def features(self) -> dict[str, Any]:
        """What it looks at, fit for JSON: ``names``."""
        ...
