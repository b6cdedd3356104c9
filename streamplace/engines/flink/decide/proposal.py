"""Proposals: predicted layouts of a measured job, its trials, and which layout is tried next."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, inf
from typing import Any

from streamplace.engines.flink.decide.candidates import Candidate, Question
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.measurement import Measurement, finite
from streamplace.engines.flink.move.interruption import Interruption
from streamplace.engines.flink.move.move import MovePlan
from streamplace.model.intervals import RateInterval
from streamplace.model.messages import listed, quoted
from streamplace.model.report import Report, Sheet, duration
from streamplace.model.units import digits

LOG = logging.getLogger(__name__)
PRESENT, BEFORE = "present layout", "layout before"
NOISE = 0.03
"""Relative difference between runs of one layout (docs/evidence.md)."""
WORTHWHILE = 0.05
"""Least gain, relative to the best measured rate, that a layout must be able to have to be tried.

Runs of one layout differ by 3 %, and a trial stops the job.
"""
CLEAR = 0.217
"""Least predicted gain of a layout that no trial can confirm before more is offered.

The errors of the ratio of two predictions are at most 17 % in nine of ten pairs (docs/evidence.md).
"""
UNLIKE = 1.21
"""How far above its interval a layout may be of which all subtasks are elsewhere, as a logarithm.

Measured: the rates of nine of ten jobs were less above theirs, by the share of the subtasks that
were elsewhere than in the measured layout (benchmarks/recorded_runs.py: 13 jobs of this repository,
for which 0.46 would do, and five of others that carried up to 3.8 times their predictions).
"""
HEAD = ("layout", "tuples/s", "interval", "", "stopped")
"""Columns of the table of layouts."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A layout in which a job was, and the rate that its sources sustained there."""

    name: str
    layout: Layout
    rate: float = 0.0  # tuples/s; 0 if it was not measured
    is_limited: bool = False  # whether a source was held back, so that this is what it carries
    outage: float | None = None  # seconds for which the moves to it stopped the job
    line: str = ""  # line of configuration by which Flink produces it without pins
    failure: str = ""  # why the job did not run there
    predicted: RateInterval | None = None  # before it was tried; None of the layout before
    told: float | None = None  # seconds for which its move was expected to interrupt the job

    @classmethod
    def present(cls, question: Question) -> "Trial":
        """The layout in which a job was measured, and the rate that it sustains there."""
        measured, rates = question.measured, question.rates
        return cls(PRESENT, rates.present, float(rates.sustained.sum()), measured.is_limited)

    @property
    def runs(self) -> bool:
        """Whether the job ran and its rate was measured."""
        return not self.failure and self.rate > 0

    def is_at(self, layout: Layout) -> bool:
        """Whether a layout is the same, up to an exchange of subtasks of one operator."""
        return self.layout.keys() == layout.keys() and not layout.moved_from(self.layout)

    def row(self, *, is_where: bool) -> tuple[str, ...]:
        """Row of the table of layouts."""
        rate, outage = "", "" if self.outage is None else duration(self.outage)
        ends = "" if self.predicted is None else _ends(self.predicted)
        how = "did not run" if self.failure else "not measured"
        if self.runs:
            how = "measured" if self.is_limited else "keeps up"
            rate, how = digits(self.rate), "runs now" if is_where else how
        return self.name, rate, ends, how, outage

    def to_json(self) -> dict[str, Any]:
        """Return the trial as a JSON document."""
        return {
            "name": self.name,
            "measured": self.rate or None,
            "keeps_up": self.runs and not self.is_limited,
            "predicted": None if self.predicted is None else _finite(self.predicted),
            "outage": self.outage,
            "told": self.told,
            "failure": self.failure or None,
        }


