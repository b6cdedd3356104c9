"""The table of a patch: the next step, from the journal, the resource and the last step.

`decide_patch` is pure: it sends no request and reads no clock. The first row of `PATCH_ROWS` that
holds decides. The operator stops, saves and starts the job; a patch only changes the specification.

A patch is for the specification at the time of the decision. If others change another field of it,
the fields of the patch go back, and theirs stay. If their change would lose the state of the job,
nothing is patched until they have undone it.
"""

from dataclasses import dataclass
from enum import Enum

from streamplace.flink.move.decision_table import TableRow, row


class PatchRequest(Enum):
    """The last patch of the journal."""

    NOTHING = "nothing"
    TRY = "the change"
    RETURN = "the specification as it was"


class PatchedFields(Enum):
    """The fields of the patch, in the resource."""

    OLD = "as they were"
    NEW = "as changed"
    OTHER = "set by others"
    GONE = "deleted, as the resource is"


class OtherFields(Enum):
    """The fields that the patch rests on: all others of the specification."""

    SAME = "as they were read"
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
    UNSURE = "unsure, as others changed the resource, perhaps its status, or no answer came"
    REFUSED = "refused"
    LATE = "not stable in time"
    SILENT = "not known, as Kubernetes does not answer"


class PatchStep(Enum):
    """A step of a patch, or one of its ends."""

    PATCH = "patch the specification"
    AWAIT = "wait until it is stable"
    RETURN = "patch its fields back"
    AWAIT_RETURN = "wait until it is stable as it was"

    KEPT = "the specification is the changed one"
    RETURNED = "the fields of the change are as they were"
    UNCHANGED = "the specification was not changed"
    ENDED_AS_BEFORE = "the job has ended, and the fields of the change are as they were"
    ENDED_AS_CHANGED = "the job has ended, and the specification is the changed one"
    CONFLICT = "others have set the fields of the change, which are left as they are"
    AT_RISK = "the change stays in the specification until a patch keeps the state again"
    GONE = "the resource was deleted"
    NOT_STABLE = "the fields of the change are as they were, and the job does not become stable"
    UNDECIDED = "it is not known what the specification is"
    LEFT = "interrupted twice"


PATCHES_LEFT = frozenset({PatchStep.AT_RISK, PatchStep.UNDECIDED, PatchStep.LEFT})
"""Ends after which the journal stays, for --resume."""
PATCH_ENDS = frozenset([*PatchStep][[*PatchStep].index(PatchStep.KEPT) :])
"""Steps after which the patch is over, for this process: all from that one on."""


