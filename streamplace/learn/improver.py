"""Policies that improve placements: their contract with a placer.

An agent moves from placement to placement on one problem, with trained weights.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem

CHUNK = 16
"""Most steps between two checks of the placer's budget."""
STEPS_PER_OPERATOR = 2
"""Steps of the longest episodes, per operator."""


class Episode(NamedTuple):
    """T steps: the placements after each [T, N], and the policy's record of its inputs."""

    places: Ints
    record: Any


class Agent(ABC):
    """A policy with fixed weights, on one problem."""

    @property
    @abstractmethod
    def length(self) -> int:
        """Steps of a whole episode, at most `STEPS_PER_OPERATOR` for each."""

    @abstractmethod
    def begin(self, place: Ints) -> None:
        """Start an episode at a legal placement [N]."""

    @abstractmethod
    def episode(self, uniform: Floats, *, recorded: int) -> Episode:
        """Take T steps, drawn with numbers [T] in [0, 1), and record the inputs of the first ones.

        Below 0 the likeliest choice is taken. All placements are legal.
        """

    def steps(self, uniform: Floats) -> Ints:
        """Placements [T, N] after each of T steps, nothing recorded."""
        return self.episode(uniform, recorded=0).places

    def recorded(self, place: Ints, uniform: Floats) -> Episode:
        """Go from a placement and record the inputs of every step."""
        self.begin(place)
        return self.episode(uniform, recorded=len(uniform))


def episode_chunks(
    agent: Agent, place: Ints, rng: np.random.Generator, length: int, chunk: int = CHUNK
) -> Iterator[NDArray[np.int32]]:
    """Placements of one episode of so many steps, a few [T, N] at a time."""
    agent.begin(place)
    for done in range(0, length, chunk):
        yield agent.steps(rng.random(min(chunk, length - done)))


Improver = Callable[[Problem], Agent]
"""A policy with fixed weights, of which one is made for each problem."""
