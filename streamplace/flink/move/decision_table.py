"""The table of a move: the next step, from the journal, the answers of Flink and the last step.

`decide` is pure: it sends no request and reads no clock. The first row of `ROWS` that holds
decides. For a new state, add a member to an enumeration, and rows for it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from streamplace.flink.rest.client import successor

S = TypeVar("S", bound=Enum)


class Copy(Enum):
    """One of the jobs of a move, which run one after another."""

    NONE = "none"
    MOVED = "the moved job"
    SUCCESSOR = "its successor"
    RETURNED = "a later job"

    @classmethod
    def of(cls, job: str, moved: str) -> "Copy":
        """Part of a job in the move of ``moved``; all jobs after the successor are returns."""
        return {moved: cls.MOVED, successor(moved): cls.SUCCESSOR}.get(job, cls.RETURNED)


class JobState(Enum):
    """State of a job of a move."""

    GONE = "not listed"
    RUNNING = "RUNNING"
    CHANGING = "starting, restarting or failing"
    CANCELLING = "CANCELLING"
    STOPPED = "stopped with a savepoint"
    FINISHED = "finished by itself"
    FAILED = "FAILED"
    CANCELED = "CANCELED"


LIVE = (JobState.RUNNING, JobState.CHANGING, JobState.CANCELLING)
HAS_ENDED = (JobState.STOPPED, JobState.FINISHED, JobState.FAILED, JobState.CANCELED)


class Stop(Enum):
    """Result of the request that stops the moved job."""

    UNKNOWN = "unknown to Flink"
    UNDER_WAY = "under way"
    SAVED = "complete"
    FAILED = "failed"


class StepOutcome(Enum):
    """Outcome of the last step of this process."""

    DONE = "done"  # also before the first step
    FAILED = "failed"
    SPENT = "refused, as Flink has accepted the id before"
    STARTING = "the job still restores its state"
    OTHERS = "prevented by another user"
    SILENT = "not known, as Flink does not answer"


class Step(Enum):
    """A step of a move, or one of its ends."""

    PREPARE = "upload the jars"
    STOP = "stop the job with a savepoint"
    AWAIT_STOP = "wait for the savepoint"
    STEADY = "wait until its state is steady"
    CANCEL = "cancel the job"
    START = "start it on its new devices"
    SETTLE = "wait until it runs there, and check it"
    END = "end it there, and find its last state"
    RETURN = "start it on its previous devices"
    AWAIT_RETURN = "wait until it runs there again"

    MOVED = "the job was moved"
    HAS_RETURNED = "the job runs where it ran before"
    KEPT = "the job continues, and was not stopped"
    REFUSED = "no more requests are sent"
    FINISHED = "the job has finished by itself"
    TAKEN = "another command moves the job"
    ENDED_BY_OTHERS = "another user has ended the job"
    NOT_RUNNING = "the job is not running"
    LOST = "the job has failed, and left no state"
    FORGOTTEN = "Flink has forgotten the job, and no state of it is known"
    STOPPED_BY_OTHERS = "another user has stopped the job, which --resume starts"
    NOT_RETURNED = "the job could not be started where it ran before"
    UNDECIDED = "it is not known what runs"
    LEFT = "interrupted twice"


UNFINISHED_ENDS = frozenset({Step.STOPPED_BY_OTHERS, Step.NOT_RETURNED, Step.UNDECIDED, Step.LEFT})
"""Ends after which the journal stays, for --resume."""
ENDS = frozenset([*Step][[*Step].index(Step.MOVED) :])
"""Ends of a move for this process: MOVED, and all members after it."""
OPTIONAL_STEPS = (ENDS - UNFINISHED_ENDS - {Step.FORGOTTEN, Step.LOST}) | {
    Step.PREPARE,
    Step.SETTLE,
    Step.AWAIT_RETURN,
}
"""Steps that a move may end before: one copy of the job runs, or none has to run."""


@dataclass(frozen=True, slots=True)
class MoveObservation:
    """Input of the decision on the next step."""

    # The journal: the last job that Flink was asked to end or to start, whether a savepoint of the
    # job is known, whether the move has failed, and whether the job is cancelled for lost devices.
    requested: Copy
    is_saved: bool = False
    returns: bool = False
    cancels: bool = False
    # Flink: the last job that it lists, its state, and the result of stopping the moved job.
    last: Copy = Copy.NONE
    state: JobState = JobState.GONE
    stop: Stop = Stop.UNKNOWN
    path: str | None = None  # savepoint or checkpoint from which the job can continue, if known
    # This process: its last step with the outcome, and the number of interrupts (0 to 2).
    after: Step | None = None
    outcome: StepOutcome = StepOutcome.DONE
    interrupts: int = 0
    # For messages: the id of the last job, and Flink's own word for its state.
    job: str = ""
    status: str = ""

    @property
    def goes_back(self) -> bool:
        """Whether the job has to run on its previous devices."""
        return self.returns or self.interrupts > 0 or self.outcome is StepOutcome.FAILED


@dataclass(frozen=True, slots=True)
class TableRow(Generic[S]):
    """A row of a table: a step, and its conditions."""

    step: S
    reason: str  # for readers of the table; for patches, commands print it as well
    conditions: dict[str, tuple[object, ...]]

    def holds(self, observation: object) -> bool:
        """Whether the row applies."""
        return all(getattr(observation, name) in values for name, values in self.conditions.items())


def row(step: S, reason: str, **conditions: object) -> TableRow[S]:
    """Row of a table; the value of each condition is a value or a tuple of possible values."""
    values = {
        name: value if isinstance(value, tuple) else (value,) for name, value in conditions.items()
    }
    return TableRow(step, reason, values)


def when(**conditions: object) -> Callable[..., tuple[TableRow[Any], ...]]:
    """Function that returns rows with further conditions, which they have in common."""

    def with_conditions(*rows: TableRow[S]) -> tuple[TableRow[S], ...]:
        return tuple(row(r.step, r.reason, **conditions, **r.conditions) for r in rows)

    return with_conditions


_BACK = (Step.END, Step.RETURN, Step.AWAIT_RETURN)
_NOT_STARTED = (Copy.NONE, Copy.MOVED)
_BY_OTHERS = (JobState.CANCELLING, JobState.CANCELED, JobState.STOPPED)

ROWS: tuple[TableRow[Step], ...] = (
    # Interrupts and answers after which no request is sent.
    row(Step.KEPT, "Flink was not asked to end it yet", interrupts=(1, 2), requested=Copy.NONE),
    row(Step.LEFT, "the second interrupt ends the process", interrupts=2),
    row(Step.REFUSED, "the job is as it was", outcome=StepOutcome.SILENT, requested=Copy.NONE),
    row(Step.UNDECIDED, "no step follows from an unknown answer", outcome=StepOutcome.SILENT),
    row(Step.UNDECIDED, "the job has its slots, and may take long", outcome=StepOutcome.STARTING),
    row(Step.REFUSED, "the job is another user's", outcome=StepOutcome.OTHERS),
    row(Step.NOT_RETURNED, "the return failed, too", outcome=StepOutcome.FAILED, after=_BACK),
    # Flink lists no job of the move: its JobManager was restarted without high availability.
    *when(last=Copy.NONE)(
        row(Step.FORGOTTEN, "there is nothing to continue from", path=None),
        row(Step.RETURN, "the id was used, so the next one is taken", outcome=StepOutcome.SPENT),
        row(Step.RETURN, "no other copy can start any more",
            after=Step.END, outcome=StepOutcome.DONE),
        row(Step.END, "a start that is under way must have no effect", returns=True),
        row(Step.END, "a start that is under way must have no effect", interrupts=(1, 2)),
        row(Step.END, "it does not start there", after=Step.START, outcome=StepOutcome.FAILED),
        row(Step.START, "it continues from its last state"),
    ),
    # The moved job has lost devices, so it is cancelled.
    *when(last=Copy.MOVED)(
        row(Step.STOPPED_BY_OTHERS, "another user has stopped it",
            cancels=True, requested=_NOT_STARTED, state=JobState.STOPPED),
        row(Step.FINISHED, "it needs no other devices",
            cancels=True, requested=_NOT_STARTED, state=JobState.FINISHED),
        row(Step.ENDED_BY_OTHERS, "a cancellation is final",
            cancels=True, requested=Copy.NONE, state=(JobState.CANCELLING, JobState.CANCELED)),
        row(Step.REFUSED, "it does not fit its devices",
            cancels=True, after=Step.PREPARE, outcome=StepOutcome.FAILED),
        row(Step.CANCEL, "its jars are there",
            cancels=True, requested=Copy.NONE, after=Step.PREPARE),
        row(Step.PREPARE, "missing resources are found before it is cancelled",
            cancels=True, requested=Copy.NONE),
        row(Step.UNDECIDED, "some of its tasks take long to end",
            cancels=True, after=Step.CANCEL, outcome=StepOutcome.FAILED),
        row(Step.CANCEL, "it was cancelled by this move, and has to end",
            cancels=True, state=JobState.CANCELLING),
        row(Step.KEPT, "Flink runs it again", cancels=True, state=LIVE, after=Step.STEADY),
        row(Step.STEADY, "a request may have its effect a little later", cancels=True, state=LIVE),
        # The moved job, before any request.
        row(Step.TAKEN, "a request of another command stops it",
            requested=Copy.NONE, stop=(Stop.UNDER_WAY, Stop.SAVED, Stop.FAILED)),
        row(Step.STOPPED_BY_OTHERS, "another user has stopped it",
            requested=Copy.NONE, state=JobState.STOPPED),
        row(Step.FINISHED, "there is nothing to move",
            requested=Copy.NONE, state=JobState.FINISHED),
        row(Step.ENDED_BY_OTHERS, "a cancellation is final",
            requested=Copy.NONE, state=JobState.CANCELED),
        row(Step.NOT_RUNNING, "it has ended", requested=Copy.NONE, state=JobState.FAILED),
        # The moved job has ended, and its state is in the journal.
        row(Step.RETURN, "the id was used, so the next one is taken",
            state=HAS_ENDED, is_saved=True, outcome=StepOutcome.SPENT),
        row(Step.RETURN, "no other copy can start any more",
            state=HAS_ENDED, is_saved=True, after=Step.END),
        row(Step.END, "a start that is under way must have no effect",
            state=HAS_ENDED, is_saved=True, goes_back=True),
        row(Step.START, "its state is saved", state=HAS_ENDED, is_saved=True),
        # The moved job was asked to stop.
        row(Step.REFUSED, "it does not fit its devices",
            after=Step.PREPARE, outcome=StepOutcome.FAILED, state=LIVE),
        row(Step.AWAIT_STOP, "Flink completes it even if this process ends",
            stop=(Stop.UNDER_WAY, Stop.SAVED), outcome=StepOutcome.DONE,
            after=(None, Step.PREPARE, Step.STOP, Step.AWAIT_STOP)),
        row(Step.AWAIT_STOP, "the request may have arrived",
            stop=(Stop.UNDER_WAY, Stop.SAVED), after=Step.STOP),
        row(Step.AWAIT_STOP, "it reports why it has failed",
            stop=Stop.FAILED, state=(*LIVE, JobState.FAILED), outcome=StepOutcome.DONE,
            after=(None, Step.STOP, Step.PREPARE)),
        row(Step.UNDECIDED, "Flink continues to stop it",
            state=LIVE, after=Step.STEADY, stop=(Stop.UNDER_WAY, Stop.SAVED)),
        row(Step.KEPT, "no request has stopped it", state=LIVE, after=Step.STEADY),
        row(Step.STEADY, "a request may have its effect a little later",
            state=LIVE, goes_back=True),
        row(Step.STOP, "its jars are there", state=JobState.RUNNING, after=Step.PREPARE),
        row(Step.PREPARE, "missing resources are found before it is stopped",
            state=JobState.RUNNING),
        row(Step.NOT_RUNNING, "only a running job can be saved", state=LIVE),
        # The moved job has ended, and no state of it is in the journal.
        row(Step.STOPPED_BY_OTHERS, "the stop of this move has failed",
            state=JobState.STOPPED, stop=Stop.FAILED),
        row(Step.RETURN, "no other copy can start any more",
            state=JobState.STOPPED, after=Step.END),
        row(Step.END, "a start that is under way must have no effect",
            state=JobState.STOPPED, interrupts=(1, 2)),
        row(Step.START, "Flink has forgotten the request that stopped it", state=JobState.STOPPED),
        row(Step.FINISHED, "there is nothing to move", state=JobState.FINISHED),
        row(Step.ENDED_BY_OTHERS, "a cancellation is final", state=JobState.CANCELED),
        row(Step.LOST, "it has failed while it was stopped", state=JobState.FAILED, path=None),
        row(Step.END, "it has failed while it was stopped, and continues from a checkpoint",
            state=JobState.FAILED),
    ),
    # Its successor.
    row(Step.TAKEN, "this move has not started it",
        last=(Copy.SUCCESSOR, Copy.RETURNED), requested=_NOT_STARTED, returns=False),
    *when(last=Copy.SUCCESSOR, returns=False)(
        row(Step.ENDED_BY_OTHERS, "another user has ended it, which is final", state=_BY_OTHERS),
        row(Step.MOVED, "it has read all of its input", state=JobState.FINISHED),
        row(Step.END, "it has failed there", state=JobState.FAILED),
        row(Step.END, "it does not run there as it should", goes_back=True),
        row(Step.MOVED, "it runs as placed, and has settled", after=Step.SETTLE),
        row(Step.SETTLE, "it was started"),
    ),
    row(Step.FINISHED, "it has read all of its input",
        last=(Copy.SUCCESSOR, Copy.RETURNED), state=JobState.FINISHED),
    row(Step.RETURN, "the id was used, so the next one is taken",
        last=Copy.SUCCESSOR, state=HAS_ENDED, outcome=StepOutcome.SPENT),
    row(Step.RETURN, "it has ended there, with its state",
        last=Copy.SUCCESSOR, state=HAS_ENDED, after=Step.END),
    row(Step.UNDECIDED, "it runs, although it was ended", last=Copy.SUCCESSOR, after=Step.END),
    row(Step.END, "the move has failed", last=Copy.SUCCESSOR),
    # A later one: the job was started on its previous devices.
    row(Step.ENDED_BY_OTHERS, "another user has ended it, which is final",
        last=Copy.RETURNED, state=_BY_OTHERS),
    row(Step.RETURN, "the id was used, so the next one is taken",
        last=Copy.RETURNED, state=JobState.FAILED, outcome=StepOutcome.SPENT),
    row(Step.NOT_RETURNED, "it has failed where it ran before",
        last=Copy.RETURNED, state=JobState.FAILED, after=(Step.RETURN, Step.AWAIT_RETURN)),
    row(Step.RETURN, "it has failed since", last=Copy.RETURNED, state=JobState.FAILED),
    row(Step.HAS_RETURNED, "it runs there again", last=Copy.RETURNED, after=Step.AWAIT_RETURN),
    row(Step.AWAIT_RETURN, "it was started there", last=Copy.RETURNED),
)  # fmt: skip


def decide(observation: MoveObservation) -> Step:
    """Return the next step of a move."""
    return next(row.step for row in ROWS if row.holds(observation))
