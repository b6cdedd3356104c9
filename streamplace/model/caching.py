"""Values that follow from an immutable object alone, computed on first use."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
S = TypeVar("S", bound="Caching")


class Caching:
    """Base of immutable objects that keep what was computed from them."""

    __slots__ = ("_compiled",)

    _compiled: dict[str, Any]

    def cached(self: S, name: str, make: Callable[[S], T]) -> T:
        """Return a value that depends only on this object, computed on first use.

        All callers share the value, so it must not change unless it is a cache itself.
        """
        try:
            kept: T = self._compiled[name]
        except AttributeError:
            object.__setattr__(self, "_compiled", {})
        except KeyError:
            pass
        else:
            return kept
        made = self._compiled[name] = make(self)
        return made
