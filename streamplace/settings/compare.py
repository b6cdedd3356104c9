"""Settings of ``compare``."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from streamplace.errors import SettingError
from streamplace.model.defaults import COMPARED, REFERENCE
from streamplace.settings.convert import COUNT, FLAG, PATH, PLACERS, TEXT, texts
from streamplace.settings.option import HOW_LONG
from streamplace.settings.shared import (
    AtRates,
    Conditions,
    OfDataSet,
    OnDevices,
    SearchLimits,
    UnderRules,
)


class CompareSettings(AtRates, OfDataSet, OnDevices, UnderRules, SearchLimits):
    """Which placers are compared, on which graphs, by which objectives."""

    placers: Annotated[
        tuple[str, ...],
        Field(validate_default=True),
        PLACERS.option(
            "--placers",
            "Placers to compare, separated by commas. Options follow after colons: metis:k=3, "
            "anneal:budget=5ms. An alias may precede a placer, as in "
            "mine=pilot:weights=best.safetensors.",
        ),
    ] = COMPARED  # type: ignore[assignment]
    objective: Annotated[
        tuple[str, ...],
        texts("NAME").option(
            "--objective",
            "Objective to optimise, as for place. Repeat it for a table of each objective and one "
            "of the trade-offs between them.",
        ),
    ] = ()
    require: Conditions = ()
    reference: Annotated[
        str, TEXT.option("--reference", "Placer that the others are compared with.")
    ] = REFERENCE
    out: Annotated[Path | None, PATH] = None
    jobs: Annotated[
        int | None, COUNT.option("--jobs", "Number of processes.  [default: all cores]", HOW_LONG)
    ] = None
    dry_run: Annotated[
        bool,
        FLAG.option(
            "--dry-run",
            "Try some graphs, and print the number of placements and an estimate of their time.",
            HOW_LONG,
        ),
    ] = False

    def check(self) -> None:
        """Refuse a reference that is not compared."""
        from streamplace.placers.named import labels

        super().check()
        known = labels(self.placers)
        if "reference" in self.given and self.reference not in known:
            raise SettingError(
                f"{self.name('reference')} {self.reference} is none of the compared placers: "
                f"{', '.join(sorted(known))}"
            )