@dataclass(frozen=True, slots=True)
class PatchObservation:
    """Input of the decision on the next step."""

    # The journal: its last patch, and whether that had its effect.
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
    row(PatchStep.UNCHANGED, "nothing was patched yet",
        outcome=PatchOutcome.SILENT, requested=PatchRequest.NOTHING),
    # Interrupts and answers after which nothing is patched.
    row(PatchStep.LEFT, "the second interrupt ends the process", interrupts=2),
    row(PatchStep.UNDECIDED, "no step follows from an unknown answer",
        outcome=PatchOutcome.SILENT),
    row(PatchStep.GONE, "there is nothing to change", fields=PatchedFields.GONE),
    # Fields of the patch that others have set since.
    row(PatchStep.UNCHANGED, "others have set its fields meanwhile",
        requested=PatchRequest.NOTHING, fields=(PatchedFields.NEW, PatchedFields.OTHER)),
    row(PatchStep.CONFLICT, "they are theirs", fields=PatchedFields.OTHER),
    row(PatchStep.CONFLICT, "they have put them back",
        requested=PatchRequest.TRY, is_patched=True, fields=PatchedFields.OLD),
    row(PatchStep.CONFLICT, "they have changed them again",
        requested=PatchRequest.RETURN, is_patched=True, fields=PatchedFields.NEW),
    # The operator starts a job that has ended again when its specification changes.
    row(PatchStep.ENDED_AS_BEFORE, "a patch would start it again",
        fields=PatchedFields.OLD, reconciliation=Reconciliation.ENDED),
    row(PatchStep.ENDED_AS_CHANGED, "a patch would start it again",
        fields=PatchedFields.NEW, reconciliation=Reconciliation.ENDED),
    # Before the patch, which is only for a resource that has not changed.
    row(PatchStep.UNCHANGED, "a patch would lose the state of the job",
        others=OtherFields.RISKY, fields=PatchedFields.OLD,
        requested=(PatchRequest.NOTHING, PatchRequest.TRY)),
    row(PatchStep.UNCHANGED, "others have changed what it rests on",
        others=OtherFields.CHANGED, fields=PatchedFields.OLD,
        requested=(PatchRequest.NOTHING, PatchRequest.TRY)),
    row(PatchStep.UNCHANGED, "Kubernetes does not allow it",
        outcome=PatchOutcome.REFUSED, fields=PatchedFields.OLD,
        requested=(PatchRequest.NOTHING, PatchRequest.TRY)),
    row(PatchStep.PATCH, "the job runs as specified",
        requested=PatchRequest.NOTHING, reconciliation=Reconciliation.STABLE),
    row(PatchStep.UNCHANGED, "the job does not run as specified",
        requested=PatchRequest.NOTHING),
    row(PatchStep.UNCHANGED, "the patch had no effect",
        requested=PatchRequest.TRY, fields=PatchedFields.OLD, interrupts=(1, 2)),
    row(PatchStep.PATCH, "the patch had no effect",
        requested=PatchRequest.TRY, fields=PatchedFields.OLD),
    # The changed specification.
    row(PatchStep.AT_RISK, "a patch back would lose the state of the job",
        others=OtherFields.RISKY, fields=PatchedFields.NEW),
    row(PatchStep.AWAIT, "the operator undoes it by itself first",
        requested=PatchRequest.TRY, reconciliation=Reconciliation.ROLLING_BACK,
        outcome=_ANSWERED),
    row(PatchStep.RETURN, "others have changed what it rests on",
        requested=PatchRequest.TRY, others=OtherFields.CHANGED),
    row(PatchStep.RETURN, "the first interrupt takes it back",
        requested=PatchRequest.TRY, interrupts=(1, 2)),
    row(PatchStep.RETURN, "it does not become stable",
        requested=PatchRequest.TRY, outcome=PatchOutcome.LATE),
    row(PatchStep.RETURN, "the job does not run so",
        requested=PatchRequest.TRY, reconciliation=_NOT_RUNNING),
    row(PatchStep.KEPT, "the job runs so",
        requested=PatchRequest.TRY, reconciliation=Reconciliation.STABLE),
    row(PatchStep.AWAIT, "the operator is at it", requested=PatchRequest.TRY),
    # The way back.
    row(PatchStep.UNDECIDED, "Kubernetes does not allow it",
        requested=PatchRequest.RETURN, fields=PatchedFields.NEW, outcome=PatchOutcome.REFUSED),
    row(PatchStep.RETURN, "the patch had no effect",
        requested=PatchRequest.RETURN, fields=PatchedFields.NEW),
    row(PatchStep.RETURNED, "the job runs as before",
        requested=PatchRequest.RETURN, reconciliation=Reconciliation.STABLE,
        others=OtherFields.SAME),
    row(PatchStep.RETURNED, "the rest of the specification is theirs",
        requested=PatchRequest.RETURN, others=(OtherFields.CHANGED, OtherFields.RISKY)),
    row(PatchStep.NOT_STABLE, "its own events say why",
        requested=PatchRequest.RETURN, outcome=PatchOutcome.LATE),
    row(PatchStep.AWAIT_RETURN, "the operator is at it", requested=PatchRequest.RETURN),
)  # fmt: skip


def decide_patch(observation: PatchObservation) -> tuple[PatchStep, str]:
    """Return the next step, or an end, and the reason for it."""
    return next((r.step, r.reason) for r in PATCH_ROWS if r.holds(observation))
