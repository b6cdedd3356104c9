"""Settings of ``place``."""

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from streamplace.settings.convert import (
    Count,
    Moved,
    PlacementFile,
    PlacerName,
    Positive,
    Seconds,
    Whole,
)
from streamplace.settings.option import file_key, option
from streamplace.settings.searches import Conditions, OfDataSet, OfMeasuredGraph, SearchLimits
from streamplace.settings.shared import (
    LosingDevice,
    ObjectiveSettings,
    OnDevices,
    UnderRules,
    WhatIfs,
)

if TYPE_CHECKING:
    from streamplace.placers.request import PlacementRequest

OF_ONE_GRAPH = (
    "set",
    "without",
    "present",
    "passes",
    "moves",
    "confidence",
    "trust_profile",
)
OF_DATA_SETS = ("split", "limit", "jobs", "on")


class PlaceSettings(
    ObjectiveSettings,
    Conditions,
    WhatIfs,
    LosingDevice,
    OfDataSet,
    OnDevices,
    UnderRules,
    SearchLimits,
    OfMeasuredGraph,
):
    """How a graph, or every graph of a data set, is placed."""

    placer: PlacerName = option(
        "--placer NAME",
        "Placement algorithm (see: streamplace placers). Options follow after colons, as in "
        "metis:k=3 or pilot:weights=best.safetensors.",
        default="auto",
    )
    weights: Path | None = file_key("FILE", "Weights file of a learned placer.")
    subtasks: bool = option(
        "--subtasks", "Place the subtasks of parallel operators one by one (join#0, join#1, …)."
    )
    relocation: Moved = None
    present: PlacementFile | None = file_key(
        "FILE",
        "Current placement: an objective in seconds includes the cost of moving; for others, the "
        "answer says what each number of moves reaches.",
        key="from",
    )
    passes: Positive | None = file_key(
        "N", "Passes until the next change, which share the cost of moving."
    )
    moves: Whole | None = file_key(
        "N", "Most operators that move, where the objective is not in seconds, as the throughput."
    )
    startup: Seconds | None = file_key(
        "TIME", "Time that a moved operator takes to start, if the problem has none."
    )
    jobs: Count | None = file_key("N", "Number of processes, by default one per core.")

    def check(self) -> None:
        """Refuse a part of a relocation without the others."""
        super().check()
        self.need("present", "passes", "startup", "moves")

    def request(self) -> "PlacementRequest":
        """Request that these settings make."""
        from streamplace.model.relocation import Relocation
        from streamplace.placers.registry import USUAL_BUDGET
        from streamplace.placers.request import PlacementRequest

        relocation = self.relocation
        if self.present is not None:
            relocation = Relocation(self.present, self.passes or inf, self.startup, self.moves)
        return PlacementRequest(
            placer=self.placer,
            weights=self.weights,
            objective=self.objective,
            require=self.require,
            relocation=relocation,
            rate=self.rate,
            subtasks=self.subtasks,
            seed=self.seed,
            budget=self.limits() or USUAL_BUDGET,
            confidence=self.confidence,
        )
