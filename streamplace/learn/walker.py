"""Policies that improve placements: their contract with a placer.

A walker moves from placement to placement on one problem, with trained weights.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem

CHUNK = 16
"""Most steps between two checks of the placer's budget."""
STEPS_PER_OPERATOR = 2
"""Steps of the longest walks, per operator."""


class Walked(NamedTuple):
    """T steps: the placements after each [T, N], and the policy's record of its inputs."""

    places: Ints
    record: Any


class Walker(ABC):
    """A policy with fixed weights, on one problem."""

    @property
    @abstractmethod
    def length(self) -> int:
        """Steps of a whole walk, at most `STEPS_PER_OPERATOR` for each."""

    @abstractmethod
    def begin(self, place: Ints) -> None:
        """Start a walk at a legal placement [N]."""

    @abstractmethod
    def walked(self, uniform: Floats, *, recorded: int) -> Walked:
        """Take T steps, drawn with numbers [T] in [0, 1), and record the inputs of the first ones.

        Below 0 the likeliest choice is taken. All placements are legal.
        """

    def go(self, uniform: Floats) -> Ints:
        """Placements [T, N] after each of T steps, nothing recorded."""
        return self.walked(uniform, recorded=0).places

    def recorded(self, place: Ints, uniform: Floats) -> Walked:
        """Walk from a placement and record the inputs of every step."""
        self.begin(place)
        return self.walked(uniform, recorded=len(uniform))


def walks(
    walker: Walker, place: Ints, rng: np.random.Generator, length: int, chunk: int = CHUNK
) -> Iterator[NDArray[np.int32]]:
    """Placements of one walk of so many steps, a few [T, N] at a time."""
    walker.begin(place)
    for done in range(0, length, chunk):
        yield walker.go(rng.random(min(chunk, length - done)))


class Improver(Protocol):
    """A policy with fixed weights."""

    def on(self, problem: Problem) -> Walker:
        """Return the policy on one problem."""
