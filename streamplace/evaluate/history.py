"""History of predictions in a ledger, and the share of intervals that held."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from streamplace.io.ledger import LedgerEntry, known_errors
from streamplace.model.display import Displayed
from streamplace.model.intervals import USUAL_CONFIDENCE
from streamplace.model.messages import counted
from streamplace.model.report import Part, Report, Sheet, percent
from streamplace.model.units import digits

HELD = {True: "yes", False: "no", None: "unknown"}


@dataclass(frozen=True, slots=True)
class PredictionHistory(Displayed):
    """Predicted and measured rates, in the order in which they were measured.

    Attributes
    ----------
    entries
        Runs of a ledger.
    confidence
        Confidence of the next predictions' intervals.
    """

    entries: Sequence[LedgerEntry]
    confidence: float = USUAL_CONFIDENCE

    @property
    def judged(self) -> list[LedgerEntry]:
        """Runs for which it is known whether their interval held."""
        return [entry for entry in self.entries if entry.held is not None]

    @property
    def coverage(self) -> float | None:
        """Share of the intervals that held; None if it is known for no run."""
        judged = self.judged
        return sum(entry.held is True for entry in judged) / len(judged) if judged else None

    def report(self) -> Report:
        """Table of the runs, and the coverage of their intervals."""
        if not self.entries:
            return Report(("No run has been recorded yet.",))
        rows = tuple(map(_row, self.entries))
        head = ("job", "when", "predicted", "interval", "measured", "of predicted", "held")
        parts: list[Part] = [Sheet(head, rows, names=0), *self._sentences()]
        return Report(tuple(parts))

    def to_json(self) -> dict[str, Any]:
        """Return the runs and their coverage as a JSON document."""
        return {
            "runs": [asdict(entry) | {"held": entry.held} for entry in self.entries],
            "judged": len(self.judged),
            "coverage": self.coverage,
            "errors": known_errors("", self.entries, self.confidence).to_json(),
        }

    def _sentences(self) -> Iterable[str]:
        judged = self.judged
        if judged:
            held = sum(entry.held is True for entry in judged)
            aims = [entry.confidence for entry in judged if entry.confidence is not None]
            aim = f", which were told with {percent(median(aims))} in the median" if aims else ""
            yield f"{held} of {counted(len(judged), 'interval')} held{aim}."
        errors = known_errors("", self.entries, self.confidence)
        yield (
            f"Rates of a new job are {errors.low:.2f} to {errors.high:.2f} of what is predicted, "
            f"and at least {errors.least:.2f}, with {errors.words}."
        )


def _row(entry: LedgerEntry) -> tuple[str, ...]:
    interval = entry.interval
    bounds = "—" if interval is None else f"{digits(interval.low)} to {digits(interval.high)}"
    more = "" if entry.is_limited else " or more"
    return (
        entry.job,
        entry.when.replace("T", " ")[:16],
        digits(entry.predicted),
        bounds,
        f"{digits(entry.measured)}{more}",
        percent(entry.measured / entry.predicted),
        HELD[entry.held],
    )
