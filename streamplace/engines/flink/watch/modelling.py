"""Models of a watched job, from measurements while it runs, and when it is measured again."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from streamplace.engines.flink.cpu.task_cpu import UNKNOWN
from streamplace.engines.flink.decide.candidates import (
    Question,
    can_spread,
    occupied_devices,
    slots_for,
)
from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.measure.cards import ALL
from streamplace.engines.flink.measure.cluster import ASSUMED_CPU
from streamplace.engines.flink.measure.measurement import Measurement
from streamplace.engines.flink.measure.profile import UNMEASURED_PYTHON
from streamplace.engines.flink.measure.steady import UnsteadyJob
from streamplace.engines.flink.pin.fitting import left_without
from streamplace.engines.flink.rest.client import NoAnswer
from streamplace.engines.flink.watch.judging import contradicts
from streamplace.engines.flink.watch.look import JobLook
from streamplace.engines.flink.watch.plans import (
    JobModel,
    job_model,
)
from streamplace.errors import ProblemError, StreamplaceError
from streamplace.io.ledger import errors_for
from streamplace.model.cluster import Cluster
from streamplace.model.graph import CPU_OF, PROFILE_DRIFT
from streamplace.model.messages import listed
from streamplace.model.trust import profile_spread
from streamplace.placers.registry import Budget

AGAIN_SECONDS = 120.0
"""Least time between two measurements of a layout whose model is contradicted."""
OLD_SECONDS = 900.0
"""Age of a model above which a job is measured again, whatever its rate.

