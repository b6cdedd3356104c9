"""What earlier walks of every training problem met."""

import numpy as np

from streamplace.learn.algorithms.memory import RowMemory
from streamplace.model.arrays import Floats, Ints, Longs


class WalkMemory(RowMemory):
    """The best placement and reward met of every problem, and the mean return of every step.

    Shapes: P problems, N operators of the largest, T steps of the longest walk.

    Examples
    --------
    >>> memory = WalkMemory(problems=1, operators=2, steps=1)
    >>> memory.meet(0, np.array([[0, 1], [1, 1]]), np.array([0.5, 0.4]))
    >>> memory.best(0, 2).tolist(), memory.rewards.tolist()
    ([0, 1], [0.5])
    >>> memory.mean_return(0, np.array([[4.0]])), memory.mean_return(0, np.array([[1.0], [1.0]]))
    (array([4.]), array([2.]))
    """

    def __init__(self, problems: int, operators: int, steps: int) -> None:
        self.rewards: Floats = np.zeros(problems)
        self._places: Ints = np.zeros((problems, operators), np.int32)
        self._returns: Floats = np.zeros((problems, steps))
        self._walks: Longs = np.zeros(problems, np.int64)
        super().__init__(
            {
                "past.rewards": self.rewards,
                "past.places": self._places,
                "past.returns": self._returns,
                "past.walks": self._walks,
            }
        )

    def meet(self, row: int, places: Ints, rewards: Floats) -> None:
        """Remember the best of placements [B, n]; of equals the first."""
        best = int(rewards.argmax())
        if rewards[best] > self.rewards[row]:
            self.rewards[row] = rewards[best]
            self._places[row, : places.shape[1]] = places[best]

    def best(self, row: int, operators: int) -> Ints:
        """Best placement [n] met; everything on the first device where there is none."""
        return self._places[row, :operators]

    def mean_return(self, row: int, returns: Floats) -> Floats:
        """Mean return [t] of every step of walks [S, t] and of all before them."""
        steps = returns.shape[1]
        self._returns[row, :steps] += returns.sum(axis=0)
        self._walks[row] += len(returns)
        return np.asarray(self._returns[row, :steps] / self._walks[row])
