"""Settings of ``place``."""

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from streamplace.errors import SettingError
from streamplace.settings.kinds import (
    COUNT,
    FLAG,
    PATH,
    PLACER,
    PRESENT,
    RELOCATION,
    TEXT,
    TIME,
    Placement,
    Placer,
    Relocation,
    number,
    texts,
)
from streamplace.settings.option import OptionField, key
from streamplace.settings.shared import (
    CONDITION,
    ObjectiveSettings,
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
    ObjectiveSettings, WhatIfs, OnDevices, UnderRules, SearchLimits, OfMeasuredGraph
):
    """How a graph, or every graph of a data set, is placed."""

    usual: ClassVar[tuple[str, ...]] = ("placer", "objective", "rate")

    placer: Annotated[
        str | Placer,
        PLACER,
        OptionField(
            "--placer",
            "Placement algorithm (see: streamplace placers). Options follow after colons, as in "
            "metis:k=3 or pilot:weights=best.safetensors.",
        ),
    ] = "auto"
    weights: Annotated[Path | None, PATH, key("Weights file of a learned placer.")] = None
    require: Annotated[tuple[str, ...], texts("CONDITION"), CONDITION] = ()
    subtasks: Annotated[
        bool,
        FLAG,
        OptionField(
            "--subtasks", "Place the subtasks of parallel operators one by one (join#0, join#1, …)."
        ),
    ] = False
    relocation: Annotated[Relocation | None, RELOCATION] = None
    present: Annotated[
        Placement | None,
        PRESENT,
        key("Current placement: the objective includes the cost of moving.", "from", python=False),
    ] = None
    passes: Annotated[
        float | None,
        number(0, inf, "a number above 0"),
        key("Passes until the next change, which share the cost of moving.", python=False),
    ] = None
    startup: Annotated[
        float | None,
        TIME,
        key("Time that a moved operator takes to start, if the problem has none.", python=False),
    ] = None
    split: Annotated[
        str | None,
        TEXT,
        OptionField("--split", "Use only the graphs of this split, such as test.", python=False),
    ] = None
    limit: Annotated[int | None, COUNT, key("Place only the first graphs.", python=False)] = None
    jobs: Annotated[int | None, COUNT, key("Processes; one per core.", python=False)] = None
    on: Annotated[
        str | None, TEXT, key("Compute on Ray: 'ray', 'auto' or an address.", python=False)
    ] = None
    dry_run: Annotated[
        bool, FLAG, key("Try some graphs, and estimate the time of all.", python=False)
    ] = False

    def check(self) -> None:
        """Refuse a part of a relocation without the others."""
        super().check()
        for name, other in (("passes", "present"), ("startup", "present"), ("present", "passes")):
            if name in self.given and other not in self.given:
                raise SettingError(f"{self.name(name)} needs {self.name(other)}; add it")

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