@dataclass(frozen=True)
class Proposal:
    """A measured job: predictions of its layouts, and its trials so far."""

    job: str  # id of the job
    question: Question  # its last measurement
    candidates: tuple[Candidate, ...]  # by the model that was fitted to all measurements
    outage: Interruption  # seconds for which a move is expected to interrupt it
    trials: tuple[Trial, ...]  # layouts in which it was, the first one first
    where: Trial  # the layout in which it is
    plan: MovePlan | None = None  # plan of the next move; None if its program was not checked
    savepoint: str | None = None  # from which the job was started; None if it was not moved

    @property
    def measured(self) -> Measurement:
        """Its last measurement."""
        return self.question.measured

    def after(self, job: str, trial: Trial, savepoint: str | None = None) -> "Proposal":
        """Return the same predictions after one more trial, with the job that runs now."""
        trials = (*self.trials, trial)
        if trial.failure:
            return replace(self, job=job, trials=trials, plan=None)
        return replace(self, job=job, trials=trials, where=trial, plan=None, savepoint=savepoint)

    @property
    def best(self) -> Trial:
        """The best layout that was measured: that of now if it keeps up, or differs by noise."""
        runs = [trial for trial in self.trials if trial.runs]
        best = max(runs, key=lambda trial: trial.rate)
        now = self.where if self.where.runs else runs[-1]
        is_enough = not now.is_limited or now.rate >= (1 - NOISE) * best.rate
        return now if is_enough else best

    @cached_property
    def target(self) -> Candidate | None:
        """The layout to try next: that of the highest optimistic rate; None if none is worth it.

        A job that keeps up is moved only if the user asks for a higher rate and the model says that
        another layout carries more of it. No measurement can confirm that before the rate comes.
        """
        others = []
        for one in self.candidates:
            if one.can_be_pinned and not self.is_tried(one):
                others.append(one)
            else:
                why = "was tried" if one.can_be_pinned else "cannot be pinned"
                LOG.debug("%s: predicted %s, %s", one.name, one.predicted, why)
        if self.where.is_limited:
            value = {one.name: self.optimistic(one) for one in others}
            least = (1 + WORTHWHILE) * self.best.rate
        else:
            asked, rates = self.question.rate, self.question.rates
            if asked is None or self.where is not self.trials[0]:
                return None
            value = {one.name: min(asked, one.predicted.value) for one in others}
            least = (1 + CLEAR) * min(asked, rates.of(rates.present))
        target = max(others, key=lambda one: (value[one.name], -one.order), default=None)
        if target is not None and value[target.name] <= least:
            LOG.debug("none is tried: %.6g/s at best, and %.6g/s are needed",
                      value[target.name], least)  # fmt: skip
            return None
        if target is not None:
            LOG.debug("%s is tried: %.6g/s at best, %.6g/s are needed",
                      target.name, value[target.name], least)  # fmt: skip
        return target

    def is_tried(self, candidate: Candidate) -> bool:
        """Whether the job was in a layout already."""
        return any(trial.is_at(candidate.layout) for trial in self.trials)

    def distance(self, layout: Layout) -> float:
        """Share of the subtasks that are elsewhere than in the measured layout that is nearest."""
        runs = [trial.layout for trial in self.trials if trial.runs]
        moved = min(layout.number_moved_from(known) for known in runs)
        return moved / sum(map(len, layout.values()))

    def optimistic(self, candidate: Candidate) -> float:
        """Rate that a layout may carry, if all that is uncertain is in its favour."""
        asked, kept, high = self.question.rate, candidate.kept, candidate.predicted.high
        distance, wrong = self.distance(candidate.layout), self.question.rates.contradiction
        rate = kept + (high - kept) * exp(UNLIKE * distance) if wrong is None else inf
        LOG.debug(
            "%s: predicted %s, kept %.6g, share elsewhere %.3f, at best %.6g/s%s",
            *(candidate.name, candidate.predicted, kept, distance, rate),
            "" if wrong is None else f" ({wrong})",
        )
        return rate if asked is None else min(rate, asked)

    def sentences(self) -> Iterator[str]:
        """Sentences on the measured rate, and on what is done next."""
        measured, rate = self.measured, self.where.rate
        yield f"now: {digits(rate)} tuples/s (measured)"
        if measured.flow is not None and measured.flow.pending:
            yield measured.flow.lag
        streams = measured.graph.streams
        keyed = {stream.target for stream in streams if stream.partitioning == "hash"}
        for name, shares in self.question.measured.shares.items():
            why = (
                f"keys of {quoted(name)} are skewed"
                if name in keyed
                else f"{quoted(name)} is uneven"
            )
            yield (
                f"{why}: its {len(shares)} subtasks read {min(shares):.0%} to {max(shares):.0%} of "
                "its tuples each"
            )
        if kept := self.question.rates.kept:
            yield (
                f"only {listed(sorted(measured.held_back))} can send more in another layout; "
                f"the other sources keep up, and all rates contain their {digits(kept)} tuples/s"
            )
        if self.question.rate is None and not measured.is_limited:
            yield (
                f"the job keeps up with its sources where it runs ({digits(rate)} tuples/s), "
                "so moving it gains nothing; to place it for more, give --rate"
            )
        elif (target := self.target) is None:
            yield "no other layout is expected to carry more, so none is tried"
        else:
            yield (
                f"to be tried first: {target.name}; each trial stops the job for about "
                f"{self.outage}"
            )

    def report(self) -> Report:
        """The table of layouts, with what was measured and what was only predicted."""
        first, *others = self.trials
        named = replace(first, name=BEFORE) if others else first
        rows = [named.row(is_where=first is self.where)]
        rows += [trial.row(is_where=trial is self.where) for trial in others]
        for one in self.candidates:
            if not self.is_tried(one):
                value = digits(one.predicted.value)
                rows.append((one.name, value, _ends(one.predicted), "predicted", ""))
        line = self.where.line
        words = [f"Flink's own setting gives this layout without pins: {line}"] if line else []
        return Report((Sheet(HEAD, tuple(rows)), *words))

    @property
    def stopped(self) -> float | None:
        """Seconds for which the job was stopped in all; None if it was not moved, or unknown."""
        known = [trial.outage for trial in self.trials if trial.outage is not None]
        return sum(known) if known else None

    @property
    def moved(self) -> dict[str, tuple[dict[str, int], dict[str, int]]]:
        """Operators that moved, with the numbers of their subtasks by device before and now."""
        return self.where.layout.moved_from(self.trials[0].layout)

    def to_json(self) -> dict[str, Any]:
        """Return the predictions and the trials as a JSON document."""
        errors, target = self.question.errors, self.target
        document: dict[str, Any] = {
            "measured": self.where.rate,
            "errors": None if errors is None else errors.to_json(),
            "layouts": [self._row(candidate) for candidate in self.candidates],
            "next": None if target is None else target.name,
            "outage": self.outage.value,
        }
        if len(self.trials) > 1:
            document |= {
                "trials": [trial.to_json() for trial in self.trials],
                "runs": self.where.name,
                "configuration": self.where.line or None,
            }
        return document

    def _row(self, candidate: Candidate) -> dict[str, Any]:
        return {
            "name": candidate.name,
            **_finite(candidate.predicted),
            "moves": candidate.layout.number_moved_from(self.where.layout),
            "configuration": candidate.line or None,
        }


def _ends(predicted: RateInterval) -> str:
    return f"{digits(predicted.low)} to {digits(predicted.high)}"


def _finite(predicted: RateInterval) -> dict[str, float | None]:
    return {end: finite(rate) for end, rate in predicted._asdict().items()}
