"""Costs of moving: the state of every operator, and its start-up time on every device."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from streamplace.errors import ProblemError
from streamplace.model.arrays import Floats
from streamplace.model.columns import frozen
from streamplace.model.objects import same_fields
from streamplace.model.units import LARGEST


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Moving:
    """The costs of moving operators.

    Attributes
    ----------
    state
        Bytes of state that move with every operator, [N].
    startup
        Seconds that every operator takes to start on every device, [N, D].

    Examples
    --------
    >>> Moving([1e6, 0], [[2, 0.5], [0, 0]]).startup.shape
    (2, 2)
    """

    state: Floats
    startup: Floats

    def __init__(self, state: ArrayLike, startup: ArrayLike) -> None:
        put = partial(object.__setattr__, self)
        put("state", _checked("state", state))
        put("startup", _checked("startup", startup))

    def __eq__(self, other: object) -> bool:
        return same_fields(self, other)

    def __hash__(self) -> int:
        return hash(self.state.tobytes())

    def fitting(self, n_operators: int, n_devices: int) -> "Moving":
        """Return the costs themselves if their shapes fit, else raise ProblemError."""
        expected = {"state": (n_operators,), "startup": (n_operators, n_devices)}
        for name, shape in expected.items():
            actual = getattr(self, name).shape
            if actual != shape:
                raise ProblemError(f"moving: {name} is {actual}; it must be {shape}")
        return self


def _checked(name: str, values: ArrayLike) -> Floats:
    try:
        array = np.array(values, np.float64) + 0.0  # -0.0 becomes 0.0
    except (TypeError, ValueError, OverflowError):
        raise ProblemError(f"moving: {name} must be numbers, a row for every operator") from None
    good = (array >= 0) & (array <= LARGEST)
    if not good.all():
        cell = tuple(np.argwhere(~good)[0].tolist())
        where = "".join(f"[{i}]" for i in cell)
        raise ProblemError(
            f"moving: {name}{where} is {array[cell]:g}; it must be between 0 and {LARGEST:g}"
        )
    return frozen(array)
