"""Settings of ``place``."""

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from streamplace.settings.convert import (
    COUNT,
    FLAG,
    PATH,
    PLACER,
    PRESENT,
    RELOCATION,
    TIME,
    Placement,
    Placer,
    Relocation,
    number,
)
from streamplace.settings.shared import (
    Conditions,
    ObjectiveSettings,
    OfDataSet,
    OfMeasuredGraph,
    OnDevices,
    SearchLimits,
    UnderRules,
    WhatIfs,
)

if TYPE_CHECKING:
    from streamplace.placers.request import PlacementRequest

OF_ONE_GRAPH = ("scale", "set", "present", "passes", "confidence", "trust_profile")
OF_DATA_SETS = ("split", "limit", "jobs", "on")


class PlaceSettings(
    ObjectiveSettings, WhatIfs, OfDataSet, OnDevices, UnderRules, SearchLimits, OfMeasuredGraph
):
    """How a graph, or every graph of a data set, is placed."""

    placer: Annotated[
        str | Placer,
        PLACER.option(
            "--placer",
            "Placement algorithm (see: streamplace placers). Options follow after colons, as in "
            "metis:k=3 or pilot:weights=best.safetensors.",
        ),
    ] = "auto"
    weights: Annotated[Path | None, PATH.key()] = None  # weights file of a learned placer
    require: Conditions = ()
    subtasks: Annotated[
        bool,
        FLAG.option(
            "--subtasks", "Place the subtasks of parallel operators one by one (join#0, join#1, …)."
        ),
    ] = False
    relocation: Annotated[Relocation | None, RELOCATION] = None
    # Current placement: the objective includes the cost of moving.
    present: Annotated[Placement | None, PRESENT.key("from")] = None
    # Passes until the next change, which share the cost of moving.
    passes: Annotated[float | None, number(0, inf, "a number above 0").key()] = None
    # Time that a moved operator takes to start, if the problem has none.
    startup: Annotated[float | None, TIME.key()] = None
    jobs: Annotated[int | None, COUNT.key()] = None  # processes; one per core
    dry_run: Annotated[bool, FLAG.key()] = False  # try some graphs, and estimate the time of all

    def check(self) -> None:
        """Refuse a part of a relocation without the others."""
        super().check()
        self.need("present", "passes", "startup")
        self.need("passes", "present")

    def request(self) -> "PlacementRequest":
        """Request that these settings make."""
        from streamplace.model.relocation import Relocation
        from streamplace.placers.registry import USUAL_BUDGET
        from streamplace.placers.request import PlacementRequest

        relocation = self.relocation
        if self.present is not None:
            relocation = Relocation(self.present, self.passes or inf, self.startup)
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
