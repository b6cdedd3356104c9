"""The table of a patch: the next step, from the journal, the resource and the last step.

`decide_patch` is pure: it sends no request and reads no clock. The first row of `PATCH_ROWS` that
holds decides. The operator stops, saves and starts the job; a patch only changes the specification.

A patch is for the specification at the time of the decision. If other users change another field,
the fields of the patch go back, and their change stays. If their change would lose the state of the
job, nothing is patched until they have undone it.
"""

from dataclasses import dataclass
from enum import Enum

from streamplace.flink.move.decision_table import TableRow, row, when


class PatchRequest(Enum):
    """The last patch of the journal."""

    NOTHING = "nothing"
    TRY = "the change"
    RETURN = "the specification as it was"


class PatchedFields(Enum):
    """The fields of the patch, in the resource."""

    OLD = "as before the patch"
    NEW = "as in the patch"
    OTHER = "set by others"
    GONE = "deleted, as the resource is"


class OtherFields(Enum):
    """All other fields of the specification, for which the patch was decided."""

    SAME = "as read before the patch"
    CHANGED = "changed by others"
    RISKY = "changed by others, such that a change of the specification loses the state"


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


class PatchOutcome(Enum):
    """Outcome of the last step of this process."""

    DONE = "done"  # also before the first step
    UNSURE = "unsure, as others changed the resource or its status, or no answer came"
    REFUSED = "refused"
    LATE = "not stable in time"
    SILENT = "not known, as Kubernetes does not answer"


class PatchStep(Enum):
    """A step of a patch, or one of its ends."""

    PATCH = "patch the specification"
    AWAIT = "wait until it is stable"
    RETURN = "patch its fields back"
    AWAIT_RETURN = "wait until it is stable again"

    # Ends; messages print them with the reason of their row: "END, because REASON".
    KEPT = "the specification stays changed"
    RETURNED = "the changed fields have their previous values"
    UNCHANGED = "the specification was not changed"
    ENDED_AS_BEFORE = "the job has ended, and the changed fields have their previous values"
    ENDED_AS_CHANGED = "the job has ended, and the specification stays changed"
    CONFLICT = "the changed fields stay as others have set them"
    AT_RISK = "the change stays in the specification until a patch keeps the state again"
    GONE = "nothing more is changed"
    NOT_STABLE = "the changed fields have their previous values, and the job is not stable"
    UNDECIDED = "it is not known whether the specification is changed"
    LEFT = "interrupted twice"


UNFINISHED_PATCH_ENDS = frozenset({PatchStep.AT_RISK, PatchStep.UNDECIDED, PatchStep.LEFT})
"""Ends after which the journal stays, for --resume."""
PATCH_ENDS = frozenset([*PatchStep][[*PatchStep].index(PatchStep.KEPT) :])
"""Ends of a patch for this process: KEPT, and all members after it."""


@dataclass(frozen=True, slots=True)
class PatchObservation:
    """Input of the decision on the next step."""

    # The journal: its last patch, and whether that took effect.
    requested: PatchRequest
    is_patched: bool
    # Kubernetes: the specification, and how far the operator is with it.
    fields: PatchedFields
    others: OtherFields
    reconciliation: Reconciliation
    # This process: the outcome of its last step, and the number of interrupts (0 to 2).
    outcome: PatchOutcome = PatchOutcome.DONE
    interrupts: int = 0


_NOT_RUNNING = (
    Reconciliation.FAILED,
    Reconciliation.ROLLING_BACK,
    Reconciliation.ROLLED_BACK,
    Reconciliation.SUSPENDED,
)
_ANSWERED = (PatchOutcome.DONE, PatchOutcome.UNSURE, PatchOutcome.REFUSED)

