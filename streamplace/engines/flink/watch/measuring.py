"""Measurements of a watched job: the model that is known of it, and when it is measured again."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from streamplace.engines.flink.rest.client import NoAnswer
from streamplace.engines.flink.watch.judging import contradicts
from streamplace.engines.flink.watch.look import JobLook
from streamplace.engines.flink.watch.plans import JobModel
from streamplace.errors import StreamplaceError

AGAIN_SECONDS = 120.0
"""Least time between two measurements of a layout whose model is contradicted."""
OLD_SECONDS = 900.0
"""Age of a model above which a job is measured again, whatever its rate.

A rate that the layout carries easily does not tell that an operator has become slower.
"""
LONGEST_SECONDS, MOST_DOUBLED = 86_400.0, 10
"""Longest time until that is tried again after a measurement has failed; it doubles so often."""


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
    _failed: float = field(default=-math.inf, init=False)
    _told: str = field(default="", init=False)

    @property
    def age(self) -> float:
        """Seconds since the job was measured."""
        return self.monotonic() - self._at

    def forget(self) -> None:
        """Forget the model, so that the job is measured in the next round."""
        self._model = None

    def known(self, look: JobLook) -> JobModel | None:
        """Model of a job that was measured before, if nothing but its rate has changed since."""
        model, before = self._model, self._look
        is_same = (
            model is not None
            and before is not None
            and (before.job, before.layout, before.managers, before.shape)
            == (look.job, look.layout, look.managers, look.shape)
            and (look.is_limited or not model.kept)
        )
        return model if is_same else None

    def is_due(self, look: JobLook) -> bool:
        """Whether a job should be measured, because nothing is known of it, or nothing valid.

        Age alone is no reason for a while after a measurement that has failed.
        """
        model = self.known(look)
        if model is None:
            return True
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
            self._failures += 1
            return None
        self._told, self._failures = "", 0
        self._model, self._look, self._at = model, look, self.monotonic()
        return model
