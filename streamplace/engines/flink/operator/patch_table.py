"""The table of a patch: the next step, from the journal, the resource and the last step.

`decide_patch` is pure: it sends no request and reads no clock. The first row of `PATCH_ROWS` that
holds is the one that decides. The operator stops, saves and starts the job; a patch only changes
what it is to run.
"""

from dataclasses import dataclass
from enum import Enum

from streamplace.engines.flink.move.decision_table import TableRow, row


class PatchRequest(Enum):
    """The last patch of the journal."""

    NOTHING = "nothing"
    TRY = "the change"
    RETURN = "the specification as it was"


class SpecificationState(Enum):
    """The specification of the resource."""

    OLD = "as it was"
    NEW = "as changed"
    OTHER = "changed by others"
    GONE = "deleted"


class Reconciliation(Enum):
    """How far the operator is with the specification."""

    WAITING = "not taken up"
    CHANGING = "under way"
    STABLE = "STABLE"
    FAILED = "failed"
    ROLLING_BACK = "ROLLING_BACK"
    ROLLED_BACK = "ROLLED_BACK"
    SUSPENDED = "SUSPENDED"
    ENDED = "STABLE, and the job has ended"


class Verdict(Enum):
    """What the measurement of the change says."""

    NONE = "not measured"
    KEEP = "better"
    UNDO = "not better"
    ENDED = "the job has ended meanwhile"


class PatchOutcome(Enum):
    """What the last step of this process ended with."""

    DONE = "done"  # also before the first step
    UNSURE = "unsure, as others changed the resource, perhaps its status, or no answer came"
    REFUSED = "refused"
    LATE = "not stable in time"
    SILENT = "not known, as Kubernetes does not answer"


class PatchStep(Enum):
    """A step of a patch, or one of its ends."""

    PATCH = "patch the specification"
    AWAIT = "wait until it is stable"
    MEASURE = "measure the job"
    RETURN = "patch the specification back"
    AWAIT_RETURN = "wait until it is stable as it was"

    KEPT = "the specification is the changed one"
    RETURNED = "the specification is as it was"
    UNCHANGED = "the specification was not changed"
    ENDED_AS_BEFORE = "the job has ended, and the specification is as it was"
    ENDED_AS_CHANGED = "the job has ended, and the specification is the changed one"
    CONFLICT = "others have changed the specification, which is left as it is"
    GONE = "the resource was deleted"
    NOT_STABLE = "the specification is as it was, and does not become stable"
    UNDECIDED = "it is not known what the specification is"
    LEFT = "interrupted twice"


PATCHES_LEFT = frozenset({PatchStep.UNDECIDED, PatchStep.LEFT})
"""Ends after which the journal stays, for --resume."""
PATCH_ENDS = PATCHES_LEFT | {
    PatchStep.KEPT,
    PatchStep.RETURNED,
    PatchStep.UNCHANGED,
    PatchStep.ENDED_AS_BEFORE,
    PatchStep.ENDED_AS_CHANGED,
    PatchStep.CONFLICT,
    PatchStep.GONE,
    PatchStep.NOT_STABLE,
}
"""Steps after which the patch is over, for this process."""


@dataclass(frozen=True, slots=True)
class PatchObservation:
    """What decides on the next step."""

    # The journal: its last patch, whether that had its effect, and what the change was found to be.
    requested: PatchRequest
    is_patched: bool
    verdict: Verdict
    # Kubernetes: the specification, and how far the operator is with it.
    specification: SpecificationState
    reconciliation: Reconciliation
    # This process: what its last step ended with, and the interrupts of it (0 to 2).
    outcome: PatchOutcome = PatchOutcome.DONE
    interrupts: int = 0


_NOT_RUNNING = (
    Reconciliation.FAILED,
    Reconciliation.ROLLING_BACK,
    Reconciliation.ROLLED_BACK,
    Reconciliation.SUSPENDED,
)

