"""Proposals: where a measured job should run, the gain, and the cost of the move."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

from streamplace.engines.flink.decide.decision import Candidate, Decision
from streamplace.engines.flink.measure.measurement import Measurement
from streamplace.engines.flink.measure.placed_subtasks import finite
from streamplace.engines.flink.move.move import MovePlan
from streamplace.model.intervals import PredictionErrors, RateInterval
from streamplace.model.messages import listed, quoted
from streamplace.model.report import duration
from streamplace.model.units import digits

LEAST_GAIN = 0.02
"""Minimum relative gain of a move; predictions are too inexact for smaller ones.

It is relative to the rate of the sources that may send more.
"""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Decision for a measured job."""

    job: str  # id of the job
    measured: Measurement  # its measurement
    decision: Decision  # where it should run
    outage: float  # seconds for which a move is expected to stop it
    plan: MovePlan | None = None  # plan of its move; None if its program was not checked
    errors: PredictionErrors | None = None  # errors of predictions for the job; None if unknown
    asked: float | None = None  # tuples/s for which the user asks; None for what the sources offer

    @property
    def rate(self) -> float:
        """Tuples/s that its sources emit now."""
        return self.measured.graph.source_rate

    @property
    def gain(self) -> float:
        """Minimum increase of the rate in tuples/s, if the predictions hold."""
        return self.decision.gain

    @property
    def interval(self) -> RateInterval:
        """Interval of the rate of the chosen layout, up to the rate that is offered.

        It is wider than the intervals for comparing layouts, because an error in the model of a job
        affects the predictions of all its layouts.
        """
        offered = self.asked
        if offered is None and not self.measured.is_limited:
            offered = self.rate
        return self.capacity.up_to(inf if offered is None else offered)

    @property
    def capacity(self) -> RateInterval:
        """Interval of the rate that the chosen layout carries, however few tuples are offered.

        Rates of sources that do not depend on the layout are known.
        """
        return self._capacity_of(self.decision.chosen)

    @property
    def modelled(self) -> RateInterval:
        """The same by the model, even if only a share of its gain was believed."""
        chosen = self.decision.chosen
        return self._capacity_of(chosen.undamped or chosen)

    def _capacity_of(self, chosen: Candidate) -> RateInterval:
        if self.errors is None or self.decision.stays:
            return chosen.carries
        value = chosen.carries.value if chosen.capacity is None else chosen.capacity
        low, _, high = self.errors.interval(value - chosen.kept)
        return RateInterval(chosen.kept + low, value, chosen.kept + high)

    def share_of_gain(self, rate: float) -> float:
        """Return the share of the predicted gain, 0 to 1, that has been achieved at a rate."""
        promised = self.decision.chosen.carries.value - self.rate
        return min(1.0, max(0.0, (rate - self.rate) / promised)) if promised > 0 else 0.0

    @property
    def moves(self) -> bool:
        """Whether the job should be moved, because even the lower end of the gain is sufficient."""
        chosen = self.decision.chosen
        is_placed = not self.decision.stays and chosen.mode is None
        return is_placed and self.gain > LEAST_GAIN * (self.rate - self.decision.present.kept)

    def sentences(self) -> Iterator[str]:
        """Sentences on the measured rate, on all layouts and on the cost of the move."""
        yield f"now: {digits(self.rate)} tuples/s (measured)"
        streams = self.measured.graph.streams
        keyed = {stream.target for stream in streams if stream.partitioning == "hash"}
        for name, shares in self.measured.shares.items():
            why = (
                f"keys of {quoted(name)} are skewed"
                if name in keyed
                else f"{quoted(name)} is uneven"
            )
            yield (
                f"{why}: its {len(shares)} subtasks read {min(shares):.0%} to {max(shares):.0%} of "
                "its tuples each"
            )
        if kept := self.decision.present.kept:
            yield (
                f"only {listed(sorted(self.measured.held_back))} can send more in another layout; "
                f"the other sources keep up, and all rates contain their {digits(kept)} tuples/s"
            )
        for candidate in self.decision.candidates:
            yield f"  {candidate.name}: {candidate.carries}"
        chosen = self.decision.chosen
        if self.errors is not None and not self.decision.stays:
            yield f"with {self.errors.words}, {chosen.name} carries {self.interval}"
        if self.asked is None and not self.measured.is_limited and self.decision.stays:
            yield (
                f"the job keeps up with its sources where it runs ({digits(self.rate)} tuples/s), "
                "so moving it gains nothing; to place it for more, give --rate"
            )
            return
        yield from self.decision.sentences()
        if self.moves:
            lost = self.outage * self.rate
            yield (
                f"moving it should gain at least {digits(self.gain)} tuples/s and stops it for "
                f"about {duration(self.outage)}, in which {digits(lost)} tuples wait; that is made "
                f"up for in {duration(lost / self.gain)}"
            )

    def to_json(self) -> dict[str, Any]:
        """Return the decision as a JSON document."""
        chosen = self.decision.chosen
        return {
            "measured": self.rate,
            "predicted": finite(chosen.carries.value),
            "interval": _told(self.interval),
            "errors": None if self.errors is None else self.errors.to_json(),
            "layouts": [_row(candidate) for candidate in self.decision.candidates],
            "chosen": chosen.name,
            "configuration": chosen.line or None,
            "moves": self.moves,
            "outage": self.outage,
        }


def _told(interval: RateInterval) -> dict[str, float | None]:
    return {end: finite(rate) for end, rate in interval._asdict().items()}


def _row(candidate: Candidate) -> dict[str, Any]:
    return {
        "name": candidate.name,
        **_told(candidate.carries),
        "moves": candidate.moves,
        "configuration": candidate.line or None,
    }