PATCH_ROWS: tuple[TableRow[PatchStep], ...] = (
    # Nothing was patched.
    row(PatchStep.UNCHANGED, "nothing was patched yet",
        interrupts=(1, 2), requested=PatchRequest.NOTHING),
    row(PatchStep.UNCHANGED, "Kubernetes does not answer",
        outcome=PatchOutcome.SILENT, requested=PatchRequest.NOTHING),
    # Interrupts and answers after which nothing is patched.
    row(PatchStep.LEFT, "the second interrupt ends the process", interrupts=2),
    row(PatchStep.UNDECIDED, "Kubernetes does not answer", outcome=PatchOutcome.SILENT),
    row(PatchStep.GONE, "the resource was deleted", fields=PatchedFields.GONE),
    # Fields of the patch that others have set since.
    row(PatchStep.UNCHANGED, "others have set these fields meanwhile",
        requested=PatchRequest.NOTHING, fields=(PatchedFields.NEW, PatchedFields.OTHER)),
    row(PatchStep.CONFLICT, "a patch would overwrite them", fields=PatchedFields.OTHER),
    row(PatchStep.CONFLICT, "they have restored the previous values",
        requested=PatchRequest.TRY, is_patched=True, fields=PatchedFields.OLD),
    row(PatchStep.CONFLICT, "they have made the change again",
        requested=PatchRequest.RETURN, is_patched=True, fields=PatchedFields.NEW),
    # The operator starts a job that has ended again when its specification changes.
    row(PatchStep.ENDED_AS_BEFORE, "a patch would start it again",
        fields=PatchedFields.OLD, reconciliation=Reconciliation.ENDED),
    row(PatchStep.ENDED_AS_CHANGED, "a patch would start it again",
        fields=PatchedFields.NEW, reconciliation=Reconciliation.ENDED),
    # Before the patch, which is only for an unchanged resource.
    *when(fields=PatchedFields.OLD, requested=(PatchRequest.NOTHING, PatchRequest.TRY))(
        row(PatchStep.UNCHANGED, "a patch would lose the state of the job",
            others=OtherFields.RISKY),
        row(PatchStep.UNCHANGED, "others have changed other fields", others=OtherFields.CHANGED),
        row(PatchStep.UNCHANGED, "Kubernetes refuses the patch", outcome=PatchOutcome.REFUSED),
    ),
    row(PatchStep.PATCH, "the job runs as specified",
        requested=PatchRequest.NOTHING, reconciliation=Reconciliation.STABLE),
    row(PatchStep.UNCHANGED, "the job does not run as specified", requested=PatchRequest.NOTHING),
    row(PatchStep.UNCHANGED, "the patch had no effect",
        requested=PatchRequest.TRY, fields=PatchedFields.OLD, interrupts=(1, 2)),
    row(PatchStep.PATCH, "the patch had no effect",
        requested=PatchRequest.TRY, fields=PatchedFields.OLD),
    # The changed specification.
    row(PatchStep.AT_RISK, "a patch back would lose the state of the job",
        others=OtherFields.RISKY, fields=PatchedFields.NEW),
    *when(requested=PatchRequest.TRY)(
        row(PatchStep.AWAIT, "the operator is rolling it back",
            reconciliation=Reconciliation.ROLLING_BACK, outcome=_ANSWERED),
        row(PatchStep.RETURN, "others have changed other fields", others=OtherFields.CHANGED),
        row(PatchStep.RETURN, "the command was interrupted", interrupts=(1, 2)),
        row(PatchStep.RETURN, "it is not stable in time", outcome=PatchOutcome.LATE),
        row(PatchStep.RETURN, "the job does not run with the change", reconciliation=_NOT_RUNNING),
        row(PatchStep.KEPT, "the job runs with the change", reconciliation=Reconciliation.STABLE),
        row(PatchStep.AWAIT, "the operator carries it out"),
    ),
    # The way back.
    *when(requested=PatchRequest.RETURN)(
        row(PatchStep.UNDECIDED, "Kubernetes refuses the patch back",
            fields=PatchedFields.NEW, outcome=PatchOutcome.REFUSED),
        row(PatchStep.RETURN, "the patch had no effect", fields=PatchedFields.NEW),
        row(PatchStep.RETURNED, "the job runs as before",
            reconciliation=Reconciliation.STABLE, others=OtherFields.SAME),
        row(PatchStep.RETURNED, "others have changed other fields",
            others=(OtherFields.CHANGED, OtherFields.RISKY)),
        row(PatchStep.NOT_STABLE, "the operator was not done in time", outcome=PatchOutcome.LATE),
        row(PatchStep.AWAIT_RETURN, "the operator carries it out"),
    ),
)  # fmt: skip


def decide_patch(observation: PatchObservation) -> tuple[PatchStep, str]:
    """Return the next step, or an end, and the reason for it."""
    return next((r.step, r.reason) for r in PATCH_ROWS if r.holds(observation))
