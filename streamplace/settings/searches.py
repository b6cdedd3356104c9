"""Options of verbs that search or learn: rates, limits, data sets."""

from typing import Annotated

from annotated_types import Interval

from streamplace.model.defaults import PLACE_SECONDS
from streamplace.settings.base import VerbSettings
from streamplace.settings.convert import Budget, Count, Rates, SearchBudget, Share, Whole
from streamplace.settings.option import HOW_LONG, file_key, option
from streamplace.settings.shared import SEED, SPLIT


class RateOptions(VerbSettings):
    """Rates at which every graph is placed or learned."""

    rate: Rates = option(
        "--rate RATE…",
        "Total rate of the sources; repeat it for several rates.  [default: the rate of each "
        "graph]",
    )


class SearchOptions(VerbSettings):
    """Limits of a search, and its seed."""

    budget: SearchBudget = option(
        "--budget TIME",
        "Search time per graph, in seconds or with a unit, as in '50 ms'.  "
        f"[default: {PLACE_SECONDS:g}; no limit where --evaluations is given]",
        HOW_LONG,
    )
    evaluations: Count | None = option(
        "--evaluations N",
        "Maximum number of steps of the search. Results then do not depend on the machine.",
        HOW_LONG,
    )
    seed: Whole = SEED

    def limits(self) -> Budget | None:
        """Budget of both limits; None without any."""
        if self.evaluations is None:
            return self.budget
        from streamplace.placers.registry import Budget

        return Budget(None if self.budget is None else self.budget.seconds, self.evaluations)


class DataSetOptions(VerbSettings):
    """Which graphs of a data set, and whether Ray computes."""

    split: str | None = SPLIT
    limit: Count | None = file_key("N", "Maximum number of graphs, drawn by the seed.")
    on: str | None = file_key(
        "RAY", "Compute on Ray: 'ray' starts one here, 'auto' or an address names a running one."
    )


class MeasuredGraphOptions(VerbSettings):
    """Prediction for a graph that was measured on a running job."""

    confidence: Annotated[Share, Interval(ge=0, lt=1)] | None = file_key(
        "SHARE", "Confidence of the predicted interval; 0 uses the prediction alone."
    )
    trust_profile: bool = file_key(
        "",
        "Use a measured graph whose model is off by more than 30 % for the placement that was "
        "profiled.",
    )
