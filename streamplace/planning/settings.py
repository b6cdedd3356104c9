"""Settings of a plan: headroom, robustness, and the budget of the search."""

from dataclasses import dataclass
from math import inf

from streamplace.errors import SettingError
from streamplace.model.defaults import PLAN_SECONDS, USUAL_ERROR
from streamplace.model.intervals import PredictionErrors
from streamplace.placers.registry import Budget
from streamplace.planning.headroom import Headroom

NO_HEADROOM = Headroom()
USUAL_BUDGET = Budget(PLAN_SECONDS)


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """Settings of a plan, besides the graph and the machines."""

    headroom: Headroom = NO_HEADROOM  # purposes for which the plan is made for more than the rate
    # Operators on each machine that may cost more than the graph says at the same time, Γ.
    robust: int = 0
    error: float = USUAL_ERROR  # share by which these operators may cost more
    # Whether every operator keeps the parallelism of the graph, or the names of those that do.
    keep_parallelism: bool | frozenset[str] = False
    seed: int = 0  # the same seed gives the same plan, unless the budget ends the search
    budget: Budget = USUAL_BUDGET  # time that the search may take, or a number of moves
    # Errors of predictions for the graph; the plan then carries the rate even at the lower end of
    # its prediction. None plans with the prediction itself.
    errors: PredictionErrors | None = None

    def __post_init__(self) -> None:
        if self.robust < 0 or not 0 <= self.error < inf:
            raise SettingError(
                f"robust is {self.robust} and error {self.error:g}; they must be 0 or more"
            )


USUAL_SETTINGS = PlanSettings()