A rate that the layout carries easily does not tell that an operator has become slower.
"""
LONGEST_SECONDS, MOST_DOUBLED = 86_400.0, 10
"""Longest time until that is tried again after a measurement has failed; it doubles so often."""
QUICK_TRIES, LONGEST_UNKNOWN_SECONDS = 5, 3600.0
"""Measurements of an unknown job that may fail, one a round; then they become rarer, to at least
one in this time."""
_NUMBER = re.compile(r"\b\d[\d.,]*")


@dataclass(frozen=True, slots=True)
class JobModeller:
    """Measures a job that was looked at, and finds plans for it; nothing is stopped."""

    engine: FlinkEngine
    tell: Callable[[str], None]
    seconds: float = 10.0  # length of each measured window
    at_most: int | None = None  # largest number of TaskManagers that a plan may use; None for all
    # Whether to decide by a profile whose model contradicts the measured rate.
    trusts_profile: bool = False
    # Probability with which rates should be in their intervals; 0 ignores errors of prediction.
    confidence: float | None = None
    budget: Budget | None = None  # budget of the search of each plan
    # The devices, if known; otherwise they are measured. Only those are used that are TaskManagers
    # of the cluster when the job is measured.
    cluster: Cluster | None = None
    _told: set[str] = field(default_factory=set, init=False)

    def __call__(self, look: JobLook) -> JobModel:
        """Measure a job.

        Raises ProblemError when the model contradicts the measurement, unless the profile is
        trusted. Raises UnsteadyJob when the job does not become warm in time.
        """
        rest = self.engine.rest
        measured = self._measured(look)
        if PROFILE_DRIFT in measured.graph.attributes:
            raise UnsteadyJob(f"job {look.job} is not warm yet")
        self._tell_doubts(measured)
        question = Question(
            measured,
            look.layout,
            slots_for(rest, look.job),
            can_spread(rest),
            occupied=occupied_devices(rest, look.job) | self._absent(look),
            managers=left_without(rest, look.job),
        )
        if (wrong := question.rates.contradiction) is not None:
            if not self.trusts_profile:
                raise ProblemError(f"{wrong}, so nothing that it predicts means much")
            self.tell(f"warning: {wrong}")
        errors = errors_for(measured.graph, self.confidence)
        model = job_model(look.job, question, errors, self.at_most, self.budget)
        spread = profile_spread(measured.graph)
        return replace(model, uncounted=_uncounted(measured), spread=spread)

    def _measured(self, look: JobLook) -> Measurement:
        """Measure a job; speeds are given to the network cards of TaskManagers that are there."""
        there = {*look.managers, ALL}
        cards = {name: speed for name, speed in self.engine.cards.items() if name in there}
        engine = replace(self.engine, cards=cards)
        return engine.measure(look.job, self.seconds, cluster=self.cluster)

    def _absent(self, look: JobLook) -> frozenset[str]:
        """Given devices that are no TaskManagers now."""
        given = () if self.cluster is None else self.cluster.devices.name
        return frozenset(given).difference(look.managers)

    def _tell_doubts(self, measured: Measurement) -> None:
        """Tell doubts about a measurement that the one before did not have.

        Those that differ in numbers alone are the same.
        """
        doubts = {note: _NUMBER.sub("", note) for note in measured.notes}
        for note, words in doubts.items():
            if words not in self._told:
                self.tell(f"note: {note}")
        self._told.clear()
        self._told.update(doubts.values())


def _uncounted(measured: Measurement) -> str:
    """Clause on CPU of operators or TaskManagers that was not measured; empty if all was."""
    facts = measured.graph.attributes.items()
    unknown = [name for name, fact in facts if name.startswith(CPU_OF) and fact == UNKNOWN]
    if unknown:
        names = listed([name.removeprefix(CPU_OF) for name in unknown])
        return f"the CPU of {names} is not known"
    if UNMEASURED_PYTHON in measured.notes:
        return "the CPU of the job's Python processes is not measured"
    if ASSUMED_CPU in measured.notes:
        return "the CPU of TaskManagers on other machines is assumed (give --cluster)"
    return ""


@dataclass(slots=True)
class Measuring:
    """The model of a watched job."""

    # Measures a job that was looked at, and finds plans for it.
    model_of: Callable[[JobLook], JobModel]
    tell: Callable[[str], None]
    monotonic: Callable[[], float]  # clock for waiting
    _model: JobModel | None = field(default=None, init=False)
    _look: JobLook | None = field(default=None, init=False)
    _at: float = field(default=0.0, init=False)
    _failures: int = field(default=0, init=False)
    _failed_look: JobLook | None = field(default=None, init=False)
    _failed: float = field(default=-math.inf, init=False)
    _told: str = field(default="", init=False)

    @property
    def age(self) -> float:
        """Seconds since the job was measured."""
        return self.monotonic() - self._at

    def forget(self) -> None:
        """Forget the model, so that the job is measured in the next round."""
        self._model, self._failures = None, 0

    def known(self, look: JobLook) -> JobModel | None:
        """Model of a job that was measured before, if nothing but its rate has changed since."""
        model, before = self._model, self._look
        if model is None or not _is_unchanged(before, look):
            return None
        return model if look.is_limited or not model.kept else None

    def is_due(self, look: JobLook) -> bool:
        """Whether a job should be measured, because nothing is known of it, or nothing valid.

        Age alone is no reason for a while after a measurement that has failed; nor is it that
        nothing is known, after several have failed for a job that has not changed since.
        """
        model = self.known(look)
        if model is None:
            more = self._failures - QUICK_TRIES
            if more < 0 or not _is_unchanged(self._failed_look, look):
                return True
            pause = min(LONGEST_UNKNOWN_SECONDS, AGAIN_SECONDS * 2.0 ** min(more, MOST_DOUBLED))
            return self.monotonic() - self._failed >= pause
        if self.age < AGAIN_SECONDS:
            return False
        if contradicts(model, look.rate, is_limited=look.is_limited):
            return True
        pause = min(LONGEST_SECONDS, OLD_SECONDS * 2.0 ** min(self._failures, MOST_DOUBLED))
        return self.age >= OLD_SECONDS and self.monotonic() - self._failed >= pause

    def measure(self, look: JobLook) -> JobModel | None:
        """Measure a job; None, and the earlier model stays, if that is not possible now.

        Raises NoAnswer when Flink does not answer.
        """
        try:
            model = self.model_of(look)
        except NoAnswer:
            raise
        except StreamplaceError as error:
            if str(error) != self._told:
                self.tell(f"note: the job is not measured: {error}")
            self._told, self._failed = str(error), self.monotonic()
            self._failures = 1 + (self._failures if _is_unchanged(self._failed_look, look) else 0)
            self._failed_look = look
            return None
        self._told, self._failures = "", 0
        self._model, self._look, self._at = model, look, self.monotonic()
        return model


def _is_unchanged(before: JobLook | None, now: JobLook) -> bool:
    """Whether a job has the layout, the tasks and the TaskManagers of an earlier look."""
    return before is not None and (before.job, before.layout, before.managers, before.shape) == (
        now.job,
        now.layout,
        now.managers,
        now.shape,
    )
