"""The contract of engines that run: a job on them is measured, placed, verified and moved.

An engine is asked in the words of the model: a job runs a program, and a placement maps operators,
or their subtasks, to devices. What a program is differs between engines: a jar with its arguments
for Flink, a stream graph for a pipeline of Ray actors.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph

P = TypeVar("P", contravariant=True)


@dataclass(frozen=True, slots=True)
class Measurement:
    """A running job and its cluster, measured in the terms that placers take.

    Attributes
    ----------
    graph
        The job, with the rates, CPU and payloads that were measured.
    cluster
        The devices, and what is left of them for this job.
    is_limited
        Whether a source was held back, so that the job may read more elsewhere.
    notes
        What could not be measured, a sentence each.
    """

    graph: StreamGraph
    cluster: Cluster
    is_limited: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OperatorCheck:
    """One operator: how many of its subtasks each device should run, and does.

    ``expected`` is empty for an operator that the placement does not name, ``actual`` for one that
    the job does not have.
    """

    operator: str
    expected: Mapping[str, int]
    actual: Mapping[str, int]

    @property
    def fine(self) -> bool:
        """Whether they agree."""
        return dict(self.expected) == dict(self.actual)


@dataclass(frozen=True, slots=True)
class Verification:
    """What became of a placement.

    Attributes
    ----------
    problems
        What is wrong beside single operators, in words.
    uncounted
        Operators whose number of subtasks the placement does not give.
    """

    checks: tuple[OperatorCheck, ...]
    problems: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()

    @property
    def fine(self) -> bool:
        """Whether every subtask runs where it should."""
        return not self.problems and all(check.fine for check in self.checks)


@dataclass(frozen=True, slots=True)
class Moved:
    """A job that was moved.

    Attributes
    ----------
    job
        The job that runs now.
    outage
        Seconds for which it stood still; None where that is not known.
    """

    job: str
    outage: float | None


class LiveEngine(Protocol[P]):
    """A cluster whose jobs can be measured, placed, verified and moved.

    Every method raises a StreamplaceError that says what is wrong and how to fix it. After a method
    has raised, the job runs where it ran, or the error says that it does not.
    """

    def jobs(self) -> list[str]:
        """Ids of the jobs that have not ended."""

    def measure(self, job: str, seconds: float) -> Measurement:
        """Watch a running job for about ``seconds``."""

    def apply(self, program: P, placement: Mapping[str, str]) -> str:
        """Start a program where it is placed; returns the id of its job once all of it runs."""

    def verify(self, job: str, placement: Mapping[str, str]) -> Verification:
        """Compare where the subtasks of a job run with a placement."""

    def move(self, job: str, program: P, placement: Mapping[str, str]) -> Moved:
        """Move a running job, with its state, to where it is placed.

        No tuple is lost or counted twice, and at most one copy of the job runs at any moment.
        """

    def cancel(self, job: str) -> None:
        """End a job and wait until its devices are free; its state is dropped."""