PATCH_ROWS: tuple[TableRow[PatchStep], ...] = (
    # Nothing was patched.
    row(PatchStep.UNCHANGED, "nothing was patched yet",
        interrupts=(1, 2), requested=PatchRequest.NOTHING),
    row(PatchStep.UNCHANGED, "nothing was patched yet",
        outcome=PatchOutcome.SILENT, requested=PatchRequest.NOTHING),
    # Interrupts and answers after which nothing is patched.
    row(PatchStep.LEFT, "the second interrupt ends the process", interrupts=2),
    row(PatchStep.UNDECIDED, "no step follows from an unknown answer",
        outcome=PatchOutcome.SILENT),
    row(PatchStep.GONE, "there is nothing to change", specification=SpecificationState.GONE),
    row(PatchStep.CONFLICT, "it is theirs", specification=SpecificationState.OTHER),
    row(PatchStep.CONFLICT, "they have put it back",
        requested=PatchRequest.TRY, is_patched=True, specification=SpecificationState.OLD),
    row(PatchStep.CONFLICT, "they have changed it again",
        requested=PatchRequest.RETURN, is_patched=True, specification=SpecificationState.NEW),
    # The operator starts a job that has ended again when its specification changes.
    row(PatchStep.ENDED_AS_BEFORE, "a patch would start it again",
        specification=SpecificationState.OLD, reconciliation=Reconciliation.ENDED),
    row(PatchStep.ENDED_AS_CHANGED, "a patch would start it again",
        specification=SpecificationState.NEW, reconciliation=Reconciliation.ENDED),
    row(PatchStep.ENDED_AS_CHANGED, "a patch would start it again, as Flink says before its status",
        requested=PatchRequest.TRY, specification=SpecificationState.NEW, verdict=Verdict.ENDED),
    # Before the patch: it changes only what runs.
    row(PatchStep.UNCHANGED, "Kubernetes does not allow it",
        outcome=PatchOutcome.REFUSED, specification=SpecificationState.OLD,
        requested=(PatchRequest.NOTHING, PatchRequest.TRY)),
    row(PatchStep.PATCH, "the job runs as specified",
        requested=PatchRequest.NOTHING, specification=SpecificationState.OLD,
        reconciliation=Reconciliation.STABLE),
    row(PatchStep.UNCHANGED, "the job does not run as specified",
        requested=PatchRequest.NOTHING),
    row(PatchStep.UNCHANGED, "the patch had no effect",
        requested=PatchRequest.TRY, specification=SpecificationState.OLD, interrupts=(1, 2)),
    row(PatchStep.PATCH, "the patch had no effect",
        requested=PatchRequest.TRY, specification=SpecificationState.OLD),
    # The changed specification.
    row(PatchStep.AWAIT, "the operator undoes it by itself first",
        requested=PatchRequest.TRY, reconciliation=Reconciliation.ROLLING_BACK,
        outcome=(PatchOutcome.DONE, PatchOutcome.UNSURE, PatchOutcome.REFUSED)),
    row(PatchStep.RETURN, "it is not to be kept",
        requested=PatchRequest.TRY, verdict=Verdict.UNDO),
    row(PatchStep.RETURN, "the first interrupt takes it back",
        requested=PatchRequest.TRY, interrupts=(1, 2)),
    row(PatchStep.RETURN, "it does not become stable",
        requested=PatchRequest.TRY, outcome=PatchOutcome.LATE),
    row(PatchStep.RETURN, "the job does not run so",
        requested=PatchRequest.TRY, reconciliation=_NOT_RUNNING),
    row(PatchStep.KEPT, "it is better",
        requested=PatchRequest.TRY, reconciliation=Reconciliation.STABLE, verdict=Verdict.KEEP),
    row(PatchStep.MEASURE, "the job runs so",
        requested=PatchRequest.TRY, reconciliation=Reconciliation.STABLE),
    row(PatchStep.AWAIT, "the operator is at it", requested=PatchRequest.TRY),
    # The way back.
    row(PatchStep.UNDECIDED, "Kubernetes does not allow it",
        requested=PatchRequest.RETURN, specification=SpecificationState.NEW,
        outcome=PatchOutcome.REFUSED),
    row(PatchStep.RETURN, "the patch had no effect",
        requested=PatchRequest.RETURN, specification=SpecificationState.NEW),
    row(PatchStep.RETURNED, "the job runs as before",
        requested=PatchRequest.RETURN, reconciliation=Reconciliation.STABLE),
    row(PatchStep.NOT_STABLE, "its own events say why",
        requested=PatchRequest.RETURN, outcome=PatchOutcome.LATE),
    row(PatchStep.AWAIT_RETURN, "the operator is at it", requested=PatchRequest.RETURN),
)  # fmt: skip


def decide_patch(observation: PatchObservation) -> tuple[PatchStep, str]:
    """Return the next step, or an end, and the reason for it."""
    return next((r.step, r.reason) for r in PATCH_ROWS if r.holds(observation))
