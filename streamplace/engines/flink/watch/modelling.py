"""Models of a watched job, from measurements while it runs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from streamplace.engines.flink.decide.candidates import (
    Question,
    can_spread,
    occupied_devices,
    slots_for,
)
from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.measure.steady import UnsteadyJob
from streamplace.engines.flink.watch.look import JobLook
from streamplace.engines.flink.watch.plans import JobModel, job_model
from streamplace.io.ledger import errors_for
from streamplace.model.graph import PROFILE_DRIFT
from streamplace.model.trust import check_trust
from streamplace.placers.registry import Budget


@dataclass(frozen=True, slots=True)
class JobModeller:
    """Measures a job that was looked at, and finds plans for it; nothing is stopped.

    Attributes
    ----------
    seconds
        Length of each measured window.
    at_most
        Largest number of TaskManagers that a plan may use; None for all.
    trusts_profile
        Whether to decide by a profile whose model contradicts the measured rate.
    confidence
        Probability with which rates should be in their intervals; 0 ignores errors of prediction.
    ledger
        File of predicted and measured rates, from which intervals are learned.
    budget
        Budget of the search of each plan.
    """

    engine: FlinkEngine
    tell: Callable[[str], None]
    seconds: float = 10.0
    at_most: int | None = None
    trusts_profile: bool = False
    confidence: float | None = None
    ledger: Path | None = None
    budget: Budget | None = None

    def __call__(self, look: JobLook) -> JobModel:
        """Measure a job.

        Raises
        ------
        ProblemError
            When the model contradicts the measurement, unless the profile is trusted.
        UnsteadyJob
            When the job does not become warm in time.
        """
        rest = self.engine.rest
        measured = self.engine.measure(look.job, self.seconds)
        if PROFILE_DRIFT in measured.graph.attributes:
            raise UnsteadyJob(f"job {look.job} is not warm yet")
        if (warning := check_trust(measured.graph, trusts=self.trusts_profile)) is not None:
            self.tell(f"warning: {warning}")
        question = Question(
            measured,
            look.layout,
            slots_for(rest, look.job),
            can_spread(rest),
            occupied=occupied_devices(rest, look.job),
        )
        errors = errors_for(measured.graph, self.confidence, self.ledger)
        return job_model(look.job, question, errors, self.at_most, self.budget)
