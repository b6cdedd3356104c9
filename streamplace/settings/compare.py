"""Settings of ``compare``."""

from pathlib import Path

from streamplace.errors import SettingError
from streamplace.model.defaults import COMPARED, REFERENCE
from streamplace.settings.convert import Count, PlacerNames, Texts
from streamplace.settings.option import option
from streamplace.settings.shared import (
    JOBS,
    ConditionOptions,
    ConstraintOptions,
    DataSetOptions,
    DeviceOptions,
    RateOptions,
    SearchOptions,
)


class CompareSettings(
    RateOptions,
    ConditionOptions,
    DataSetOptions,
    DeviceOptions,
    ConstraintOptions,
    SearchOptions,
    validate_default=True,
):
    """Which placers are compared, on which graphs, by which objectives."""

    placers: PlacerNames = option(
        "--placers NAMES",
        "Placers to compare, separated by commas. Options follow after colons: metis:k=3, "
        "anneal:budget=5ms. An alias may precede a placer, as in "
        "mine=pilot:weights=best.safetensors.",
        default=COMPARED,
    )
    objective: Texts = option(
        "--objective NAME…",
        "Objective to optimise, as for place. Repeat it for a table of each objective and one of "
        "the trade-offs between them.",
    )
    reference: str = option(
        "--reference NAME", "Placer that the others are compared with.", default=REFERENCE
    )
    out: Path | None = None
    jobs: Count | None = JOBS

    def check(self) -> None:
        """Refuse a reference that is not compared."""
        from streamplace.placers.named import labels

        super().check()
        names = labels(self.placers)
        if "reference" in self.inputs and self.reference not in names:
            raise SettingError(
                f"{self.name('reference')} {self.reference} is none of the compared placers: "
                f"{', '.join(sorted(names))}"
            )
