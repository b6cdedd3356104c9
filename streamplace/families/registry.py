"""Benchmark families, and the registry that the command line and the docs read."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Concatenate, TypeVar

from streamplace.errors import SettingError
from streamplace.families.parameters import Parameters
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.problem import Problem
from streamplace.registry import Registry

P = TypeVar("P", bound=Parameters)
Generator = Callable[Concatenate[P, int, ...], Iterator[StreamGraph | Problem]]


@dataclass(frozen=True, slots=True)
class Family:
    """A registered family of benchmark graphs, or of problems: graphs with clusters of their own.

    Examples
    --------
    >>> branched = FAMILIES["branched"]
    >>> next(branched.generate(branched.parameters(), seed=0)).name
    'b1x2-v2-000'
    """

    name: str
    summary: str
    # Frozen dataclass whose fields all have defaults; see `streamplace.families.parameters`.
    parameters: type[Any]
    function: Generator[Any]

    def __repr__(self) -> str:
        return f"<Family {self.name}>"

    def generate(
        self, parameters: Parameters | None = None, seed: int = 0, start: int = 0
    ) -> Iterator[StreamGraph | Problem]:
        """Graphs or problems one after the other, equal for equal parameters and seeds.

        Parameters
        ----------
        start
            Number of the first. If the generator of the family takes ``start``, it begins there;
            otherwise the graphs before it are generated and skipped.
        """
        chosen = self.parameters() if parameters is None else parameters
        if not isinstance(chosen, self.parameters):
            raise SettingError(
                f"family {self.name!r} takes parameters of type {self.parameters.__name__}, "
                f"not {type(chosen).__name__}"
            )
        if type(seed) is not int or seed < 0:
            raise SettingError(f"seed is {quoted(seed)}; it must be a whole number, 0 or more")
        if not start:
            return self.function(chosen, seed)
        if "start" in inspect.signature(self.function).parameters:
            return self.function(chosen, seed, start=start)
        return islice(self.function(chosen, seed), start, None)


def graph_of(item: StreamGraph | Problem) -> StreamGraph:
    """Graph of an item of a family, a graph or a problem."""
    return item.graph if isinstance(item, Problem) else item


FAMILIES: Registry[Family] = Registry("streamplace.families", "family")


def family(name: str, parameters: type[P]) -> Callable[[Generator[P]], Generator[P]]:
    """Register a family; the first line of the function's docstring describes it."""
    return FAMILIES.decorator(name, lambda summary, f: Family(name, summary, parameters, f))
