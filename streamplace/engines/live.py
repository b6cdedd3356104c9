"""Contract of running engines: their jobs can be measured, placed, verified and moved.

An engine uses the terms of the model: a job runs a program, and a placement maps operators, or
their subtasks, to devices. The type of a program depends on the engine: a jar with its arguments
for Flink, a stream graph for a pipeline of Ray actors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph

P = TypeVar("P", contravariant=True)
NEGLIGIBLE = 1e-6
"""Share of the rate of all sources below which some count as silent."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measured job and its cluster, as input of placers.

    It is limited if a source was held back, so that the job may read more with another placement.
    ``drift`` is the relative error of comparisons of layouts because the job was not warm; 0 if it
    was. ``shares`` has, for operators whose subtasks are uneven, the part of the tuples that each
    of them takes in.
    """

    graph: StreamGraph  # with measured rates, CPU and payloads
    cluster: Cluster  # the devices, with the resources that are available to this job
    is_limited: bool
    notes: tuple[str, ...] = ()  # sentences on missing measurements
    drift: float = 0.0
    shares: Mapping[str, Sequence[float]] = field(default_factory=dict)
    held_back: frozenset[str] = frozenset()  # sources that were held back, if it is known which
    varies: bool = False  # whether the rate of a source varied during the measurement

    @property
    def kept_rate(self) -> float:
        """Tuples/s of the sources that keep up while others are held back; 0 if none or all do."""
        operators, total = self.graph.operators, self.graph.source_rate
        rates = zip(operators.name, operators.rate.tolist(), strict=True)
        held = sum(rate for name, rate in rates if name in self.held_back)
        return total - held if NEGLIGIBLE < held / total < 1 - NEGLIGIBLE else 0.0


@dataclass(frozen=True, slots=True)
class OperatorCheck:
    """Expected and actual number of an operator's subtasks on each device.

    ``expected`` is empty for an operator that is not in the placement, ``actual`` for one that is
    not in the job.
    """

    operator: str
    expected: Mapping[str, int]
    actual: Mapping[str, int]

    @property
    def fine(self) -> bool:
        """Whether both agree."""
        return dict(self.expected) == dict(self.actual)


@dataclass(frozen=True, slots=True)
class Verification:
    """Comparison of a running job with its placement."""

    checks: tuple[OperatorCheck, ...]
    problems: tuple[str, ...] = ()  # sentences on problems that concern the whole job
    uncounted: tuple[str, ...] = ()  # operators whose number of subtasks the placement leaves open

    @property
    def fine(self) -> bool:
        """Whether every subtask runs where it should."""
        return not self.problems and all(check.fine for check in self.checks)


@dataclass(frozen=True, slots=True)
class Moved:
    """A job that was moved."""

    job: str  # id of the job that runs now
    outage: float | None  # seconds for which it was stopped; None if unknown


class LiveEngine(Protocol[P]):
    """A cluster whose jobs can be measured, placed, verified and moved.

    Errors are StreamplaceErrors that say what is wrong and how to fix it. After an error, the job
    runs on its previous devices, or the error says that it does not.
    """

    def jobs(self) -> list[str]:
        """Ids of the jobs that have not ended."""

    def measure(self, job: str, seconds: float) -> Measurement:
        """Measure a running job for about ``seconds``."""

    def apply(self, program: P, placement: Mapping[str, str]) -> str:
        """Start a program with a placement; return the id of its job once all of it runs."""

    def verify(self, job: str, placement: Mapping[str, str]) -> Verification:
        """Compare the devices of a job's subtasks with a placement."""

    def move(self, job: str, program: P, placement: Mapping[str, str]) -> Moved:
        """Move a running job, with its state, to the devices of a placement.

        No tuple is lost or counted twice, and at most one copy of the job runs at any moment.
        """

    def cancel(self, job: str) -> None:
        """End a job, drop its state, and wait until its devices are free."""
